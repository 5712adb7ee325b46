import { memoryCluster } from '@seamark/kube/testing'
import { Ingress } from '@seamark/kube'
import { describe, expect, it } from 'vitest'
import { Cluster } from '../api/cluster.ts'
import { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import { GlobalIngress } from '../api/global-ingress.ts'
import { HostClaim } from '../api/host-claim.ts'
import { claimName } from './decide/host-claim.ts'
import { LeafIngress } from '../api/leaf-ingress.ts'
import { LEAF_CLUSTER_LABEL } from './names.ts'
import { ROOT_UID_LABEL } from '../hosts/root.ts'
import { explain } from '../explain/chain.ts'
import {
  fleetHops,
  type HostTrace,
  printTree,
  publishedAddresses,
  storedAnswer,
  traceHost,
  waitingOf,
} from './trace.ts'

/** As `seamark tree` says it of a host whose servers cannot be asked, while the manager runs. */
function verdictOf(found: HostTrace): string {
  const stored = storedAnswer(found)
  const waiting = waitingOf(found)
  const { verdict } = explain({
    host: found.host,
    sources: [],
    targets: [],
    addressFindings: [],
    certificate: undefined,
    endpoint: undefined,
    plan: undefined,
    answers: [],
    published: found.roots.every(({ isDeleting }) => isDeleting) ? [] : ['192.0.2.1'],
    fleet: fleetHops(found),
    manager: { isPaused: false, mode: 'enforce', lease: { key: 'seamark/leader', state: 'held' } },
    ...(stored !== undefined && { storedAnswer: stored }),
    ...(waiting !== undefined && { waiting }),
  })
  return verdict.text
}

const HOST = 'shop.example.com'
const ADDRESSES = { eu1: '192.0.2.1', us1: '192.0.2.2' }

/** A root with two leaves; balance publishes that of us1. `answered`: what the manager saw of the DNS servers. */
async function trace(answered?: readonly string[]) {
  const cluster = memoryCluster()
  cluster.put(GlobalIngress, {
    metadata: { namespace: 'shop', name: 'shop' },
    spec: { hosts: [{ host: HOST }], rootRef: { kind: 'Ingress', name: 'shop', uid: 'u' } },
    ...(answered !== undefined && { status: { answered } }),
  } as unknown as GlobalIngress)
  for (const [name, value] of Object.entries(ADDRESSES)) {
    const labels = { [ROOT_UID_LABEL]: 'u', [LEAF_CLUSTER_LABEL]: name }
    const metadata = { namespace: 'shop', name: `shop-${name}`, labels }
    cluster.put(Cluster, { metadata: { name }, spec: {} } as unknown as Cluster)
    cluster.put(LeafIngress, {
      metadata,
      spec: { cluster: name },
      status: { addresses: [{ type: 'IPAddress', value }] },
    } as unknown as LeafIngress)
    cluster.put(DNSLoadBalancerEndpoint, {
      metadata,
      spec: { loadbalancer: 'shop', ipaddress: value, drain: name === 'eu1' },
      status: { healthy: true, active: name === 'us1' },
    })
  }
  const found = await traceHost(cluster.client, HOST)
  if (found === undefined) throw new Error('no trace')
  return found
}

const states = async (answered?: readonly string[]) =>
  printTree(await trace(answered), '')
    .split('\n')
    .flatMap((line) => /(192\.0\.2\.\d {2}.*|DNS answers.*)$/.exec(line)?.[1] ?? [])

it('the tree shows what balance decided, and as answered only what DNS servers answer', async () => {
  expect(await states()).toEqual(['192.0.2.1  withdrawn', '192.0.2.2  published'])
  expect(await states(['192.0.2.2'])).toEqual(['192.0.2.1  withdrawn', '192.0.2.2  answered'])
})

it('the tree shows where the DNS servers answer something else', async () => {
  expect(await states(['192.0.2.1', '192.0.2.2'])).toEqual([
    '192.0.2.1  withdrawn, still answered',
    '192.0.2.2  answered',
  ])
  expect(await states(['192.0.2.9'])).toEqual([
    '192.0.2.1  withdrawn',
    '192.0.2.2  published, not answered',
    'DNS answers 192.0.2.9, which no leaf has; seamark explain shop.example.com shows why',
  ])
})

it('explain compares an answer with the addresses that balance publishes', async () => {
  expect(publishedAddresses(await trace())).toEqual(['192.0.2.2'])
})

const YEAR = '2029-01-01'
const ready = (status: 'True' | 'False', reason: string, message: string) => ({
  type: 'Ready',
  status,
  reason,
  message,
})
const published = { type: 'DNSPublished', status: 'True', reason: 'Published', message: 'DNS answers the hosts' }

interface Given {
  readonly leaves?: Record<string, object>
  readonly conditions?: readonly object[]
  readonly status?: object
  readonly isRootDeleting?: boolean
  readonly draining?: string
}

/** A host of one root, with what the manager stored. */
async function stored({ leaves = {}, conditions = [], status = {}, isRootDeleting = false, draining }: Given) {
  const cluster = memoryCluster()
  const owner = { kind: 'Ingress', name: 'shop', uid: 'u' }
  const deletion = isRootDeleting ? { deletionTimestamp: `${YEAR}T00:00:00Z`, finalizers: ['seamark.io/global'] } : {}
  cluster.put(Ingress, { metadata: { namespace: 'shop', name: 'shop', uid: 'u', ...deletion } })
  cluster.put(GlobalIngress, {
    metadata: { namespace: 'shop', name: 'shop' },
    spec: {
      hosts: [{ host: HOST }],
      rootRef: owner,
      strategy: 'roundRobin',
      ttlSeconds: 30,
      onAllUnhealthy: 'ServeLast',
    },
    status: { conditions, ...status },
  } as unknown as GlobalIngress)
  cluster.put(HostClaim, {
    metadata: { name: claimName(HOST) },
    spec: { host: HOST, namespace: 'shop', owners: [owner] },
  })
  for (const [name, leaf] of Object.entries(leaves)) {
    const labels = { [ROOT_UID_LABEL]: 'u', [LEAF_CLUSTER_LABEL]: name }
    const conditions_ = [{ type: 'Ready', status: 'True', reason: 'ClusterReady', message: '' }]
    const spec = name === draining ? { drain: { enabled: true } } : {}
    cluster.put(Cluster, { metadata: { name }, spec, status: { conditions: conditions_ } } as unknown as Cluster)
    cluster.put(LeafIngress, {
      metadata: { namespace: 'shop', name: `shop-${name}`, labels },
      spec: { cluster: name },
      status: leaf,
    } as unknown as LeafIngress)
  }
  const found = await traceHost(cluster.client, HOST)
  if (found === undefined) throw new Error('no trace')
  const lines = printTree(found, verdictOf(found)).trimEnd().split('\n')
  return { lines, hops: fleetHops(found), verdict: lines.filter((line) => line.startsWith(`${HOST} is `)) }
}

const ACTIVE = { phase: 'Active', reason: 'Serving' }

describe('the verdict of the tree', () => {
  it('a root of which no leaf can be made is broken, for the reason that no leaf can be made', async () => {
    const message = 'no leaf: cluster eu1: the Cluster maps none of the parents of the HTTPRoute'
    const { lines, verdict, hops } = await stored({
      conditions: [
        { type: 'Placed', status: 'True', reason: 'Placed', message: 'on 1 of 1 clusters' },
        ready('False', 'NoMatchingParent', message),
        { type: 'DNSPublished', status: 'False', reason: 'NoMatchingParent', message },
      ],
    })
    expect(lines[1]).toBe(`└─ Ingress shop/shop  NoMatchingParent: ${message}`)
    expect(verdict).toEqual([`${HOST} is broken at placement: the Cluster maps none of the parents of the HTTPRoute`])
    expect(hops.find(({ name }) => name === 'placement')).toMatchObject({ state: 'broken', text: message })
  })

  it('a root that is being deleted does not serve, and says until when its leaves stay', async () => {
    const leaves = { eu1: ACTIVE }
    const conditions = [ready('True', 'Serving', '1/1 leaves serve'), published]
    // From the first moment: the manager has not written anything yet.
    const first = await stored({ leaves, conditions, isRootDeleting: true })
    expect(first.lines[1]).toBe('└─ Ingress shop/shop  being deleted: waits for the withdrawal of its DNS records')
    const status = { withdrawnAt: `${YEAR}T15:55:03Z`, leavesUntil: `${YEAR}T15:56:03Z` }
    const { lines, verdict } = await stored({ leaves, conditions, status })
    const text = 'being deleted: waits for caches that may have its addresses until 15:56:03Z'
    expect(lines[1]).toBe(`└─ Ingress shop/shop  ${text}`)
    expect(verdict).toEqual([`${HOST} is ${text}`])
  })

  it('a cluster that failed over as designed makes a host degraded, and the last one makes it broken', async () => {
    const failed = { phase: 'Unhealthy', reason: 'ProbeFailed' }
    const conditions = [ready('True', 'Serving', '1/2 leaves serve'), published]
    const over = await stored({ leaves: { eu1: failed, us1: ACTIVE }, conditions })
    expect(over.verdict).toEqual([`${HOST} is degraded at leaf: the health check of the leaf fails`])
    const none = await stored({ leaves: { eu1: failed, us1: failed }, conditions })
    expect(none.verdict).toEqual([`${HOST} is broken at leaf: the health check of the leaf fails`])
  })

  it('a drain and a move that were asked for are no fault, and say what they wait for', async () => {
    const leaving = { phase: 'Draining', reason: 'DrainWait', waitsUntil: `${YEAR}T15:56:03Z` }
    const conditions = [ready('True', 'Serving', '1/1 leaves serve'), published]
    const given = { leaves: { eu1: leaving, us1: ACTIVE }, conditions }
    const drained = await stored({ ...given, draining: 'eu1' })
    const text = 'waits for caches that may have the addresses of eu1 until 15:56:03Z'
    expect(drained.verdict).toEqual([`${HOST} is being drained: ${text}`])
    expect(drained.lines[2]).toMatch(/eu1 .*Draining DrainWait: .*, until 15:56:03Z$/)
    expect((await stored(given)).verdict).toEqual([`${HOST} is being moved: ${text}`])
    const stuck = { leaves: { eu1: { phase: 'Draining', reason: 'NoReplacement' } }, conditions, draining: 'eu1' }
    expect((await stored(stuck)).verdict).toEqual([
      `${HOST} is degraded at leaf: no other leaf serves, so that this one stays in DNS`,
    ])
  })

  it('is broken where DNS servers answer something else than what is published', async () => {
    const differs = { ...published, status: 'False', reason: 'AnswerDiffers', message: 'ns1 answers 192.0.2.9' }
    const { verdict } = await stored({
      leaves: { eu1: ACTIVE },
      conditions: [ready('False', 'NotYetPropagated', ''), differs],
    })
    expect(verdict).toEqual([`${HOST} is broken at answer: a DNS server answers other values than the desired ones`])
  })

  it('lists every cluster without a leaf, with what to change, and so does the hop placement', async () => {
    const message = 'it is not ready; seamark cluster list shows why'
    const { lines, hops } = await stored({
      leaves: { eu1: ACTIVE },
      conditions: [
        { type: 'Placed', status: 'True', reason: 'Placed', message: `on 1 of 5 clusters; not on ap1: ${message}` },
        ready('True', 'Serving', '1/1 leaves serve'),
        published,
      ],
      status: {
        notPlaced: [
          { reason: 'ClusterNotReady', message, clusters: ['ap1', 'ap2', 'ap3'] },
          { reason: 'ClusterTainted', message: 'taint x is not tolerated', clusters: ['us1'] },
        ],
      },
    })
    expect(lines).toContain(`   no leaf on ap1, ap2, ap3  ClusterNotReady: ${message}`)
    expect(lines).toContain('   no leaf on us1  ClusterTainted: taint x is not tolerated')
    expect(hops.find(({ name }) => name === 'placement')).toMatchObject({
      state: 'ok',
      text: `on 1 of 5 clusters; not on ap1, ap2, ap3: ${message}; not on us1: taint x is not tolerated`,
    })
  })
})
