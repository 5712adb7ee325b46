/**
 * The gateway of a manager: caches → `build` → data plane and statuses.
 *
 * Flow: a change that can matter marks the aggregator dirty; 100 ms later `build` makes the whole configuration of the
 * caches, and the data plane swaps to it. EndpointSlices bypass it. Every replica builds and serves; the leader writes statuses.
 * Guarantees: ports open after the first complete build, with every cache (EndpointSlices included) synced; when the API
 * server is gone the last configuration stays.
 */
import {
  addressGuard,
  ConfigMap,
  EndpointSlice,
  Ingress,
  type LoadBalancerIngress,
  type Manager,
  Namespace,
  Secret,
  Service,
  systemClock,
  untilAborted,
  watching,
} from '@seamark/kube'
import { HTTPProxy, TLSCertificateDelegation } from '@seamark/kube/contour'
import {
  BackendTLSPolicy,
  Gateway,
  GatewayClass,
  GRPCRoute,
  HTTPRoute,
  ReferenceGrant,
  TLSRoute,
} from '@seamark/kube/gateway-api'
import { keyOf, type Immutable, type Key, type Kind, type Obj } from '@seamark/kube/object'
import type { Endpoint } from '../ir/endpoint.ts'
import { buildParts, type Build } from '../build/build.ts'
import type { BuildSettings, Objects, Refs } from '../draft/input.ts'
import { certificatesBySecret } from '../draft/secrets.ts'
import { runInTurns } from '../draft/turns.ts'
import { envoyDataPlane, type EnvoyDataPlaneOptions } from '../envoy/data-plane.ts'
import type { ListenAddresses, PortFaults, ProxyAddresses } from '../ir/listen-addresses.ts'
import { withRejections, type Rejection } from '../xds/rejections.ts'
import { builtInDataPlane } from '../proxy/data-plane.ts'
import { GlobalIngress } from '../sources/global-ingress.ts'
import { EndpointTable, serviceOf } from './endpoints.ts'
import { namespaceLabelsChanged, partChanged, routeChanged, whenReferenced } from './relevance.ts'
import { createGatewayMetrics } from './gateway-metrics.ts'
import { rejectedPorts, withPortFaults } from './port-faults.ts'
import { trimConfigMap, trimSecret, trimService } from './projections.ts'
import { RegexFaults } from './regex-faults.ts'
import { StatusBoard } from './status-board.ts'
import { addStatusWriter, type Pause } from './status-writer.ts'

export interface GatewayOptions extends ListenAddresses {
  /** Where listeners are bound is in these options. */
  readonly settings: Omit<BuildSettings, 'listen'>
  /**
   * Calls `replace` with settings that differ in names, classes and namespaces. Returns the unsubscribe function.
   * @default they never change
   */
  readonly onSettings?: (replace: (settings: Omit<BuildSettings, 'listen'>) => void) => () => void
  /** Serve with Envoy: one that this process runs, or others that connect. @default the built-in proxy */
  readonly envoy?: Pick<EnvoyDataPlaneOptions, 'process' | 'port'>
  /** Addresses for the statuses; else those of `service`. */
  readonly statusAddresses: readonly LoadBalancerIngress[]
  /** The Service of the data plane, `namespace/name`. */
  readonly service?: Key
  /** While it is paused no status and no Event is written. @default never */
  readonly pause?: Pause
  /** Endpoints may have loopback addresses: for the playground and tests. @default false */
  readonly allowLoopback?: boolean
  /** Where an endpoint is reached on a machine without a pod network: for the playground. @default its own address */
  readonly routeEndpoint?: (endpoint: Endpoint) => Endpoint
  /** Called when the ports are open. */
  readonly onReady?: (addresses: ProxyAddresses) => void
  /** Gets what reads the requests that were answered, by class of the status; Envoy counts for itself. */
  readonly onAnswers?: (read: () => ReadonlyMap<string, number> | undefined) => void
  /** Called after each build that was put into effect. */
  readonly onBuild?: (build: Build) => void
}

