/**
 * Which targets a cluster's wildcard has now: its ready nodes, with removal delayed and addition at once.
 *
 * Pure: nodes, published targets, the state of the last decision and the time in; targets, the new state and the time of the
 * next decision out. No input makes the answer empty: without a ready node the published targets stay (INV-1).
 */
import { type Finding, warning } from '../finding.ts'
import { DEFAULT_MASS_LIMITS, isMassChange, type MassLimits } from '../safety/mass-limits.ts'
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
  readonly action: WildcardAction
  readonly lostSince: ReadonlyMap<string, number>
  /** Decide again at this time even if nothing changes. */
  readonly againAtMs?: number
  /** More targets leave at once than the limits allow (safety/mass-limits.ts), or the record is deleted: list the nodes afresh before writing. */
  readonly needsConfirmation: boolean
  readonly findings: readonly Finding[]
}

type Damping = Pick<WildcardOptions, 'removalDelayMs' | 'coalesceMs' | 'minTargets' | 'onEmpty'> & {
  /** @default DEFAULT_MASS_LIMITS */
  readonly massLimits?: MassLimits
}

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
  const action = chooseAction(kept, nodes, published, options, findings)
  const { coalesceMs, massLimits = DEFAULT_MASS_LIMITS } = options
  return coalesce(action, { facts, lostSince, next, findings, coalesceMs, massLimits })
}

function isPublished(node: NodeFact, published: ReadonlySet<string>): boolean {
  return [...node.v4, ...node.v6].some((address) => published.has(address))
}

/** Below the floor the nodes that became not ready last stay: they are the likeliest to become ready again. */
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

function chooseAction(
  kept: readonly NodeFact[],
  nodes: readonly NodeFact[],
  published: ReadonlySet<string>,
  options: Damping,
  findings: Finding[],
): WildcardAction {
  // While no node is ready, the delays tell nothing about which of them serves: the targets from before the outage stay.
  const isOutage = published.size > 0 && !nodes.some(({ isReady }) => isReady)
  if (isOutage && kept.length > 0 && options.onEmpty === 'keep') return { state: 'keep' }
  if (kept.length > 0) {
    const sorted = (family: 'v4' | 'v6'): string[] => [...new Set(kept.flatMap((node) => node[family]))].toSorted()
    return { state: 'publish', v4: sorted('v4'), v6: sorted('v6') }
  }
  if (published.size === 0) return { state: 'keep' }
  const policy = options.onEmpty === 'delete' ? 'the record is removed' : 'the last targets stay'
  findings.push(warning('NoReadyNodes', `none of ${nodes.length} nodes is ready; ${policy}`))
  return { state: options.onEmpty }
}

interface Coalescing {
  readonly facts: WildcardFacts
  readonly lostSince: ReadonlyMap<string, number>
  readonly next: number | undefined
  readonly findings: readonly Finding[]
  readonly coalesceMs: number
  readonly massLimits: MassLimits
}

/** A change within the window after a write waits for its end. */
function coalesce(
  action: WildcardAction,
  { facts, lostSince, next, findings, coalesceMs, massLimits }: Coalescing,
): WildcardDecision {
  const base = { lostSince, findings, needsConfirmation: false }
  const again = (at: number | undefined): { againAtMs?: number } => (at === undefined ? {} : { againAtMs: at })
  if (action.state !== 'publish')
    return { ...base, action, needsConfirmation: action.state === 'delete', ...again(next) }
  const targets = new Set([...action.v4, ...action.v6])
  const gone = facts.published.filter((target) => !targets.has(target)).length
  const isSame = gone === 0 && targets.size === facts.published.length
  const windowEnd = (facts.lastWriteMs ?? Number.NEGATIVE_INFINITY) + coalesceMs
  if (!isSame && facts.nowMs < windowEnd) {
    return { ...base, action: { state: 'keep' }, ...again(Math.min(windowEnd, next ?? windowEnd)) }
  }
  const needsConfirmation = isMassChange(gone, facts.published.length, massLimits)
  return { ...base, action, needsConfirmation, ...again(next) }
}
