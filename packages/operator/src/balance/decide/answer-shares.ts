/**
 * Which records of a balanced RRset an answer of our own DNS server contains: the weights, priorities and regions of the
 * endpoints as an answer policy (rrset/answer-policy.ts). Pure. Other providers get the plain RRset.
 *
 * - Equal weights: all records of the client's region, in random order. Different weights: one of them, by largest remainder.
 * - An endpoint that is a host name shares its weight among its addresses; an address of several endpoints has the sum.
 * - Without regions and with equal weights and priorities there is no policy: the answer is the whole RRset. A policy that is
 *   published is then replaced by an equivalent one, and not removed: removals of records are few by design (INV-3).
 */
import { type AnswerPolicy, policyText } from '@seamark/dns'
import type { RRset } from '../../rrset/rrset.ts'
import type { Candidate } from './endpoints.ts'

/** An RRset of a load balancer. */
export interface BalancedSet extends RRset {
  /** Value of the policy record beside it; absent: the answer is the whole RRset. */
  readonly policy?: string
}

/** Names of regions in policies (packages/dns, zone/answer-policy.ts). */
const REGION = /^[a-z0-9][a-z0-9_-]{0,31}$/

/** Undefined for an endpoint for every client, and for a region that no client can be in. */
export function regionOf({ geo }: Pick<Candidate, 'geo'>): string | undefined {
  const region = geo?.toLowerCase()
  return region !== undefined && REGION.test(region) ? region : undefined
}

/** What the endpoints of an address give it. */
interface Share {
  readonly weight: number
  readonly priority: number
  /** Undefined: every region. */
  readonly regions: ReadonlySet<string> | undefined
}

/** Divisible by every number of addresses up to 6, and small enough for the greatest weight in 16 bits. */
const WEIGHT_UNIT = 60
const MAX_WEIGHT = 65_535

/** Collects the shares of addresses, endpoint by endpoint. */
export class AnswerShares {
  readonly #shares = new Map<string, Share>()

  add(candidate: Pick<Candidate, 'weight' | 'priority' | 'geo'>, addresses: readonly string[]): void {
    const { weight, priority } = candidate
    const region = regionOf(candidate)
    for (const address of addresses) {
      const before = this.#shares.get(address)
      const isEverywhere = before !== undefined && before.regions === undefined
      this.#shares.set(address, {
        weight: (before?.weight ?? 0) + (weight * WEIGHT_UNIT) / addresses.length,
        priority: Math.min(priority, before?.priority ?? priority),
        regions: region === undefined || isEverywhere ? undefined : new Set([...(before?.regions ?? []), region]),
      })
    }
  }

  /** The set with its policy, where the shares of its records differ or `hasPolicy` is set: it has one now. */
  withPolicy(set: RRset, hasPolicy: boolean): BalancedSet {
    const shares = set.values.flatMap((value) => this.#shares.get(value) ?? [])
    const [first] = shares
    if (set.type === 'CNAME' || first === undefined || shares.length < set.values.length) return set
    const isWeighted = shares.some(({ weight }) => weight !== first.weight)
    const isPlain = shares.every(({ regions, priority }) => regions === undefined && priority === first.priority)
    if (isPlain && !isWeighted && !hasPolicy) return set
    const weights = scaled(shares.map(({ weight }) => weight))
    const policy: AnswerPolicy = {
      type: set.type,
      mode: isWeighted ? 'weighted' : 'shuffle',
      entries: set.values.map((value, index) => ({
        value,
        ...(isWeighted && { weight: weights[index] ?? 1 }),
        priority: shares[index]?.priority ?? 0,
        regions: [...(shares[index]?.regions ?? [])].sort(),
      })),
    }
    return { ...set, policy: policyText(policy) }
  }
}

/** The smallest whole numbers in the same proportion; rounded when they do not fit 16 bits, and never to 0. */
function scaled(weights: readonly number[]): number[] {
  const whole = weights.map((weight) => Math.round(weight))
  const divisor = whole.reduce(greatestCommonDivisor, 0) || 1
  const least = whole.map((weight) => weight / divisor)
  const factor = Math.min(1, MAX_WEIGHT / Math.max(...least))
  return least.map((weight) => (weight === 0 ? 0 : Math.max(1, Math.round(weight * factor))))
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b)
}
