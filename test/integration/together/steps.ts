/**
 * What happens to the installation, one step after the other, and what its hosts should answer after each. A step that
 * fails does not keep the later ones from running: each is judged by what it leaves.
 */
import { Event, Ingress } from '@seamark/kube'
import { Cluster, DNSLoadBalancerEndpoint, LeafIngress } from '@seamark/operator'
import { GATEWAY, HUB_ADDRESS, MEMBERS, NODE } from './addresses.ts'
import { contradictionsOf, get } from './statements.ts'
import { hostOf, type World } from './world.ts'
import { eventually } from './waiting.ts'

/** Roots: `shop` of the example fails over from eu1 to us1 and does not return by itself; the others use both members. */
export const ROOTS = ['shop', 'pay', 'docs'] as const
type Root = (typeof ROOTS)[number]

/** A host that an Ingress of the hub itself had before a root named it. */
const LATE = 'late'

export interface Step {
  readonly name: string
  readonly act: (world: World) => Promise<void>
  /** What each root's host answers after the step, where it is another than before. */
  readonly expected?: Partial<Record<Root, readonly string[]>>
  /** Roots that are deleted: their hosts may have no answer until another object has them. */
  readonly deleted?: readonly Root[]
  /** What must be true besides, in words where it is not. */
  readonly check?: (world: World) => Promise<string[]>
  /** Answers must be as expected within this time of the end of `act`. */
  readonly limitMs?: number
}

const [EU, US] = [GATEWAY.eu1, GATEWAY.us1]
const BOTH = [EU, US]

/** The bound of `balance.failover.refused` (docs/benchmarks.md). */
const FAILOVER_MS = 7_700

/** The Lease of the process that was killed expires, another object gets the host a minute later, and caches are waited for. */
const TEARDOWN_MS = 240_000

export const STEPS: readonly Step[] = [
  {
    name: 'hosts of the hub and of the wildcard are answered',
    act: async (world) => world.applyHubHost('www', hostOf('www')),
    check: async (world) => besidesRoots(world),
  },
  {
    name: 'a root is admitted by every member, and is not answered before a probe has passed',
    async act(world) {
      await world.applyHub(({ kind }) => kind === 'Ingress')
      for (const name of ROOTS.slice(1)) await world.applyRoot(name)
      await eventually('every leaf has an address and a failed probe', async () => {
        const { items } = await world.client.list(DNSLoadBalancerEndpoint)
        const failed = items.filter(({ status }) => status?.healthy === false)
        const addresses = await Promise.all(ROOTS.map(async (name) => statusOf(world, name)))
        return failed.length === ROOTS.length * MEMBERS.length && addresses.every((text) => text === BOTH.join(' '))
          ? true
          : undefined
      })
      // What comes after the statuses of the roots is published: so would be what publish takes from them.
      await world.applyHubHost('after', hostOf('after'))
      await answersOf(world, 'after', [HUB_ADDRESS])
    },
    expected: { shop: [], pay: [], docs: [] },
  },
  {
    name: 'it is answered when the probes pass',
    async act(world) {
      // `shop` stays at the cluster that was healthy first: the preferred one, whatever the order of the probes.
      world.member('eu1').becomeHealthy()
      await answersOf(world, 'shop', [EU])
      world.member('us1').becomeHealthy()
    },
    expected: { shop: [EU], pay: BOTH, docs: BOTH },
  },
  {
    name: 'the address of a gateway that is stopped is not answered any more',
    act: async (world) => world.member('eu1').killGateway(),
    expected: { shop: [US], pay: [US], docs: [US] },
    limitMs: FAILOVER_MS,
  },
  {
    name: 'a manager that was killed answers the same when it is started again',
    async act(world) {
      await world.killManager()
      await world.startManager()
      await leads(world)
    },
    check: async (world) => besidesRoots(world),
  },
  {
    name: 'a gateway that is back is answered again, where its policy does not wait for a person',
    act: async (world) => world.member('eu1').startGateway(),
    expected: { pay: BOTH, docs: BOTH },
  },
  {
    name: 'a cluster that is drained is not answered, and has no leaf',
    async act(world) {
      const ran = await world.run('drain', 'eu1', '--wait', '--timeout', '60')
      if (ran.code !== 0) throw new Error(`drain: exit code ${ran.code}\n${ran.stdout}${ran.stderr}`)
    },
    expected: { shop: [US], pay: [US], docs: [US] },
    async check(world) {
      const { items } = await world.member('eu1').server.client.list(Ingress)
      return items.map(({ metadata }) => `eu1 has Ingress ${metadata.namespace}/${metadata.name}`)
    },
  },
  {
    name: 'a cluster that is not drained any more is answered',
    async act(world) {
      const ran = await world.run('undrain', 'eu1')
      if (ran.code !== 0) throw new Error(`undrain: exit code ${ran.code}\n${ran.stderr}`)
    },
    expected: { pay: BOTH, docs: BOTH },
  },
  {
    name: 'an API server that cannot be reached costs no address',
    async act(world) {
      const { relay } = world.member('eu1')
      relay.freeze()
      relay.cut()
      await eventually('eu1 is not ready', async () => ((await readyOf(world, 'eu1')) === 'True' ? undefined : true))
    },
    check: async (world) => besidesRoots(world),
  },
  {
    name: 'and none when it is back',
    async act(world) {
      world.member('eu1').relay.thaw()
      world.member('eu1').relay.cut()
      await eventually('eu1 is ready', async () => ((await readyOf(world, 'eu1')) === 'True' ? true : undefined))
    },
  },
  {
    name: 'a host that a root has is not published for another object, and both say so',
    async act(world) {
      await world.applyHubHost('rival', hostOf('pay'))
      await eventually('an address of web/rival', async () => {
        const rival = await world.client.get(Ingress, 'web/rival')
        return rival.status?.loadBalancer?.ingress?.length === 1 ? true : undefined
      })
      await world.applyHubHost('after-rival', hostOf('after-rival'))
      await answersOf(world, 'after-rival', [HUB_ADDRESS])
    },
    check: async (world) => conflictOf(world, { loser: 'web/rival', holder: 'shop/pay' }),
  },
  {
    name: 'a host that another object has is not said to be published by a root',
    async act(world) {
      await world.applyHubHost(LATE, hostOf(LATE))
      await answersOf(world, LATE, [HUB_ADDRESS])
      // Of one second the root would be the older one, by its namespace.
      const { metadata } = await world.client.get(Ingress, `web/${LATE}`)
      const createdMs = Date.parse(metadata.creationTimestamp ?? '')
      await eventually('the next second', async () => (Date.now() - createdMs >= 1_000 ? true : undefined))
      await world.applyRoot(LATE)
      await eventually('every leaf of late has an address', async () =>
        (await statusOf(world, LATE)) === BOTH.join(' ') ? true : undefined,
      )
    },
    check: async (world) => contradictionsOfLate(world),
  },
  {
    name: 'a root that is deleted, by a manager that is killed meanwhile, leaves nothing',
    async act(world) {
      await world.client.delete(Ingress, 'shop/pay')
      await eventually('its load balancer is withdrawn', async () => {
        const { items } = await world.client.list(DNSLoadBalancerEndpoint)
        const left = items.filter(({ metadata }) => metadata.annotations?.['seamark.io/root'] === 'pay')
        return left.every(({ metadata, spec }) => spec.drain === true || metadata.deletionTimestamp !== undefined)
          ? true
          : undefined
      })
      await world.killManager()
      await world.startManager()
      await eventually(
        'no leaf and no root',
        async () => {
          const leaves = (await world.client.list(LeafIngress)).items.filter(
            ({ metadata }) => metadata.annotations?.['seamark.io/root'] === 'pay',
          )
          const onMembers = await Promise.all(
            [...world.members.values()].map(async ({ server }) => server.client.find(Ingress, 'shop/pay')),
          )
          const root = await world.client.find(Ingress, 'shop/pay')
          return leaves.length === 0 && root === undefined && onMembers.every((each) => each === undefined)
            ? true
            : undefined
        },
        TEARDOWN_MS,
      )
    },
    // The Ingress that waited for the host gets it.
    expected: { pay: [HUB_ADDRESS] },
    deleted: ['pay'],
    check: async (world) => besidesRoots(world),
  },
]