const DEBOUNCE = '100ms'

export function setUpGateway(mgr: Manager, options: GatewayOptions): void {
  const { routeEndpoint, onSettings } = options
  const board = new StatusBoard()
  board.setAddresses(options.statusAddresses)
  const isRefused = addressGuard({ allowLoopback: options.allowLoopback ?? false })
  const table = new EndpointTable(isRefused)
  const addresses: ListenAddresses = {
    ...(options.http !== undefined && { http: options.http }),
    ...(options.https !== undefined && { https: options.https }),
    ...(options.ports !== undefined && { ports: options.ports }),
    ...(options.portOffset !== undefined && { portOffset: options.portOffset }),
  }
  let settings: BuildSettings = { ...options.settings, listen: addresses }
  const endpoints = (name: string) =>
    routeEndpoint === undefined ? table.get(name) : table.get(name).map(routeEndpoint)
  let current: Build | undefined
  let rejections: readonly Rejection[] = []
  let portFaults: PortFaults = new Map()
  const regexFaults = new RegexFaults(systemClock, () => publishStatuses())
  let regexExceeded = 0
  /** The decisions of the last build, with what the data plane could not do. */
  const decided = () => {
    if (current === undefined) return undefined
    const { statuses, findings } = regexFaults.report(withRejections(current, rejections))
    const faults = options.envoy === undefined ? portFaults : rejectedPorts(current.ir, rejections)
    return { statuses: withPortFaults(statuses, current.ports, faults), findings, portFaults: faults.size }
  }
  const publishStatuses = (): void => {
    const decisions = decided()
    if (decisions !== undefined) board.publish(decisions.statuses, decisions.findings)
  }
  const dataPlane =
    options.envoy === undefined
      ? builtInDataPlane({
          ...addresses,
          endpoints,
          isRefused,
          onRegexExceeded(route) {
            regexExceeded++
            regexFaults.add(route)
          },
          onPortFaults(faults) {
            for (const [listener, fault] of faults)
              if (portFaults.get(listener) !== fault) mgr.log.warn({ listener, fault }, 'a port cannot be bound')
            portFaults = new Map(faults)
            publishStatuses()
          },
        })
      : envoyDataPlane({
          ...options.envoy,
          log: mgr.log,
          addresses,
          endpoints,
          onRejections(list) {
            rejections = list
            publishStatuses()
          },
        })
  options.onAnswers?.(() => dataPlane.counters().answers)
  createGatewayMetrics(mgr.metrics.registry, () => ({
    ir: current?.ir,
    statuses: [],
    portFaults: 0,
    ...decided(),
    rejections,
    regexExceeded,
    dataPlane: dataPlane.counters(),
  }))
  const slicesOf = mgr.index(EndpointSlice, 'gateway-service', (slice) => {
    const service = serviceOf(slice)
    return service === undefined ? [] : [service]
  })
  let refs: Refs = new Set()
  /** Of the build that runs: a change of what it has read must lead to another one. */
  let newRefs: Refs = refs
  const isReferenced = (ref: string) => refs.has(ref) || newRefs.has(ref)
  let markReady: () => void = () => undefined
  const firstBuild = new Promise<void>((resolve) => (markReady = resolve))

  mgr.cache(Secret, {
    // Helm's releases and tokens are most of the bytes of a cluster's Secrets and never certificates.
    fieldSelector: 'type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token',
    projection: trimSecret,
  })
  mgr.cache(ConfigMap, { projection: trimConfigMap })
  mgr.cache(Service, { projection: trimService })
  mgr.aggregator(
    'gateway',
    {
      kinds: watchedKinds(settings.mode, isReferenced),
      debounce: DEBOUNCE,
      leader: false,
      ...(onSettings !== undefined && {
        triggers: (mark: () => void) =>
          onSettings((next) => {
            settings = { ...next, listen: addresses }
            mark()
          }),
      }),
    },
    async (cache) => {
      const served = certificatesBySecret(current?.ir.certificates ?? [])
      const objects: Objects = {
        get: (kind, key) => cache.get(kind, key),
        list: (kind) => cache.list(kind),
        served: (secret) => served.get(secret),
      }
      const read = new Set<string>()
      newRefs = read
      return runInTurns(buildParts(objects, settings, read))
    },
    async (built, context) => {
      refs = built.refs
      regexFaults.retain(built.ir)
      const names = built.ir.clusters.flatMap(({ upstream }) => (upstream.kind === 'endpoints' ? [upstream.name] : []))
      table.setNames(names, (service) => context.by(slicesOf, service))
      dataPlane.apply(built.ir)
      current = built
      publishStatuses()
      if (options.statusAddresses.length === 0 && options.service !== undefined)
        board.setAddresses(addressesOf(context.get(Service, options.service)))
      options.onBuild?.(built)
      markReady()
    },
  )
  mgr.add('gateway-endpoints', async (context) => {
    const informer = mgr.cluster.informers.informer(EndpointSlice)
    const unsubscribe = informer.subscribe((change) => {
      const service = serviceOf(change.object)
      if (service !== undefined) dataPlane.updateEndpoints(table.refresh(service, context.by(slicesOf, service)))
    })
    const { service } = options
    const unwatch =
      service === undefined || options.statusAddresses.length > 0
        ? undefined
        : mgr.cluster.informers.informer(Service).subscribe(({ object, type }) => {
            if (keyOf(object) === service) board.setAddresses(type === 'deleted' ? [] : addressesOf(object))
          })
    await untilAborted(context.signal)
    unsubscribe()
    unwatch?.()
  })
  mgr.add('gateway-data-plane', async ({ signal, log }) => {
    await Promise.race([firstBuild, untilAborted(signal)])
    if (signal.aborted) return
    await dataPlane.run({ signal, log, onReady: (open) => options.onReady?.(open) })
  })
  addStatusWriter(mgr, board, {
    controllerName: settings.controllerName,
    ...(settings.gateway !== undefined && { gateway: settings.gateway }),
    ...(options.pause !== undefined && { pause: options.pause }),
  })
}

