/**
 * Metrics of the product, all registered here. contour-plus' one series keeps its exact name and labels; the others carry the
 * prefix `seamark_`. Label values are reason codes, kinds, providers and zones, never host names: their number is bounded.
 */
import { Counter, Gauge, type Registry } from 'prom-client'

export interface ProductMetrics {
  /** `contour_plus_certificates_applied_total`. */
  certificateApplied(viaQueue: boolean, result: 'success' | 'error'): void
  /** A source was decided: its reason replaces the one it had. */
  sourceDecided(kind: string, key: string, reason: string | undefined): void
  /** Objects a guard holds back now. */
  held(count: () => number): void
  shadowed(isDifferent: boolean): void
  /** Targets of a cluster's wildcard; undefined when the cluster is gone. */
  wildcardTargets(cluster: string, targets: number | undefined): void
  /** The leaves of a root; replaces its earlier values. */
  leavesDecided(root: string, leaves: readonly { readonly cluster: string; readonly phase: string }[]): void
  driftCorrected(cluster: string): void
  /** Leaves whose deletion a guard holds now. */
  leavesHeld(count: () => number): void
  /** The gauge calls `count` when it is read. */
  wildcardsHeld(count: () => number): void
  /** Undefined when the cluster is gone. */
  clusterReachable(cluster: string, isReachable: boolean | undefined): void
}

export function createProductMetrics(registry: Registry): ProductMetrics {
  const registers = [registry]
  const applied = new Counter({
    name: 'contour_plus_certificates_applied_total',
    help: 'Certificates applied, directly or through the rate queue',
    labelNames: ['controller', 'via_queue', 'result'] as const,
    registers,
  })
  for (const via of ['true', 'false']) {
    for (const result of ['success', 'error'])
      applied.inc({ controller: 'certificate-apply', via_queue: via, result }, 0)
  }
  /** By kind and reason; shown at a scrape, because finding a series by its labels takes longer than counting. */
  const sourceCounts = new Map<string, { readonly kind: string; readonly reason: string; count: number }>()
  /** The count that includes a source, by kind, then by key. */
  const countsOf = new Map<string, Map<string, { readonly reason: string; count: number }>>()
  registry.registerMetric(
    new Gauge({
      name: 'seamark_publish_sources',
      help: 'Sources by kind and by the reason of their last decision',
      labelNames: ['kind', 'reason'] as const,
      registers: [],
      collect() {
        for (const { kind, reason, count } of sourceCounts.values()) this.set({ kind, reason }, count)
      },
    }),
  )
  const compared = new Counter({
    name: 'seamark_shadow_changes_total',
    help: 'Changes made by others that were compared with our decision',
    labelNames: ['result'] as const,
    registers,
  })
  for (const result of ['same', 'different']) compared.inc({ result }, 0)
  const targets = new Gauge({
    name: 'seamark_wildcard_targets',
    help: 'Targets of the wildcard of each cluster',
    labelNames: ['cluster'] as const,
    registers,
  })
  const leaves = new Gauge({
    name: 'seamark_fleet_leaves',
    help: 'Leaves by cluster and phase',
    labelNames: ['cluster', 'phase'] as const,
    registers,
  })
  const drift = new Counter({
    name: 'seamark_fleet_drift_corrections_total',
    help: 'Leaves that were changed on a cluster by another client, and corrected',
    labelNames: ['cluster'] as const,
    registers,
  })
  const reachable = new Gauge({
    name: 'seamark_fleet_cluster_reachable',
    help: '1 while the API server of a cluster answers',
    labelNames: ['cluster'] as const,
    registers,
  })
  /** Phases by cluster. */
  const leavesByRoot = new Map<string, ReadonlyMap<string, string>>()

  return {
    certificateApplied: (viaQueue, result) =>
      applied.inc({ controller: 'certificate-apply', via_queue: String(viaQueue), result }),
    sourceDecided(kind, key, reason) {
      let counted = countsOf.get(kind)
      if (counted === undefined) countsOf.set(kind, (counted = new Map()))
      const before = counted.get(key)
      if (before?.reason === reason) return
      if (before !== undefined) before.count--
      if (reason === undefined) {
        counted.delete(key)
        return
      }
      let after = sourceCounts.get(`${kind}/${reason}`)
      if (after === undefined) sourceCounts.set(`${kind}/${reason}`, (after = { kind, reason, count: 0 }))
      after.count++
      counted.set(key, after)
    },
    held(count) {
      const gauge = new Gauge({
        name: 'seamark_publish_held',
        help: 'Objects whose change the guard against mass changes holds',
        registers,
        collect() {
          this.set(count())
        },
      })
      gauge.set(0)
    },
    leavesHeld(count) {
      const gauge = new Gauge({
        name: 'seamark_fleet_leaves_held',
        help: 'Leaves without a LeafIngress whose deletion the guard against mass changes holds',
        registers,
        collect() {
          this.set(count())
        },
      })
      gauge.set(0)
    },
    wildcardsHeld(count) {
      const gauge = new Gauge({
        name: 'seamark_wildcard_held',
        help: 'Wildcards whose change the guard against mass changes holds',
        registers,
        collect() {
          this.set(count())
        },
      })
      gauge.set(0)
    },
    shadowed: (isDifferent) => compared.inc({ result: isDifferent ? 'different' : 'same' }),
    wildcardTargets(cluster, count) {
      if (count === undefined) targets.remove({ cluster })
      else targets.set({ cluster }, count)
    },
    leavesDecided(root, next) {
      const before = leavesByRoot.get(root)
      const phases = new Map(next.map(({ cluster, phase }) => [cluster, phase]))
      for (const [cluster, phase] of before ?? []) {
        if (phases.get(cluster) !== phase) leaves.dec({ cluster, phase })
      }
      for (const [cluster, phase] of phases) {
        if (before?.get(cluster) !== phase) leaves.inc({ cluster, phase })
      }
      if (phases.size === 0) leavesByRoot.delete(root)
      else leavesByRoot.set(root, phases)
    },
    driftCorrected: (cluster) => drift.inc({ cluster }),
    clusterReachable(cluster, isReachable) {
      if (isReachable === undefined) reachable.remove({ cluster })
      else reachable.set({ cluster }, isReachable ? 1 : 0)
    },
  }
}
