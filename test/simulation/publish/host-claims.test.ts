/**
 * T16: several tenants name one host, in every order of coming and going. At any moment one living source has it, the
 * oldest; the others get a condition; another namespace gets it only when the owner is gone and the grace has passed.
 *
 * Each seed is another order: five by default, fifteen with SEAMARK_CRASHES=all; `SEAMARK_CLAIM_SEEDS=200` tries as many.
 */
import { isThorough } from '@seamark/kit'
import { Service } from '@seamark/kube'
import { type DNSEndpoint, HTTPProxy, playgroundCrds } from '@seamark/operator'
import type { Obj } from '@seamark/kube/object'
import { expect, it } from 'vitest'
import { Bench } from '../../integration/publish/bench.ts'
import type { Invariant, Scenario, Stage, TestEnvironment as Stored } from '../scenario.ts'
import { seededRandom } from '../seeded-random.ts'
import { simulate } from '../simulation.ts'
import { simulatedCluster } from '../simulated-cluster.ts'

const HOST = 'shop.example.com'
const GRACE_MS = 30_000
const seedCount = Number(process.env['SEAMARK_CLAIM_SEEDS'] ?? (isThorough ? 15 : 5))
const seeds = Array.from({ length: seedCount }, (_, index) => index + 1)

interface Tenant {
  readonly kind: 'HTTPProxy' | 'Service'
  readonly namespace: string
  readonly name: string
  readonly host: string
}

/** Spelled differently where the kind lets it be; a wildcard is another name. */
const tenants: readonly Tenant[] = [
  { kind: 'HTTPProxy', namespace: 'ns', name: 'a', host: HOST },
  { kind: 'HTTPProxy', namespace: 'ns2', name: 'b', host: HOST },
  { kind: 'Service', namespace: 'dns', name: 'c', host: 'Shop.Example.COM.' },
  { kind: 'HTTPProxy', namespace: 'certs', name: 'wild', host: '*.example.com' },
]

const keyOf = ({ namespace, name }: Tenant) => `${namespace}/${name}`
const childKey = (tenant: Tenant) => (tenant.kind === 'Service' ? `${keyOf(tenant)}-service` : keyOf(tenant))

function shuffle<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, order: random() }))
    .toSorted((a, b) => a.order - b.order)
    .map(({ item }) => item)
}

const names = (object: Obj | undefined) =>
  (object as DNSEndpoint | undefined)?.spec.endpoints.map((each) => each.dnsName)

/** Tenants of the host that live and have a record of it. */
function holders(environment: Stored): Tenant[] {
  return tenants.filter((tenant) => {
    const source = environment.find(tenant.kind, keyOf(tenant))
    const isAlive = source !== undefined && source.metadata.deletionTimestamp === undefined
    return isAlive && names(environment.find('DNSEndpoint', childKey(tenant)))?.includes(HOST) === true
  })
}

const oneHolder: Invariant = {
  name: 'a host has one holder',
  check: (environment, { kind }) => {
    const found = kind === 'DNSEndpoint' ? holders(environment) : []
    return found.length > 1 ? `${found.map(keyOf).join(' and ')} both have ${HOST}` : undefined
  },
}

/** The last owner to go, and when: who comes after it from another namespace has to wait. */
function graceKept(clock: () => number): Invariant {
  let freed: { namespace: string; atMs: number } | undefined
  return {
    name: 'a freed host is not handed to another namespace at once',
    check(environment, { kind, type, key, after }) {
      const tenant = tenants.find((each) => keyOf(each) === key && each.kind === kind)
      if (tenant !== undefined && type === 'delete' && tenant.host !== '*.example.com') {
        const wasHolder = names(environment.find('DNSEndpoint', childKey(tenant)))?.includes(HOST) === true
        if (wasHolder) freed = { namespace: tenant.namespace, atMs: clock() }
      }
      if (kind !== 'DNSEndpoint' || type !== 'create' || freed === undefined) return undefined
      const isEarly = names(after)?.includes(HOST) === true && clock() < freed.atMs + GRACE_MS
      return isEarly && after?.metadata.namespace !== freed.namespace ? `${key} came too early` : undefined
    },
  }
}

async function create(bench: Bench, { kind, namespace, name, host }: Tenant): Promise<void> {
  if (kind === 'HTTPProxy') {
    const spec = { routes: [], virtualhost: { fqdn: host } } as NonNullable<HTTPProxy['spec']>
    await bench.client.create(HTTPProxy, { metadata: { namespace, name }, spec })
    return
  }
  const annotations = { 'external-dns.alpha.kubernetes.io/hostname': host }
  const spec = { type: 'LoadBalancer', ports: [{ port: 80 }] }
  await bench.client.create(Service, { metadata: { namespace, name, annotations }, spec } as Service)
  await bench.setStatus(Service, `${namespace}/${name}`, { loadBalancer: { ingress: [{ ip: '192.0.2.9' }] } })
}

function claimScenario(seed: number): Scenario {
  const random = seededRandom(seed * 7919)
  return {
    name: `claims of seed ${seed}`,
    given: playgroundCrds(),
    async prepare(stage: Stage) {
      await Bench.prepare(simulatedCluster(stage))
    },
    async play(stage) {
      const bench = new Bench(simulatedCluster(stage))
      const alive: Tenant[] = []
      await using _app = bench.runUnified({ children: ['DNSEndpoint'] })
      for (const tenant of shuffle(tenants, random)) {
        await create(bench, tenant)
        alive.push(tenant)
        await stage.clock.advance(1_000 + Math.floor(random() * 60_000))
      }
      await expectOldest(bench, alive)
      for (const tenant of shuffle(tenants, random)) {
        if (tenant.kind === 'HTTPProxy') await bench.client.delete(HTTPProxy, keyOf(tenant))
        else await bench.client.delete(Service, keyOf(tenant))
        alive.splice(alive.indexOf(tenant), 1)
        await expectOldest(bench, alive)
      }
    },
    invariants: ({ clock }) => [oneHolder, graceKept(() => clock.monotonic())],
  }
}

/** Those alive, oldest first: the first of the host has it, the wildcard has its own, the rest gets a condition. */
async function expectOldest(bench: Bench, alive: readonly Tenant[]): Promise<void> {
  await bench.settled()
  const [owner, ...losers] = alive.filter(({ host }) => !host.startsWith('*'))
  const wanted = alive.filter((tenant) => tenant === owner || tenant.host.startsWith('*')).map(childKey)
  expect(await bench.children()).toEqual(wanted.map((key) => `DNSEndpoint ${key}`).toSorted())
  for (const loser of losers) {
    if (loser.kind !== 'HTTPProxy') continue
    const { status } = await bench.client.get(HTTPProxy, keyOf(loser))
    expect(status?.conditions).toMatchObject([{ status: 'False', reason: 'ClaimHeldByOther' }])
  }
}

it.each(seeds)('one owner at any time, in the order of seed %i', async (seed) => {
  const { failure, violations } = await simulate(claimScenario(seed), [], seed)
  expect([failure, violations]).toEqual([undefined, []])
})
