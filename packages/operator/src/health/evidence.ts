/**
 * Whether a target's failures may be blamed on the target (INV-4). Pure.
 *
 * A target that reached its fall threshold is compared with the other sites, by results that are newer than its first
 * failure. A site answers when one of its targets passed, and fails when all its tested targets failed and one of
 * them was healthy until `AT_ONCE_MS` before: sites that were down already say nothing about the prober's network.
 *
 * A target without a site (`''`: the DNS name itself, which depends on all of its endpoints) is no witness and needs none.
 *
 * - Its own site answers, or no other site fails: the target's own failure.
 * - All of at least two failing: the prober has probably lost its network (`partitioned`).
 * - More than half of them failing: `panic`; the fall is held.
 */
import type { Evidence, TargetState } from './verdict.ts'

/** Failures that began this close to each other count as one event. */
export const AT_ONCE_MS = 10_000

export interface SiteResult {
  readonly site: string
  readonly state: TargetState
}

export function weighEvidence(self: SiteResult, others: Iterable<SiteResult>): Evidence {
  if (self.site === '') return 'clear'
  const sinceMs = self.state.streakSinceMs
  const answering = new Set<string>()
  const failing = new Set<string>([self.site])
  for (const { site, state } of others) {
    if (site === '' || state.lastResultMs === undefined || state.lastResultMs < sinceMs) continue
    if (state.last === 'pass') answering.add(site)
    else if (isNewlyFailing(state, sinceMs)) failing.add(site)
  }
  if (answering.has(self.site)) return 'clear'
  for (const site of answering) failing.delete(site)
  if (failing.size < 2) return 'clear'
  if (answering.size === 0) return 'partitioned'
  return failing.size > answering.size ? 'panic' : 'clear'
}

function isNewlyFailing(state: TargetState, sinceMs: number): boolean {
  switch (state.verdict) {
    case 'healthy':
      return true
    case 'unknown':
      return state.hold !== undefined
    case 'unhealthy':
      return state.lostMs !== undefined && state.lostMs >= sinceMs - AT_ONCE_MS
  }
}
