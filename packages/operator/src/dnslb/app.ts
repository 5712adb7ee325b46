/**
 * `seamark dnslb`: load balancing as dnslb-controller-manager does it, in one or two clusters, writing to DNS providers
 * directly with the original's ownership records.
 *
 * Flow: probes and metrics → CRDs in the target cluster → for each cluster that the process works in, side by side: its leases →
 * a manager with the controllers of that cluster. With one cluster there is one manager; with a separate source cluster a second
 * one, whose fleet has the source cluster as its member. A manager whose leases another process holds waits and delays no other.
 * Every Kubernetes write passes a gate that closes when a lease of its manager is lost. The leases are released when nothing
 * writes any more, so that another process continues at once; the caller closes the clusters.
 */
import { type Cluster, CustomResourceDefinition, type Manager, manager } from '@seamark/kube'
import { keepStoredVersions, loadBalancerCrds } from '../api/crds/dns-load-balancer-crds.ts'
import { installCrds } from '../api/crds/install-crds.ts'
import { setUpEndpointSources } from '../balance/source/endpoint-controller.ts'
import { gateWrites, WriteRefused } from '../process/write-gate.ts'
import { setUpDns } from './dns-controllers.ts'
import { addHeartbeat, Heartbeat } from './heartbeat.ts'
import { CONFIG_MAP_LEASE_PATH, createLeases, LEASE_NAME, type Leases, NO_LEASES } from './leases.ts'
import type { DnslbOptions } from './options.ts'

const GRACE_MS = 4_500

/** Stopped after the controllers. */
interface Probing {
  stop(): Promise<void>
}

/** What works under the leases of one cluster connection. */
interface Unit {
  readonly manager: Manager
  readonly leases: Leases
  /** The connections that it writes to. */
  readonly clusters: readonly Cluster[]
  /** Declares the controllers. Returns what probes, if anything does. */
  readonly setUp: () => Promise<Probing | undefined>
}

export async function runDnslb(options: DnslbOptions, signal: AbortSignal): Promise<void> {
  const stop = new AbortController()
  const until = AbortSignal.any([signal, stop.signal])
  const heartbeat = new Heartbeat(options.clock, options.healthTimeoutMs)
  const units = await createUnits(options, heartbeat, () => stop.abort())
  const [first] = units
  if (first !== undefined) await options.onStart?.({ metrics: first.manager.metrics, heartbeat })
  await ensureCrds(options.target, until)
  const running = units.map(async (unit) => {
    try {
      await runUnit(unit, until)
    } finally {
      stop.abort()
    }
  })
  const failed = (await Promise.allSettled(running)).find((result) => result.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

async function createUnits(options: DnslbOptions, heartbeat: Heartbeat, stop: () => void): Promise<Unit[]> {
  const { target, source, controllers, clock, log, fieldManager } = options
  let metrics: Manager['metrics'] | undefined
  /** @param name of the connection in logs and metrics; empty: there is one only */
  const createUnit = async (
    name: string,
    leased: Cluster,
    clusters: readonly [own: Cluster, ...others: Cluster[]],
    setUp: (mgr: Manager) => Promise<Probing | undefined>,
  ): Promise<Unit> => {
    const about = name === '' ? log : log.child({ cluster: name })
    const shared = metrics === undefined ? {} : { sharedMetrics: metrics }
    const mgr = await manager({ cluster: keepOpen(clusters[0]), fieldManager, log, clock, grace: GRACE_MS, ...shared })
    ;({ metrics } = mgr)
    const report = (isLeading: boolean) =>
      mgr.metrics.leading(name === '' ? LEASE_NAME : `${name}/${LEASE_NAME}`, isLeading)
    if (options.hasLeases) report(false)
    const leases = options.hasLeases ? createLeases(leased.client, { clock, log: about, onChange: report }) : NO_LEASES
    return { manager: mgr, leases, clusters, setUp: async () => setUp(mgr) }
  }
  const endpoints = async (mgr: Manager) => setUpEndpoints(mgr, options, heartbeat)
  const dns = async (mgr: Manager) => setUpDns(mgr, options, heartbeat, stop)
  if (source === undefined)
    return [
      await createUnit('', target, [target], async (mgr) => {
        if (controllers.endpoint) await endpoints(mgr)
        return controllers.dns ? dns(mgr) : undefined
      }),
    ]
  const units: Unit[] = []
  if (controllers.dns) units.push(await createUnit('target', target, [target], dns))
  if (controllers.endpoint)
    units.push(await createUnit(source.id, source.cluster, [source.target, source.cluster], endpoints))
  return units
}

/** Resolves when the signal aborts; rejects with the failure of a part, and when a lease is lost. */
async function runUnit({ manager: mgr, leases, clusters, setUp }: Unit, signal: AbortSignal): Promise<void> {
  const stop = new AbortController()
  const until = AbortSignal.any([signal, stop.signal])
  let probing: Probing | undefined
  try {
    await leases.acquire(until)
    if (until.aborted) return
    for (const cluster of clusters) gate(cluster, leases)
    probing = await setUp()
    const held = leases.hold(until)
    const lost = held.catch((error: unknown) => {
      stop.abort()
      throw error
    })
    lost.catch(() => undefined)
    try {
      await mgr.run(until)
    } finally {
      stop.abort()
    }
    await lost
  } finally {
    stop.abort()
    await probing?.stop()
    await leases.release()
  }
}

function gate(cluster: Cluster, leases: Leases): void {
  gateWrites(
    cluster,
    () => {
      if (!leases.isLeading) throw new WriteRefused('NOT_LEADING', 'this process does not hold its leases')
    },
    // One is released after the other.
    (path) => path === CONFIG_MAP_LEASE_PATH,
  )
}

/** The manager closes its clusters when it ends, and the leases are released after that. */
function keepOpen(cluster: Cluster): Cluster {
  return Object.create(cluster, { close: { value: async () => undefined } }) as Cluster
}

/** The controllers wait until the kinds are served. */
async function ensureCrds({ client }: Cluster, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await installCrds(client, loadBalancerCrds(), signal, keepStoredVersions)
  for (const { metadata } of loadBalancerCrds()) {
    const found = await client.find(CustomResourceDefinition, metadata.name ?? '', { signal })
    const refused = found?.status?.conditions?.find(
      ({ type, status }) => type === 'NamesAccepted' && status === 'False',
    )
    if (refused !== undefined) throw new Error(`failed to wait for CRD: Name conflict: ${refused.reason ?? ''}`)
  }
}

function setUpEndpoints(mgr: Manager, options: DnslbOptions, heartbeat: Heartbeat): undefined {
  const { source, defaults, fieldManager } = options
  setUpEndpointSources(mgr, { defaults, ...(source !== undefined && { source: { ...source, fieldManager } }) })
  if (source !== undefined) mgr.fleet.engage(keepOpen(source.cluster))
  addHeartbeat(mgr, heartbeat, 'endpoint', source === undefined ? 'local' : 'fleet')
}