function watchedKinds(mode: BuildSettings['mode'], isReferenced: (ref: string) => boolean) {
  const optional = <T extends Obj>(kind: Kind<T>) => watching(kind, { optional: true, when: routeChanged })
  const secrets = watching(Secret, {
    when: whenReferenced(
      Secret,
      isReferenced,
      partChanged(({ data, type }) => [data, type]),
    ),
  })
  if (mode === 'global')
    return [
      watching(GlobalIngress, { optional: true, when: partChanged(({ spec, status }) => [spec, status?.leaves]) }),
      watching(Ingress, { when: whenReferenced(Ingress, isReferenced, routeChanged) }),
      optional(TLSCertificateDelegation),
      secrets,
      watching(EndpointSlice, { when: () => false }),
    ]
  return [
    watching(Ingress, { when: routeChanged }),
    optional(HTTPProxy),
    optional(TLSCertificateDelegation),
    optional(GatewayClass),
    optional(Gateway),
    optional(HTTPRoute),
    optional(GRPCRoute),
    optional(TLSRoute),
    optional(BackendTLSPolicy),
    optional(ReferenceGrant),
    watching(Service, {
      when: whenReferenced(
        Service,
        isReferenced,
        partChanged(({ spec, metadata }) => [spec, metadata.annotations]),
      ),
    }),
    secrets,
    watching(ConfigMap, {
      when: whenReferenced(
        ConfigMap,
        isReferenced,
        partChanged(({ data }) => data),
      ),
    }),
    watching(Namespace, { when: whenReferenced(Namespace, isReferenced, namespaceLabelsChanged) }),
    // Waited for before the first build; their changes are followed by `gateway-endpoints`.
    watching(EndpointSlice, { when: () => false }),
  ]
}

function addressesOf(service: Immutable<Service> | undefined): LoadBalancerIngress[] {
  return (service?.status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ({
    ...(ip !== undefined && { ip }),
    ...(hostname !== undefined && { hostname }),
  }))
}
