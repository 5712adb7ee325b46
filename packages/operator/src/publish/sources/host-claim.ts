/**
 * Who owns a host: the oldest source that names it, the same on every replica and after every restart (INV-14). Contour marks
 * all duplicates invalid and ExternalDNS lets the smallest target win; both let a newcomer take a name away.
 *
 * A host freed by its owner goes to a source of another namespace only after a grace, so that a delete-and-create by a
 * deployment tool is no hand-over to another tenant.
 */
import { normalizeHost } from '../../host-name.ts'
import { compareAge, type Source } from './source.ts'

export type Claimant = Pick<Source, 'kind' | 'namespace' | 'name' | 'uid' | 'createdAt'>

export type Claim =
  | { readonly state: 'won' }
  | { readonly state: 'lost'; readonly to: Claimant }
  /** Free, but not yet for this namespace. */
  | { readonly state: 'waiting'; readonly untilMs: number }
  /** The namespace may not use the name, whoever else does. */
  | { readonly state: 'denied'; readonly why: string }

export interface Released {
  readonly namespace: string
  readonly atMs: number
}

export function claimHost(
  source: Claimant,
  others: readonly Claimant[],
  released: Released | undefined,
  graceMs: number,
  nowMs: number,
): Claim {
  const older = others
    .filter((other) => other.uid !== source.uid && compareAge(other, source) < 0)
    .toSorted(compareAge)[0]
  if (older !== undefined) return { state: 'lost', to: older }
  if (released !== undefined && released.namespace !== source.namespace && nowMs < released.atMs + graceMs) {
    return { state: 'waiting', untilMs: released.atMs + graceMs }
  }
  return { state: 'won' }
}

/** What two spellings of one name have in common. */
export function claimKey(host: string): string {
  return normalizeHost(host)
}
