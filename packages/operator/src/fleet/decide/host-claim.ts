/**
 * Host claims: which root may use a host. Pure; the creation of the HostClaim on the hub is the lock.
 *
 * - A host without a claim may be claimed only by the oldest root that names it (the order of age), so that a cold
 *   start gives every host to the same root as before.
 * - Roots of one namespace share a host. Another namespace is refused, and a wildcard of another namespace that covers the
 *   host, or is covered by it, conflicts in the same way: the older claim wins.
 * - A namespace without a grant for the host has no right to it: its root neither gets the host nor keeps it from others, and
 *   gives up a claim that it has.
 * - Public suffixes and the managed domain itself cannot be claimed.
 */
import { createHash } from 'node:crypto'
import type { HostClaim } from '../../api/host-claim.ts'
import { type Aged, compareAge, findHostFault, type NameRule, normalizeHost } from '@seamark/dialects'
import type { Immutable } from '@seamark/kube/object'
import type { Reason } from '../../reasons.ts'

export interface Claimant extends Aged {
  readonly uid: string
}

export type ClaimDecision =
  /** A claim of this root exists. */
  | { readonly state: 'owned' }
  | { readonly state: 'create' }
  /** The claim belongs to this namespace: the root joins its owners. */
  | { readonly state: 'join'; readonly claim: Immutable<HostClaim> }
  | {
      readonly state: 'refused'
      readonly reason: Reason
      readonly message: string
      /** The root that has the host. */
      readonly holder?: HostHolder
    }

export type HostHolder = Pick<Claimant, 'kind' | 'namespace' | 'name' | 'uid'>

export interface ClaimFacts {
  readonly host: string
  readonly root: Claimant
  /** Of this host; undefined: none. */
  readonly claim: Immutable<HostClaim> | undefined
  /** Claims of wildcards that cover the host, or of hosts that the wildcard covers. */
  readonly overlapping: readonly Immutable<HostClaim>[]
  /** Roots that name the host and are not being deleted; this one may be among them. */
  readonly rivals: readonly Claimant[]
  /** '' : none. */
  readonly managedDomain: string
  /** Whether the namespace proved that it may use the host; undefined: no proof is required. */
  readonly isVerified: boolean | undefined
  /** The names that a namespace may use. */
  readonly findNameFault: NameRule
}

export function decideClaim(facts: ClaimFacts): ClaimDecision {
  const { host, root, claim, overlapping, rivals, managedDomain, isVerified, findNameFault } = facts
  const fault = findHostFault(host)
  if (fault !== undefined) return refused('HostInvalid', `host ${host} ${fault}`)
  if (isReserved(host, managedDomain))
    return refused('HostReserved', `host ${host} is a public suffix or the managed domain; use a name below it`)
  const notGranted = findNameFault(root.namespace, host)
  if (notGranted !== undefined) return refused('NameNotGranted', notGranted)
  if (isVerified === false)
    return refused(
      'DomainUnverified',
      `host ${host} waits for a verified DomainVerification of namespace ${root.namespace}`,
    )
  const isGranted = (namespace: string, name: string): boolean => findNameFault(namespace, name) === undefined
  const other = overlapping.find(
    ({ spec: { namespace, host: name } }) => namespace !== root.namespace && isGranted(namespace, name),
  )
  if (claim !== undefined) {
    if (claim.spec.owners.some(({ uid }) => uid === root.uid)) return { state: 'owned' }
    if (claim.spec.namespace === root.namespace) return { state: 'join', claim }
    const message = `host ${host} is owned by ${describeOwner(claim)}`
    // Its owner is about to give it up.
    if (!isGranted(claim.spec.namespace, host)) return refused('HostConflict', `${message}, which has no grant for it`)
    return refused('HostConflict', message, holderOf(claim))
  }
  if (other !== undefined)
    return refused(
      'HostConflict',
      `host ${host} overlaps ${other.spec.host}, owned by ${describeOwner(other)}`,
      holderOf(other),
    )
  const older = rivals
    .filter(({ uid, namespace }) => uid !== root.uid && namespace !== root.namespace && isGranted(namespace, host))
    .find((rival) => compareAge(rival, root) < 0)
  if (older !== undefined)
    return refused(
      'HostConflict',
      `host ${host} is requested by the older ${older.kind} ${older.namespace}/${older.name}`,
      older,
    )
  return { state: 'create' }
}

/** The name of the claim of a host: the same for every spelling of it. */
export function claimName(host: string): string {
  return `h-${base32(createHash('sha256').update(normalizeHost(host)).digest().subarray(0, 20))}`
}

export function newClaim(host: string, root: Claimant): HostClaim {
  const { kind, name, uid, namespace } = root
  return { metadata: { name: claimName(host) }, spec: { host, namespace, owners: [{ kind, name, uid }] } }
}

/** The claim without the root; undefined: no root is left. */
export function withoutOwner(claim: Immutable<HostClaim>, uid: string): HostClaim['spec'] | undefined {
  const owners = claim.spec.owners.filter((owner) => owner.uid !== uid).map((owner) => ({ ...owner }))
  return owners.length === 0 ? undefined : { ...claim.spec, owners }
}

/** Whether one of the two is a wildcard that covers the other. A wildcard matches one label (RFC 6125 §6.4.3). */
export function overlaps(a: string, b: string): boolean {
  if (a === b) return false
  return covers(a, b) || covers(b, a)
}

function covers(wildcard: string, host: string): boolean {
  return wildcard.startsWith('*.') && !host.startsWith('*.') && host.slice(host.indexOf('.') + 1) === wildcard.slice(2)
}

/** A wildcard directly below a top-level domain, a name of one label, or the managed domain and its wildcard. */
function isReserved(host: string, managedDomain: string): boolean {
  const base = host.startsWith('*.') ? host.slice(2) : host
  return !base.includes('.') || (managedDomain !== '' && base === normalizeHost(managedDomain))
}

function describeOwner({ spec }: Immutable<HostClaim>): string {
  const [owner] = spec.owners
  return owner === undefined ? `namespace ${spec.namespace}` : `${owner.kind} ${spec.namespace}/${owner.name}`
}

function holderOf({ spec: { namespace, owners } }: Immutable<HostClaim>): HostHolder | undefined {
  const [owner] = owners
  return owner === undefined ? undefined : { ...owner, namespace }
}

function refused(reason: Reason, message: string, holder?: HostHolder): ClaimDecision {
  return { state: 'refused', reason, message, ...(holder !== undefined && { holder }) }
}

/** RFC 4648 §6 in lower case, without padding: an object name. */
function base32(bytes: Uint8Array): string {
  const digits = 'abcdefghijklmnopqrstuvwxyz234567'
  let text = ''
  let bits = 0
  let value = 0
  for (const byte of bytes) {
    value = (value << 8) | byte
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += digits[(value >> bits) & 31] ?? ''
    }
    value &= (1 << bits) - 1
  }
  return bits === 0 ? text : text + (digits[(value << (5 - bits)) & 31] ?? '')
}