async function statusOf(world: World, name: string): Promise<string> {
  const root = await world.client.find(Ingress, `shop/${name}`)
  const ingress = root?.status?.loadBalancer?.ingress ?? []
  return ingress
    .map(({ ip }) => ip ?? '')
    .sort()
    .join(' ')
}

async function readyOf(world: World, name: string): Promise<string | undefined> {
  const { status } = await world.client.get(Cluster, name)
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status
}

/** Resolves when the manager publishes what is new: a process that was killed leaves its Lease to expire. */
async function leads(world: World): Promise<void> {
  const name = `led-${Date.now()}`
  await world.applyHubHost(name, hostOf(name))
  await answersOf(world, name, [HUB_ADDRESS])
}

async function answersOf(world: World, name: string, addresses: readonly string[]): Promise<void> {
  await eventually(`${hostOf(name)} is answered`, async () =>
    (await world.resolver.ask(hostOf(name)))?.join(' ') === addresses.join(' ') ? true : undefined,
  )
}

/** What publish, the gateway of the hub and wildcard do, whatever happens to the fleet. */
async function besidesRoots(world: World): Promise<string[]> {
  const wanted: [string, string][] = [
    [hostOf('www'), HUB_ADDRESS],
    ...MEMBERS.map((name): [string, string] => [`any.${name}.clusters.example.com`, NODE[name]]),
  ]
  const found: string[] = []
  for (const [host, address] of wanted) {
    const answer = (await world.resolver.ask(host))?.join(' ')
    if (answer !== address) found.push(`${host}: the zone answers ${answer || 'nothing'} and not ${address}`)
  }
  const got = await get(HUB_ADDRESS, hostOf('www'))
  if (got !== '200 eu1') found.push(`a client at the gateway of the hub gets ${got}`)
  return found
}

/** The older object has the host, what is said of the root is what the zone answers, and both say who has it. */
async function contradictionsOfLate(world: World): Promise<string[]> {
  const said = await contradictionsOf(world, hostOf(LATE), { expected: [HUB_ADDRESS], isOfRoot: false })
  return [...said, ...(await conflictOf(world, { loser: 'shop/late', holder: 'web/late' }))]
}

/** Each of two objects that name one host has an Event or a condition that names the other. */
async function conflictOf(
  world: World,
  { loser, holder }: { readonly loser: string; readonly holder: string },
): Promise<string[]> {
  const { items } = await world.client.list(Event)
  const notesOf = (key: string): string[] =>
    items
      .filter(({ regarding }) => `${regarding?.namespace}/${regarding?.name}` === key)
      .map(({ reason, note = '' }) => `${reason}: ${note}`)
  const found: string[] = []
  const lost = notesOf(loser).filter((note) => note.startsWith('ClaimHeldByOther') || note.startsWith('HostConflict'))
  if (!lost.some((note) => note.includes(holder)))
    found.push(`${loser} has no Event ClaimHeldByOther that names ${holder}: ${lost.join('; ') || 'none at all'}`)
  const conditions = await world.conditionsOf(holder)
  if (![...notesOf(holder), ...conditions].some((text) => text.includes(loser)))
    found.push(`${holder} has no Event and no condition that names ${loser}`)
  return found
}
