/**
 * `seamark dnslb`: load balancing as dnslb-controller-manager does it, in one or two clusters, writing to DNS providers
 * directly with the original's ownership records.
 *
 * Flow: CRDs in the target cluster → leases → one manager on the target cluster; a separate source cluster is a member of
 * its fleet. Every Kubernetes write of either cluster passes a gate that closes when a lease is lost. The leases are released
 * when nothing writes any more, so that another process continues at once; the caller closes the clusters.
 */
import { type Cluster, CustomResourceDefinition, type Manager, manager } from '@seamark/kube'
import { keepStoredVersions, loadBalancerCrds } from '../api/crds/dns-load-balancer-crds.ts'
import { installCrds } from '../api/crds/install-crds.ts'
import { setUpEndpointSources } from '../balance/source/endpoint-controller.ts'
import { gateWrites, WriteRefused } from '../process/write-gate.ts'
import { setUpDns } from './dns-controllers.ts'
import { addHeartbeat, Heartbeat } from './heartbeat.ts'
import { CONFIG_MAP_LEASE_PATH, createLeases } from './leases.ts'
import type { DnslbOptions } from './options.ts'

const GRACE_MS = 4_500

export async function runDnslb(options: DnslbOptions, signal: AbortSignal): Promise<void> {
  const { target, source, controllers, clock, log, fieldManager } = options
  await ensureCrds(target, signal)
  if (signal.aborted) return
  const leased = options.hasLeases ? leaseClients(options) : []
  const leases = createLeases(leased, { clock, log })
  const stop = new AbortController()
  const until = AbortSignal.any([signal, stop.signal])
  await leases.acquire(until)
  if (signal.aborted) return leases.release()
  const mgr = await manager({ cluster: keepOpen(target), fieldManager, log, clock, grace: GRACE_MS })
  for (const cluster of new Set([target, source?.cluster ?? target]))
    gateWrites(
      cluster,
      () => {
        if (!leases.isLeading) throw new WriteRefused('NOT_LEADING', 'this process does not hold its leases')
      },
      // One is released after the other.
      (path) => path === CONFIG_MAP_LEASE_PATH,
    )
  const heartbeat = new Heartbeat(clock, options.healthTimeoutMs)
  if (controllers.endpoint) setUpEndpoints(mgr, options, heartbeat)
  const monitors = controllers.dns ? [await setUpDns(mgr, options, heartbeat, () => stop.abort())] : []
  options.onManager?.({ manager: mgr, heartbeat })
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
    for (const monitor of monitors) await monitor.stop()
    await leases.release()
  }
  await lost
}

/** The manager closes its clusters when it ends, and the leases are released after that. */
function keepOpen(cluster: Cluster): Cluster {
  return Object.create(cluster, { close: { value: async () => undefined } }) as Cluster
}

/** One for each cluster connection that controllers work on. */
function leaseClients({ target, source, controllers }: DnslbOptions) {
  if (source === undefined) return [target.client]
  return [...(controllers.dns ? [target.client] : []), ...(controllers.endpoint ? [source.cluster.client] : [])]
}

/** The controllers wait until the kinds are served. */
async function ensureCrds({ client }: Cluster, signal: AbortSignal): Promise<void> {
  await installCrds(client, loadBalancerCrds(), signal, keepStoredVersions)
  for (const { metadata } of loadBalancerCrds()) {
    const found = await client.find(CustomResourceDefinition, metadata.name ?? '', { signal })
    const refused = found?.status?.conditions?.find(
      ({ type, status }) => type === 'NamesAccepted' && status === 'False',
    )
    if (refused !== undefined) throw new Error(`failed to wait for CRD: Name conflict: ${refused.reason ?? ''}`)
  }
}

function setUpEndpoints(mgr: Manager, options: DnslbOptions, heartbeat: Heartbeat): void {
  const { source, defaults, fieldManager } = options
  setUpEndpointSources(mgr, { defaults, ...(source !== undefined && { source: { ...source, fieldManager } }) })
  if (source !== undefined) mgr.fleet.engage(keepOpen(source.cluster))
  addHeartbeat(mgr, heartbeat, 'endpoint', source === undefined ? 'local' : 'fleet')
}
