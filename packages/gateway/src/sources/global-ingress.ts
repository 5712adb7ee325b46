/**
 * Mode `global`: the hosts of GlobalIngresses lead to the gateways of the clusters that serve them, with weight, priority and
 * active health checks. Unlike DNS this needs no TTL to take a cluster out.
 *
 * Hosts, paths and certificates are those of the root if it is an Ingress; other roots have one route per host. A host without
 * a certificate on this cluster is passed through over TLS. Requests go to the port that the policy probes.
 */
import { byAge, findGrantFault } from '@seamark/dialects'
import { addressGuard, Ingress, messageOf, type AddressGuard } from '@seamark/kube'
import { isIP } from 'node:net'
import { keyOf, kind, type Immutable, type Obj } from '@seamark/kube/object'
import type { Draft } from '../draft/draft.ts'
import { originOf } from '../draft/origin.ts'
import type { BuildSettings, Objects } from '../draft/input.ts'
import type { Action, Cluster, HealthCheck, WeightedAddress } from '../ir/model.ts'
import { nameCluster } from '../ir/names.ts'
import type { Allowance } from '../draft/limits.ts'
import type { Parts } from '../draft/turns.ts'
import { addIngress, DEFAULT_IDLE_MS, sizeOf } from './ingress.ts'
import { hostName, singleLabelMatch } from './wildcard-host.ts'

/** The fields that are read; the fleet of the hub writes them. */
export interface GlobalIngress extends Obj {
  spec?: {
    rootRef?: { apiVersion?: string; kind?: string; name?: string }
    hosts?: { host: string; managed?: string }[]
    clusters?: { name: string; state?: string; weight?: number; priority?: number }[]
    strategy?: string
    health?: {
      scheme?: string
      port?: number
      path?: string
      host?: string
      statusCodes?: number[]
      expectedStatus?: string[]
      intervalSeconds?: number
      timeoutSeconds?: number
      rise?: number
      fall?: number
    }
  }
  status?: { leaves?: { cluster: string; phase?: string; addresses?: string[] }[] }
}

export const GlobalIngress = kind<GlobalIngress>({
  group: 'seamark.io',
  version: 'v1alpha1',
  kind: 'GlobalIngress',
  plural: 'globalingresses',
  namespaced: true,
})

/** Phases of a leaf whose addresses can get requests; the health checks decide. */
const USABLE_PHASES = new Set(['Admitted', 'Warming', 'Active', 'Unhealthy', 'Draining'])
/** Used when no other leaf is healthy. */
const LAST_PHASES = new Set(['Unhealthy', 'Draining'])
const DEFAULT_WEIGHT = 100
/** Weights are integers: the share of a cluster is divided among its addresses. */
const WEIGHT_SCALE = 1_000

export function* addGlobalIngresses(
  draft: Draft,
  objects: Objects,
  settings: BuildSettings,
  allowance: Allowance,
): Parts<void> {
  const isRefused = addressGuard({ allowLoopback: settings.allowsLoopback })
  for (const global of objects.list(GlobalIngress).toSorted(byAge(GlobalIngress))) {
    try {
      yield* addGlobalIngress(draft, objects, settings, isRefused, global, allowance)
    } catch (error) {
      report(draft, global, 'Unreadable', `the object cannot be read: ${messageOf(error)}; it is not served`)
    }
  }
}

function* addGlobalIngress(
  draft: Draft,
  objects: Objects,
  settings: BuildSettings,
  isRefused: AddressGuard,
  global: Immutable<GlobalIngress>,
  allowance: Allowance,
): Parts<void> {
  const { hosts = [], rootRef } = global.spec ?? {}
  const { addresses, refused } = addressesOf(global, isRefused)
  for (const message of refused) report(draft, global, 'AddressRefused', message)
  if (addresses.length === 0) return
  const { namespace = '' } = global.metadata
  const names = new Set<string>()
  for (const name of hosts
    .flatMap(({ host, managed = '' }) => [host, managed])
    .flatMap((each) => hostName(each) ?? [])) {
    const isManaged = hosts.some(({ managed = '' }) => hostName(managed) === name)
    // A managed host is the fleet's own.
    const fault = isManaged ? undefined : findGrantFault(settings.grants, namespace, name)
    if (fault === undefined) names.add(name)
    else report(draft, global, 'NameNotGranted', `host ${name} is not served: ${fault}`)
  }
  const clusterFor = (host: string, isRaw = false): string =>
    draft.addCluster(clusterOf(global, host, addresses, settings, isRaw))
  const root =
    rootRef?.kind === 'Ingress'
      ? objects.get(Ingress, `${global.metadata.namespace ?? ''}/${rootRef.name ?? ''}`)
      : undefined
  const size = root === undefined ? { routes: names.size, patterns: 0 } : sizeOf(root)
  const limit = allowance.takePatterns(namespace, size.patterns) ?? allowance.takeRoutes(namespace, size.routes)
  if (limit !== undefined) return report(draft, global, limit.reason, `${limit.message}; it is not served`)
  const secured =
    root === undefined
      ? new Set<string>()
      : yield* addIngress(
          draft,
          objects,
          root,
          (_ingress, _backend, { host }) => forwardTo(clusterFor(host), settings),
          // A rule without a host, or with one that another root owns, must not take its requests.
          (host) => names.has(host),
        )
  for (const host of names) {
    const isInRoot = root?.spec?.rules?.some((rule) => hostName(rule.host ?? '') === host) === true
    if (!isInRoot) addWholeHost(draft, settings, global, host, clusterFor(host))
    if (!secured.has(host) && global.spec?.health?.scheme === 'https')
      draft.setTcp(
        host,
        { backends: [{ cluster: clusterFor(host, true), weight: 1 }] },
        originOf('GlobalIngress', global, 'spec.hosts'),
      )
  }
}

