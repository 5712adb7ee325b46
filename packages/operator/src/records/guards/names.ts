/** Guards about names and types: what DNS forbids, and what requires an approval (INV-5). */
import { isWildcard } from '../../rrset/rrset.ts'
import { type Guard, isApproved } from './guard.ts'

/** Appended where an annotation would have approved the change. */
const UNTRUSTED = '; the annotation counts only in namespaces that records.dnsEndpoints.trustedNamespaces names'

export const typeAllowed: Guard = ({ change, isRemoval }, input) => {
  if (isRemoval === true || change.reason === 'Adopted' || input.types.includes(change.type)) return undefined
  return { code: 'TypeNotAllowed', why: `${change.type} is not among the managed types (${input.types.join(', ')})` }
}

/** Types that may exist beside a CNAME: those of DNSSEC (RFC 4034 §3, §4). */
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
