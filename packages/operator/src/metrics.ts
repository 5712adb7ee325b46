/**
 * Metrics of the product, all registered here. contour-plus' one series keeps its exact name and labels; the others carry the
 * prefix `seamark_`. Label values are reason codes and kinds, never host names: their number is bounded.
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
  const sources = new Gauge({
    name: 'seamark_publish_sources',
    help: 'Sources by kind and by the reason of their last decision',
    labelNames: ['kind', 'reason'] as const,
    registers,
  })
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
  const reasons = new Map<string, { kind: string; reason: string }>()

  return {
    certificateApplied: (viaQueue, result) =>
      applied.inc({ controller: 'certificate-apply', via_queue: String(viaQueue), result }),
    sourceDecided(kind, key, reason) {
      const id = `${kind}/${key}`
      const before = reasons.get(id)
      if (before?.reason === reason) return
      if (before !== undefined) sources.dec(before)
      if (reason === undefined) reasons.delete(id)
      else {
        reasons.set(id, { kind, reason })
        sources.inc({ kind, reason })
      }
    },
    held(count) {
      const gauge = new Gauge({
        name: 'seamark_publish_held',
        help: 'Objects that the guard against mass changes holds back',
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
  }
}
