/**
 * Whether a target's failures may be blamed on the target (INV-4). Pure.
 *
 * A target that reached its fall threshold is compared with the other sites, by results that are newer than its first
 * failure. A site answers when one of its targets passed, and fails when all its tested targets failed and one of
 * them was healthy and began to fail at most `eventSpanMs` before: a loss of the prober's network shows in a first failure of
 * this target within that time, so sites that failed earlier are no evidence about it.
 *
 * A target without a site (`''`: the DNS name itself, which depends on all of its endpoints) is no witness and needs none.
 *
 * - Its own site answers, or no other site fails: the target's own failure.
 * - All of at least two failing: the prober has probably lost its network (`partitioned`).
 * - More than half of them failing: `panic`; the fall is held. Sites that were not tested since are divided as those that were:
 *   failing ones are probed more often, and would outnumber the others in every sample.
 */
import type { Evidence, TargetState } from './verdict.ts'

export interface SiteResult {
  readonly site: string
  readonly state: TargetState
}

export function weighEvidence(self: SiteResult, others: Iterable<SiteResult>, eventSpanMs: number): Evidence {
  if (self.site === '') return 'clear'
  const sinceMs = self.state.streakSinceMs
  const answering = new Set<string>()
  const failing = new Set<string>([self.site])
  /** Those of `failing` whose first failure is in the same time as the passes in `answering`. */
  const fallen = new Set<string>([self.site])
  const untested = new Set<string>()
  for (const { site, state } of others) {
    if (site === '' || state.lastResultMs === undefined) continue
    if (state.lastResultMs < sinceMs) {
      if (state.last === 'pass') untested.add(site)
    } else if (state.last === 'pass') answering.add(site)
    else if (isNewlyFailing(state, sinceMs - eventSpanMs)) {
      failing.add(site)
      if (state.streakSinceMs >= sinceMs) fallen.add(site)
    }
  }
  if (answering.has(self.site)) return 'clear'
  for (const site of answering) {
    failing.delete(site)
    fallen.delete(site)
    untested.delete(site)
  }
  if (failing.size < 2) return 'clear'
  if (answering.size === 0) return 'partitioned'
  for (const site of failing) untested.delete(site)
  const failingShare = fallen.size / (fallen.size + answering.size)
  const isMostFailing =
    failing.size + untested.size * failingShare > answering.size + untested.size * (1 - failingShare)
  return isMostFailing ? 'panic' : 'clear'
}

function isNewlyFailing(state: TargetState, earliestMs: number): boolean {
  if (state.streakSinceMs < earliestMs) return false
  switch (state.verdict) {
    case 'healthy':
      return true
    case 'unknown':
      return state.hold !== undefined
    case 'unhealthy':
      // After a pass in between, its failures begin anew and are still those of the earlier fall.
      return state.lostMs !== undefined && state.lostMs >= earliestMs
  }
}
