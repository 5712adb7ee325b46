/**
 * The owner of a host: the oldest source that names it, the same on every replica and after every restart (INV-14). Contour
 * marks all duplicates invalid and ExternalDNS lets the smallest target win; both allow a new source to take a name.
 *
 * A host released by its owner is available to a source of another namespace only after a grace period, so that a
 * delete-and-create by a deployment tool does not transfer it to another tenant.
 */
import { compareAge, normalizeHost } from '@seamark/dialects'
import type { Source } from './source.ts'

export type Claimant = Pick<Source, 'kind' | 'namespace' | 'name' | 'uid' | 'createdAt'>

export type Claim =
  | { readonly state: 'won' }
  | { readonly state: 'lost'; readonly to: Claimant }
  /** Released, but still reserved for another namespace. */
  | { readonly state: 'waiting'; readonly untilMs: number }
  /** The namespace may not use the name, regardless of other claims. */
  | { readonly state: 'denied'; readonly why: string }

export interface Released {
  readonly namespace: string
  /** Monotonic. */
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

/**
 * Within a namespace several Ingresses or routes may share a host, path by path: one of them publishes it in DNS, each has
 * its own certificate. HTTPProxies may not share a host (Contour marks them all invalid).
 */
export function isConflict(source: Claimant, holder: Claimant): boolean {
  return source.kind === 'HTTPProxy' || source.kind === 'IngressRoute' || holder.namespace !== source.namespace
}

/** The same for all spellings of one name. */
export function claimKey(host: string): string {
  return normalizeHost(host)
}
