/**
 * Which endpoints of a load balancer are in its records. Pure, and independent of the order of its input.
 *
 * - Eligible: healthy, or published with an unknown verdict (unknown is not unhealthy). A new endpoint must pass once (INV-6).
 * - Endpoints that drain or have weight 0 count only when no other is eligible; of the rest, those of the best priority.
 * - Balanced: all of these; where the DNS server answers by region, those of the best priority of each region. Exclusive: the published one while it is eligible (sticky), else the most preferred.
 * - None eligible: `onAllUnhealthy` decides; nothing is removed while a verdict is unknown (INV-1, INV-4).
 */
import type { Reason } from '../../reasons.ts'
import type { Verdict } from '../../health/verdict.ts'
import { regionOf } from './answer-shares.ts'
import { type Candidate, comparePreference } from './endpoints.ts'
import type { BalancerSettings } from '../load-balancer.ts'

export interface JudgedCandidate extends Candidate {
  readonly verdict: Verdict
  readonly isPublished: boolean
}

export type Selection =
  | { readonly kind: 'serve'; readonly chosen: readonly JudgedCandidate[]; readonly reason: Reason }
  /** What is published stays as it is. */
  | { readonly kind: 'hold'; readonly reason: Reason }
  | { readonly kind: 'remove'; readonly reason: Reason }

export interface SelectionFacts {
  readonly settings: Pick<BalancerSettings, 'type' | 'failBack' | 'onAllUnhealthy'>
  /** The DNS server chooses by region: each region has endpoints of its own. */
  readonly answersByPolicy?: boolean
  readonly candidates: readonly JudgedCandidate[]
  /** Whether any record of the name is published, or may be. */
  readonly isNamePublished: boolean
  /** Exclusive: the endpoints whose records are exactly the published ones; several when they have the same target. */
  readonly currentKeys: ReadonlySet<string>
}

export function selectEndpoints(facts: SelectionFacts): Selection {
  const candidates = [...facts.candidates].sort(comparePreference)
  const eligible = candidates.filter(
    ({ verdict, isPublished }) => verdict === 'healthy' || (verdict === 'unknown' && isPublished),
  )
  if (eligible.length === 0) return whenNoneEligible(facts, candidates)
  const serving = eligible.filter(({ isDraining, weight }) => !isDraining && weight > 0)
  const usable = serving.length > 0 ? serving : eligible
  const best = bestOf(usable)
  if (facts.settings.type === 'Balanced') {
    const chosen = facts.answersByPolicy === true ? bestOfEachRegion(usable) : best
    return { kind: 'serve', chosen, reason: 'HealthyEndpoints' }
  }

  const current = usable.find(({ key }) => facts.currentKeys.has(key))
  const isCurrentGoodEnough =
    current !== undefined && (facts.settings.failBack === 'Never' || current.priority === best[0]?.priority)
  const chosen = isCurrentGoodEnough ? current : best[0]
  if (chosen === undefined) return whenNoneEligible(facts, candidates)
  return { kind: 'serve', chosen: [chosen], reason: chosen === best[0] ? 'PreferredEndpoint' : 'StickyEndpoint' }
}

/** Those with the best priority, in the order given. */
function bestOf(candidates: readonly JudgedCandidate[]): readonly JudgedCandidate[] {
  const best = Math.min(...candidates.map(({ priority }) => priority))
  return candidates.filter(({ priority }) => priority === best)
}

/** For each region the best of its own endpoints, and the best of those without a region for all other clients. */
function bestOfEachRegion(candidates: readonly JudgedCandidate[]): readonly JudgedCandidate[] {
  const byRegion = new Map<string | undefined, JudgedCandidate[]>()
  for (const candidate of candidates) {
    const region = regionOf(candidate)
    byRegion.set(region, [...(byRegion.get(region) ?? []), candidate])
  }
  const chosen = new Set([...byRegion.values()].flatMap(bestOf))
  return candidates.filter((candidate) => chosen.has(candidate))
}

function whenNoneEligible(
  { settings, isNamePublished }: SelectionFacts,
  candidates: readonly JudgedCandidate[],
): Selection {
  const reason: Reason = candidates.length === 0 ? 'NoEndpoints' : 'AllUnhealthy'
  if (candidates.some(({ verdict }) => verdict === 'unknown')) return { kind: 'hold', reason: 'HealthUnknown' }
  // A new name is not published before one endpoint has passed (INV-6).
  if (!isNamePublished) return { kind: 'hold', reason }
  switch (settings.onAllUnhealthy) {
    case 'ServeLast':
      return { kind: 'hold', reason }
    case 'Remove':
      return { kind: 'remove', reason }
    case 'ServeAll': {
      // Exclusive means one endpoint, and the published one is as good as any.
      if (settings.type === 'Exclusive' || candidates.length === 0) return { kind: 'hold', reason }
      const staying = candidates.filter(({ isDraining }) => !isDraining)
      return { kind: 'serve', chosen: staying.length > 0 ? staying : candidates, reason }
    }
  }
}