function addWholeHost(
  draft: Draft,
  settings: BuildSettings,
  global: Immutable<GlobalIngress>,
  host: string,
  cluster: string,
): void {
  const oneLabel = singleLabelMatch(host)
  draft.addRoute('http', host, {
    match: { path: { kind: 'prefix', value: '/' }, headers: oneLabel === undefined ? [] : [oneLabel], query: [] },
    action: forwardTo(cluster, settings),
    upgradesToHttps: false,
    origin: originOf('GlobalIngress', global, 'spec.hosts'),
    order: '',
  })
}

function forwardTo(cluster: string, { timeoutMs }: BuildSettings): Action {
  return {
    kind: 'forward',
    backends: [{ cluster, weight: 1 }],
    mirrors: [],
    hash: [],
    // Another cluster is tried when one does not answer at all; what it answered is passed on.
    retry: { count: 1, on: ['connect-failure'], statusCodes: [] },
    timeoutMs,
    idleTimeoutMs: DEFAULT_IDLE_MS,
    hasWebsocket: true,
  }
}

/** @param isRaw TLS connections are passed on unread */
function clusterOf(
  global: Immutable<GlobalIngress>,
  host: string,
  addresses: readonly WeightedAddress[],
  { connectTimeoutMs }: BuildSettings,
  isRaw: boolean,
): Cluster {
  const { health } = global.spec ?? {}
  const isTls = health?.scheme === 'https' && !isRaw
  const sni = host.startsWith('*.') ? health?.host : host
  const healthCheck = isRaw ? undefined : healthCheckOf(global, host)
  return nameCluster(`global/${keyOf(global)}`, {
    upstream: { kind: 'addresses', addresses },
    protocol: isTls ? 'tls' : 'http1',
    ...(isTls && { tls: { ...(sni !== undefined && { sni }) } }),
    balancing: 'random',
    ...(healthCheck !== undefined && { healthCheck }),
    connectTimeoutMs,
  })
}

/** TCP is not probed here: the phase of the leaf has the verdict of the hub. */
function healthCheckOf({ spec }: Immutable<GlobalIngress>, host: string): HealthCheck | undefined {
  const { health } = spec ?? {}
  if (health === undefined || health.scheme === 'tcp') return undefined
  return {
    path: health.path ?? '/',
    host: health.host ?? (host.startsWith('*.') ? host.slice(2) : host),
    intervalMs: (health.intervalSeconds ?? 10) * 1_000,
    timeoutMs: (health.timeoutSeconds ?? 5) * 1_000,
    unhealthyThreshold: health.fall ?? 3,
    healthyThreshold: health.rise ?? 2,
    expectedStatuses: expectedStatusesOf(health),
  }
}

/** `"200-299"` has both of its ends; ranges of Envoy are without their end. */
function expectedStatusesOf({
  statusCodes = [],
  expectedStatus = [],
}: {
  readonly statusCodes?: readonly number[]
  readonly expectedStatus?: readonly string[]
}): HealthCheck['expectedStatuses'] {
  const texts = [...statusCodes.map(String), ...expectedStatus]
  return texts.map((text) => {
    const [first = '', last = first] = text.split('-')
    return { start: Number(first), end: Number(last) + 1 }
  })
}

function addressesOf(
  { spec, status }: Immutable<GlobalIngress>,
  isRefused: AddressGuard,
): { addresses: WeightedAddress[]; refused: string[] } {
  const { clusters = [], strategy, health } = spec ?? {}
  const port = health?.port ?? (health?.scheme === 'https' ? 443 : 80)
  const found: WeightedAddress[] = []
  const refused: string[] = []
  for (const { cluster, phase = '', addresses = [] } of status?.leaves ?? []) {
    if (!USABLE_PHASES.has(phase)) continue
    const planned = clusters.find(({ name }) => name === cluster)
    const weight = strategy === 'weighted' ? (planned?.weight ?? DEFAULT_WEIGHT) : DEFAULT_WEIGHT
    const isLast = LAST_PHASES.has(phase) || planned?.state !== 'Active' || weight === 0
    const priority = isLast ? Number.MAX_SAFE_INTEGER : strategy === 'failover' ? (planned.priority ?? 0) : 0
    for (const host of addresses) {
      const fault = isIP(host) === 0 ? nameFault(host) : isRefused(host)
      if (fault === undefined)
        found.push({
          host,
          port,
          weight: Math.max(1, Math.round((Math.max(weight, 1) * WEIGHT_SCALE) / addresses.length)),
          priority,
        })
      else refused.push(`cluster ${cluster}: ${fault}; it gets no requests`)
    }
  }
  const levels = [...new Set(found.map(({ priority }) => priority))].toSorted((a, b) => a - b)
  return {
    addresses: found
      .map((each) => ({ ...each, priority: levels.indexOf(each.priority) }))
      .toSorted((a, b) => a.priority - b.priority || (a.host < b.host ? -1 : a.host > b.host ? 1 : 0)),
    refused,
  }
}

/** What the name resolves to is checked when it is connected to. */
function nameFault(name: string): string | undefined {
  return hostName(name) === undefined ? `"${name}" is neither an address nor a DNS name` : undefined
}

function report(draft: Draft, global: Immutable<GlobalIngress>, reason: string, message: string): void {
  const { at: _at, ...origin } = originOf('GlobalIngress', global, '')
  draft.findings.push({ origin, reason, message })
}
