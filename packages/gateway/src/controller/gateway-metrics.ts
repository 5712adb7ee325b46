/** Metrics of the gateway, read when they are scraped. Label values never contain hosts or names: their number is bounded. */
import { addReadMetric } from '@seamark/kube/metrics'
import type { Registry } from 'prom-client'
import type { StatusIntent } from '../draft/status-intent.ts'
import type { DataPlaneCounters } from '../ir/data-plane.ts'
import type { Ir } from '../ir/model.ts'
import type { Rejection } from '../xds/rejections.ts'

export interface GatewayFacts {
  /** Undefined before the first build. */
  readonly ir: Ir | undefined
  /** As they are written: with what the data plane could not do. */
  readonly statuses: readonly StatusIntent[]
  /** Listeners that cannot be bound. */
  readonly portFaults: number
  readonly rejections: readonly Rejection[]
  readonly regexExceeded: number
  readonly dataPlane: DataPlaneCounters
}

/** `read` returns undefined where there is no gateway: the metrics are registered without values. */
export function createGatewayMetrics(registry: Registry, read: () => GatewayFacts | undefined): void {
  const total = (
    type: 'counter' | 'gauge',
    name: string,
    help: string,
    of: (facts: GatewayFacts) => number | undefined,
  ) =>
    addReadMetric(registry, type, {
      name,
      help,
      read() {
        const facts = read()
        const value = facts && of(facts)
        return value === undefined ? [] : [[{}, value]]
      },
    })
  const counts = (
    type: 'counter' | 'gauge',
    label: string,
    name: string,
    help: string,
    of: (facts: GatewayFacts) => Iterable<readonly [value: string, count: number]>,
  ) =>
    addReadMetric(registry, type, {
      name,
      help,
      labelNames: [label],
      *read() {
        const facts = read()
        if (facts === undefined) return
        for (const [value, count] of of(facts)) yield [{ [label]: value }, count] as const
      },
    })

  total(
    'counter',
    'seamark_gateway_regex_exceeded_total',
    'Requests answered with 500 because the regular expressions and other conditions of their host take too many steps',
    ({ regexExceeded }) => regexExceeded,
  )
  total('gauge', 'seamark_gateway_hosts', 'Hosts that are served, by all listeners', ({ ir }) =>
    ir?.listeners.reduce((sum, { hosts }) => sum + hosts.length, 0),
  )
  total('gauge', 'seamark_gateway_routes', 'Routes that are served, by all listeners', ({ ir }) =>
    ir?.listeners.flatMap(({ hosts }) => hosts).reduce((sum, { routes }) => sum + routes.length, 0),
  )
  total(
    'gauge',
    'seamark_gateway_backends',
    'Clusters of endpoints that routes lead to',
    ({ ir }) => ir?.clusters.length,
  )
  counts(
    'gauge',
    'kind',
    'seamark_gateway_invalid_objects',
    'Objects of which something is not served; their conditions say what',
    ({ statuses }) => {
      const invalid = new Map<string, number>()
      for (const intent of statuses) {
        const isInvalid = conditionsOf(intent.status).some(
          ({ type, status }) => MUST_BE_TRUE.has(type) && status === 'False',
        )
        invalid.set(intent.kind, (invalid.get(intent.kind) ?? 0) + Number(isInvalid))
      }
      return invalid
    },
  )
  total(
    'gauge',
    'seamark_gateway_port_faults',
    'Listeners that cannot be bound; they are tried again',
    ({ portFaults }) => portFaults,
  )
  counts(
    'counter',
    'class',
    'seamark_gateway_requests_total',
    'Requests that the built-in proxy answered, by class of the status; Envoy has metrics of its own',
    ({ dataPlane }) => dataPlane.answers ?? [],
  )
  total(
    'gauge',
    'seamark_gateway_connections',
    'Open connections of clients of the built-in proxy',
    ({ dataPlane }) => dataPlane.connections,
  )
  total(
    'gauge',
    'seamark_gateway_xds_streams',
    'Envoys that get their configuration',
    ({ dataPlane }) => dataPlane.streams,
  )
  counts(
    'gauge',
    'type',
    'seamark_gateway_xds_rejected',
    'Resources that an Envoy rejected and runs without, or with their earlier version',
    ({ dataPlane, rejections }) => {
      if (dataPlane.streams === undefined) return []
      const rejected = new Map<string, number>(
        ['listener', 'route', 'cluster', 'endpoints', 'secret'].map((type) => [type, 0]),
      )
      for (const { type } of rejections) rejected.set(type, (rejected.get(type) ?? 0) + 1)
      return rejected
    },
  )
}

/** Of HTTPProxies and of the Gateway API; the others do not say that something is not served. */
const MUST_BE_TRUE: ReadonlySet<string> = new Set(['Valid', 'Accepted', 'Programmed', 'ResolvedRefs'])

interface Condition {
  readonly type: string
  readonly status: string
}

/** Of the object, its parents and its listeners. */
function conditionsOf(status: Readonly<Record<string, unknown>>): readonly Condition[] {
  const parts = [status, ...listOf(status['parents']), ...listOf(status['listeners'])]
  return parts.flatMap((part) => listOf(part['conditions']) as unknown as Condition[])
}

function listOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? (value as Record<string, unknown>[]) : []
}
