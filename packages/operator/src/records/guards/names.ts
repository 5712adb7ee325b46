/** Guards about names and types: what DNS forbids, and what requires an approval (INV-5). */
import { isWildcard } from '../../rrset/rrset.ts'
import { findChangeFault } from '../../rrset/dns-limits.ts'
import { claimText } from '../../rrset/external-dns-registry.ts'
import { type Ownership, ownershipOf } from '../plan/ownership.ts'
import type { PlanInput } from '../plan/plan.ts'
import { subjectsOf, wildcardBelow } from '../plan/underscore-names.ts'
import { namesAbove } from '../plan/zone-view.ts'
import { type Guard, isApproved } from './guard.ts'

/** Appended where an annotation would have approved the change. */
const UNTRUSTED = '; the annotation counts only in namespaces that records.dnsEndpoints.trustedNamespaces names'

export const typeAllowed: Guard = ({ change, isRemoval }, input) => {
  if (isRemoval === true || change.reason === 'Adopted' || input.types.includes(change.type)) return undefined
  return { code: 'TypeNotAllowed', why: `${change.type} is not among the managed types (${input.types.join(', ')})` }
}

/** Refused here, it costs no write of others: a provider refuses the whole batch. */
export const withinDnsLimits: Guard = ({ change }) => {
  const fault = findChangeFault(change, change.markers)
  return fault === undefined ? undefined : { code: 'RecordInvalid', why: fault }
}

/**
 * A new set must not complete or redirect what somebody else has: another type at a name with records without our marker,
 * anything at or below a delegation, an address of a name server or mail host, and what protocols look up below a name that
 * is not ours (`_acme-challenge`, `_dmarc`). A set with our marker is ours wherever it is.
 */
export const notBesideOthers: Guard = (candidate, input) => {
  const { change, desired, marker, isRemoval } = candidate
  if (change.from !== undefined || change.to === undefined || isRemoval === true || marker !== undefined)
    return undefined
  if (change.reason === 'Adopted' || desired?.policy?.isApproved === true || isApproved(candidate, input))
    return undefined
  const what = findOthersAt(change.name, desired?.policy?.adopt, input)
  if (what === undefined) return undefined
  return {
    code: 'UnownedRecordExists',
    why: `${what}; ${change.name} gets a new ${change.type} record only after approval${desired?.policy?.isUntrusted === true ? UNTRUSTED : ''}`,
    isApprovable: true,
  }
}

function findOthersAt(name: string, adopted: string | undefined, input: PlanInput): string | undefined {
  const { view, zone } = input
  const beside = name === zone ? undefined : unownedType(name, adopted, input)
  if (beside !== undefined) return `${name} has a ${beside} record without our marker`
  const above = namesAbove(name, zone)
  const cut = [name, ...above].find((each) => each !== zone && view.at(each).find('NS') !== undefined)
  if (cut !== undefined) return `${cut} is delegated to other name servers`
  if (view.hosts.has(name) && view.at(name).sets().length === 0) return `${name} is the target of an NS or MX record`
  const subjects = subjectsOf(name, zone)
  const base = subjects.at(-1)
  if (base === undefined) return undefined
  if (base === zone) return `${name} is looked up for the apex of the zone`
  for (const subject of [...subjects, wildcardBelow(base)]) {
    const unowned = unownedType(subject, adopted, input)
    if (unowned !== undefined)
      return `${name} is looked up for ${subject}, which has a ${unowned} record without our marker`
  }
  return undefined
}

/** The type of a set at the name that is neither ours nor adopted with this change, other than those of DNSSEC. */
function unownedType(name: string, adopted: string | undefined, { view, owner }: PlanInput): string | undefined {
  const sets = view.at(name).sets()
  if (sets.length === 0) return undefined
  const owned = sets.map((set) => ({ set, ownership: ownershipOf(view, name, set.type, owner) }))
  // Entries of a registry that were kept when a set was adopted.
  const kept = new Set(
    owned.flatMap(({ ownership }) => (ownership.kind === 'ours' ? ownership.kept : []).map((each) => each.set)),
  )
  return owned.find(
    ({ set, ownership }) =>
      ownership.kind !== 'ours' &&
      ownership.kind !== 'joinable' &&
      !isClaimedBy(ownership, adopted) &&
      !kept.has(set) &&
      !BESIDE_CNAME.has(set.type),
  )?.set.type
}

function isClaimedBy(ownership: Ownership, adopted: string | undefined): boolean {
  if (ownership.kind !== 'theirs' || ownership.entries.length === 0) return false
  return ownership.entries.every(({ entry }) => entry !== 'unknown' && claimText(entry) === adopted)
}

/** Types that may exist beside a CNAME, and are of the signer of the zone: those of DNSSEC (RFC 4034 §3, §4). */
const BESIDE_CNAME = new Set(['RRSIG', 'NSEC', 'NSEC3'])

/** Foreign records at the name exclude a CNAME; a foreign CNAME excludes every other type. */
export const cnameAlone: Guard = (candidate, input) => {
  const { change } = candidate
  if (change.to === undefined || change.reason === 'Adopted') return undefined
  for (const set of input.view.typesAt(change.name)) {
    if (set.type === change.type || BESIDE_CNAME.has(set.type)) continue
    if (change.type !== 'CNAME' && set.type !== 'CNAME') continue
    if (candidate.replaces?.includes(set.type) === true) continue
    return { code: 'TypeConflict', why: `a ${set.type} record exists at the same name` }
  }
  return undefined
}

export const typeSwitchInOneTransaction: Guard = ({ switchesType, change }, input) => {
  if (switchesType !== true || input.isAtomic) return undefined
  return {
    code: 'TypeConflict',
    why: `the provider cannot replace the other type of ${change.name} in one transaction`,
  }
}

export const protectedNames: Guard = (candidate, input) => {
  const { change, desired } = candidate
  if (change.reason === 'Adopted' || desired?.policy?.isApproved === true || isApproved(candidate, input))
    return undefined
  const what =
    change.name === input.zone
      ? 'the apex of a zone'
      : isWildcard(change.name)
        ? 'a wildcard'
        : change.type === 'NS'
          ? 'a delegation'
          : undefined
  if (what === undefined) return undefined
  return {
    code: 'ApprovalMissing',
    why: `${change.name} is ${what}, which changes only after approval${desired?.policy?.isUntrusted === true ? UNTRUSTED : ''}`,
    isApprovable: true,
  }
}
