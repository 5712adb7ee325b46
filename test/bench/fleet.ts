/**
 * The fleet: planning, the cost of one change with few and many roots, writes of a steady state, the way of a change to its
 * members while one of them does not answer, and memory.
 */
import { parseScenario, playFleet } from '@seamark/cli/testing'
import { startRelay } from '@seamark/kube/testing'
import { planFactsOf, planRoot, proberInThisThread, readyCluster } from '@seamark/operator/testing'
import type { Figure } from './figure.ts'
import { addRoots, changeRoot, rootOf, seconds, startEnvironment } from './fleet/environment.ts'
import { steadyWrites } from './fleet/steady.ts'
import { residentBytes } from './resident.ts'

async function measurePlan(): Promise<number> {
  const clusters = Array.from({ length: 100 }, (_, index) => readyCluster(`c${index}`, { tier: 'prod' }))
  const roots = Array.from({ length: 1000 }, (_, index) => rootOf(index))
  const start = performance.now()
  let leaves = 0
  for (const root of roots) leaves += planRoot(planFactsOf(root, clusters)).leaves.length
  if (leaves !== 100_000) throw new Error(`${leaves} leaves`)
  return seconds(start)
}

async function measureSync(): Promise<number> {
  const relays: Awaited<ReturnType<typeof startRelay>>[] = []
  const environment = await startEnvironment(10, async (kubeconfig, index) => {
    if (index > 0) return kubeconfig
    const port = /https:\/\/127\.0\.0\.1:(\d+)/.exec(kubeconfig)?.[1] ?? ''
    const relay = await startRelay(Number(port))
    relays.push(relay)
    return kubeconfig.replace(`127.0.0.1:${port}`, `127.0.0.1:${relay.port}`)
  })
  try {
    await addRoots(environment, 0, 20)
    for (const relay of relays) relay.freeze()
    const reachable = { ...environment, members: environment.members.slice(1) }
    const times: number[] = []
    for (let change = 0; change < 100; change++) times.push(await changeRoot(reachable, change % 20, `/v${change}`))
    return times.sort((a, b) => a - b)[98] ?? Number.NaN
  } finally {
    for (const relay of relays) await relay.close()
    await environment.close()
  }
}

async function measureGrowth(): Promise<number> {
  const environment = await startEnvironment(1)
  const cost = async (): Promise<number> => {
    const before = process.cpuUsage()
    for (let change = 0; change < 40; change++) await changeRoot(environment, change, `/g${Math.random()}`)
    const { user, system } = process.cpuUsage(before)
    return user + system
  }
  try {
    await addRoots(environment, 0, 100)
    await cost()
    const few = await cost()
    // Without leaves: a member takes 20 writes a second, and the roots are what the cost could depend on.
    await addRoots(environment, 100, 10_000, { 'seamark.io/clusters': 'none' })
    await cost()
    return (await cost()) / few
  } finally {
    await environment.close()
  }
}

const WEB_ROOT = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: { namespace: 'shop', name: 'shop' },
  spec: {
    ingressClassName: 'global',
    rules: [
      {
        host: 'shop.fleet.test',
        http: {
          paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
        },
      },
    ],
  },
}

const policyOn = (clusters: readonly string[]) => ({
  apiVersion: 'seamark.io/v1alpha1',
  kind: 'GlobalIngressPolicy',
  metadata: { namespace: 'shop', name: 'shop' },
  spec: {
    targetRefs: [{ group: 'networking.k8s.io', kind: 'Ingress', name: 'shop' }],
    placement: { clusters },
    traffic: { ttlSeconds: 5 },
    health: { port: 'GATEWAY_PORT', intervalSeconds: 1, timeoutSeconds: 1, rise: 2, fall: 3 },
    migration: { drainSeconds: 5 },
  },
})

/** A client sends each request to one address of the answer, which it keeps for its TTL, and tries no other. */
async function measureDrain(): Promise<number> {
  const host = 'shop.fleet.test'
  const { sent, failed } = await playFleet(
    parseScenario({
      title: 'drain and move',
      clusters: ['eu1', 'us1', 'ap1'],
      steps: [
        { deploy: 'shop/web' },
        { apply: [policyOn(['eu1', 'us1']), WEB_ROOT] },
        { expect: { answers: { [host]: ['eu1', 'us1'] } } },
        { requests: { host, perSecond: 10, tries: 'one' } },
        { drain: 'us1' },
        { expect: { leaves: { 'shop/shop': 'eu1 Active' }, answers: { [host]: ['eu1'] } } },
        { apply: [policyOn(['ap1'])] },
        { expect: { leaves: { 'shop/shop': 'ap1 Active' }, answers: { [host]: ['ap1'] } } },
        { requests: 'end' },
      ],
    }),
    { line: () => undefined },
    new AbortController().signal,
    proberInThisThread(1),
  )
  if (sent < 100) throw new Error(`only ${sent} requests were sent`)
  return failed
}

/** The LeafIngresses of 1 000 roots on 100 clusters, as a cache has them. */
async function measureMemory(): Promise<number> {
  const clusters = Array.from({ length: 100 }, (_, index) => readyCluster(`c${index}`, { tier: 'prod' }))
  const leaves: unknown[] = []
  for (let index = 0; index < 1000; index++) {
    for (const leaf of planRoot(planFactsOf(rootOf(index), clusters)).leaves)
      leaves.push(
        JSON.parse(
          JSON.stringify({
            metadata: { name: leaf.name, namespace: 'shop', uid: `${index}` },
            spec: leaf.spec,
            status: { phase: 'Active', addresses: [{ type: 'IPAddress', value: '192.0.2.1' }] },
          }),
        ),
      )
  }
  globalThis.gc?.()
  const bytes = residentBytes('VmRSS')
  if (leaves.length !== 100_000) throw new Error(`${leaves.length} leaves`)
  return bytes / 2 ** 20
}

export const figures: Figure[] = [
  {
    name: 'fleet.plan',
    what: '100 clusters × 1 000 roots planned',
    unit: 's',
    bound: { max: 1 },
    against: '-',
    measure: measurePlan,
  },
  {
    name: 'fleet.growth',
    what: 'CPU of one root change with 10 000 roots ÷ with 100',
    unit: 'ratio',
    bound: { max: 1.2 },
    against: '100 roots',
    runs: 1,
    measure: measureGrowth,
  },
  steadyWrites,
  {
    name: 'fleet.sync',
    what: 'root change → applied on every reachable member, p99 of 100, 10 members, one black-holed',
    unit: 's',
    bound: { max: 2 },
    against: '-',
    runs: 1,
    measure: measureSync,
  },
  {
    name: 'fleet.drain.failed',
    what: 'failed requests while a cluster is drained and while a host moves: 10 requests/s, a resolver that honours the TTL',
    unit: 'requests',
    bound: { max: 0 },
    against: '-',
    runs: 1,
    measure: measureDrain,
  },
  {
    name: 'fleet.memory',
    what: 'resident with 100 000 leaves as objects',
    unit: 'MB',
    bound: { max: 1024 },
    against: '-',
    runs: 1,
    measure: measureMemory,
  },
]
