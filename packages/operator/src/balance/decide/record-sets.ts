/**
 * The RRsets of the chosen endpoints, and back: which endpoints are in the RRsets that are published. Pure.
 *
 * One host name gives a CNAME. Of several targets, host names are replaced by their addresses (a CNAME cannot be
 * beside another record, RFC 1034 §3.6.2); IPv4 and IPv6 go into A and AAAA, sorted and without duplicates.
 */
import { compareText, type RRset } from '../../rrset/rrset.ts'
import { parseAddress } from '@seamark/dialects'
import { AnswerShares, type BalancedSet } from './answer-shares.ts'
import type { Candidate } from './endpoints.ts'

export interface Flattened {
  readonly sets: readonly BalancedSet[]
  /** Host names whose addresses were used, sorted: the `cnames` attribute of the original's TXT record. */
  readonly cnames: readonly string[]
  /** Host names without a known address; they contribute nothing. */
  readonly unresolved: readonly string[]
}

/** Last known addresses of a canonical host name; undefined when it was never resolved. */
export type Lookup = (name: string) => readonly string[] | undefined

/** `published`, of a zone that is served by our own DNS server, which supports weights, priorities and regions; else undefined. */
export function recordSetsOf(
  name: string,
  ttl: number,
  chosen: readonly Candidate[],
  lookup: Lookup,
  published?: readonly BalancedSet[],
): Flattened {
  const first = chosen[0]?.target
  const isOneName = first?.type === 'CNAME' && chosen.every(({ target }) => target.value === first.value)
  if (isOneName) {
    return { sets: [{ name, type: 'CNAME', ttl, values: [first.value] }], cnames: [], unresolved: [] }
  }
  const v4 = new Set<string>()
  const v6 = new Set<string>()
  const cnames = new Set<string>()
  const unresolved = new Set<string>()
  const shares = new AnswerShares()
  for (const candidate of chosen) {
    const { target } = candidate
    if (target.type !== 'CNAME') {
      ;(target.type === 'A' ? v4 : v6).add(target.value)
      shares.add(candidate, [target.value])
      continue
    }
    const addresses = (lookup(target.value) ?? []).map(parseAddress).filter((address) => address !== undefined)
    if (addresses.length === 0) unresolved.add(target.value)
    else cnames.add(target.value)
    for (const { family, text } of addresses) (family === 4 ? v4 : v6).add(text)
    for (const family of [4, 6])
      shares.add(
        candidate,
        addresses.filter((address) => address.family === family).map(({ text }) => text),
      )
  }
  const setOf = (type: string, values: ReadonlySet<string>): BalancedSet[] => {
    if (values.size === 0) return []
    const set: RRset = { name, type, ttl, values: sorted(values) }
    if (published === undefined) return [set]
    return [
      shares.withPolicy(
        set,
        published.some((each) => each.type === type && each.policy !== undefined),
      ),
    ]
  }
  return {
    sets: [...setOf('A', v4), ...setOf('AAAA', v6)],
    cnames: sorted(cnames),
    unresolved: sorted(unresolved),
  }
}

function sorted(values: ReadonlySet<string>): string[] {
  return [...values].sort(compareText)
}

/** Same types with the same values; TTLs and policies are compared only on request. */
export function sameRecords(a: readonly BalancedSet[], b: readonly BalancedSet[], isExact = false): boolean {
  const textOf = (sets: readonly BalancedSet[]) =>
    sets
      .map(({ type, ttl, values, policy = '' }) => {
        const text = `${type} ${[...values].sort(compareText).join(' ')}`
        return isExact ? `${text} ${ttl} ${policy}` : text
      })
      .sort(compareText)
  const left = textOf(a)
  const right = textOf(b)
  return left.length === right.length && left.every((line, index) => line === right[index])
}

/** Whether all that the endpoint contributes is in the published sets. */
export function isIn(candidate: Candidate, published: readonly RRset[], lookup: Lookup): boolean {
  const { target } = candidate
  const has = (type: string, value: string) => published.some((set) => set.type === type && set.values.includes(value))
  if (has(target.type, target.value)) return true
  if (target.type !== 'CNAME') return false
  const addresses = (lookup(target.value) ?? []).map(parseAddress).filter((address) => address !== undefined)
  return addresses.length > 0 && addresses.every(({ family, text }) => has(family === 4 ? 'A' : 'AAAA', text))
}
