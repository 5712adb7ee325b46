/**
 * Which targets a cluster's wildcard has now: its ready nodes, with removal delayed and addition at once.
 *
 * Pure: nodes, what is published, what is remembered and the time in; targets, what to remember and when to look again out.
 * Nothing read here ever makes an empty answer: without a ready node the published targets stay (INV-1).
 */
import { type Finding, warning } from '../finding.ts'
import type { NodeFact } from './node-fact.ts'
import type { WildcardOptions } from './options.ts'

export interface WildcardFacts {
  /** Nodes that may serve, whatever their readiness. */
  readonly nodes: readonly NodeFact[]
  /** Targets of the DNSEndpoint as it is; empty when there is none. */
  readonly published: readonly string[]
  /** Since when a node that was in the answer is not ready; what the last decision returned. */
  readonly lostSince: ReadonlyMap<string, number>
  readonly lastWriteMs: number | undefined
  readonly nowMs: number
}

type WildcardAction =
  | { readonly state: 'publish'; readonly v4: readonly string[]; readonly v6: readonly string[] }
  | { readonly state: 'keep' }
  | { readonly state: 'delete' }

export interface WildcardDecision {
  readonly outcome: WildcardAction
  readonly lostSince: ReadonlyMap<string, number>
  /** Decide again at this time even if nothing changes. */
  readonly againAtMs?: number
  /** More than 30 % and more than 5 targets leave at once: list the nodes afresh before writing. */
  readonly needsConfirmation: boolean
  readonly findings: readonly Finding[]
}

type Damping = Pick<WildcardOptions, 'removalDelayMs' | 'coalesceMs' | 'minTargets' | 'onEmpty'>

export function decideWildcard(facts: WildcardFacts, options: Damping): WildcardDecision {
  const { nodes, nowMs } = facts
  const published = new Set(facts.published)
  const lostSince = new Map<string, number>()
  const leavingAt: number[] = []
  const serving: NodeFact[] = []
  const spare: NodeFact[] = []
  for (const node of nodes) {
    if (node.isReady) {
      serving.push(node)
      continue
    }
    if (!isPublished(node, published)) continue
    const since = facts.lostSince.get(node.name) ?? nowMs
    lostSince.set(node.name, since)
    const leavesAt = since + options.removalDelayMs
    if (leavesAt > nowMs) {
      serving.push(node)
      leavingAt.push(leavesAt)
    } else spare.push(node)
  }
  const findings: Finding[] = []
  const kept = keepFloor(serving, spare, lostSince, options.minTargets, findings)
  const next = leavingAt.length > 0 ? Math.min(...leavingAt) : undefined
  const outcome = judge(kept, nodes, published, options, findings)
  return settle(outcome, { facts, lostSince, next, findings, coalesceMs: options.coalesceMs })
}

function isPublished(node: NodeFact, published: ReadonlySet<string>): boolean {
  return [...node.v4, ...node.v6].some((address) => published.has(address))
}

/** Below the floor the nodes lost last stay: they are the likeliest to come back. */
function keepFloor(
  serving: readonly NodeFact[],
  spare: readonly NodeFact[],
  lostSince: ReadonlyMap<string, number>,
  minTargets: number,
  findings: Finding[],
): readonly NodeFact[] {
  const missing = minTargets - serving.length
  if (missing <= 0 || spare.length === 0 || serving.length === 0) return serving
  const back = spare.toSorted((a, b) => (lostSince.get(b.name) ?? 0) - (lostSince.get(a.name) ?? 0)).slice(0, missing)
  const message = `${serving.length} of at least ${minTargets} nodes are ready; ${back.map((node) => node.name).join(', ')} stay in the answer`
  findings.push(warning('BelowMinimumNodes', message))
  return [...serving, ...back]
}

function judge(
  kept: readonly NodeFact[],
  nodes: readonly NodeFact[],
  published: ReadonlySet<string>,
  options: Damping,
  findings: Finding[],
): WildcardAction {
  if (kept.length > 0) {
    const sorted = (family: 'v4' | 'v6'): string[] => [...new Set(kept.flatMap((node) => node[family]))].toSorted()
    return { state: 'publish', v4: sorted('v4'), v6: sorted('v6') }
  }
  if (published.size === 0) return { state: 'keep' }
  const policy = options.onEmpty === 'delete' ? 'the record is removed' : 'the last targets stay'
  findings.push(warning('NoReadyNodes', `none of ${nodes.length} nodes is ready; ${policy}`))
  return { state: options.onEmpty }
}

interface Settling {
  readonly facts: WildcardFacts
  readonly lostSince: ReadonlyMap<string, number>
  readonly next: number | undefined
  readonly findings: readonly Finding[]
  readonly coalesceMs: number
}

/** A change within the window after a write waits for its end. */
function settle(outcome: WildcardAction, { facts, lostSince, next, findings, coalesceMs }: Settling): WildcardDecision {
  const base = { lostSince, findings, needsConfirmation: false }
  const again = (at: number | undefined): { againAtMs?: number } => (at === undefined ? {} : { againAtMs: at })
  if (outcome.state !== 'publish') return { ...base, outcome, ...again(next) }
  const targets = [...outcome.v4, ...outcome.v6]
  const gone = facts.published.filter((target) => !targets.includes(target)).length
  const isSame = gone === 0 && targets.length === facts.published.length
  const windowEnd = (facts.lastWriteMs ?? Number.NEGATIVE_INFINITY) + coalesceMs
  if (!isSame && facts.nowMs < windowEnd) {
    return { ...base, outcome: { state: 'keep' }, ...again(Math.min(windowEnd, next ?? windowEnd)) }
  }
  const needsConfirmation = gone > 5 && gone > facts.published.length * 0.3
  return { ...base, outcome, needsConfirmation, ...again(next) }
}
