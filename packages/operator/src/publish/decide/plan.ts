/**
 * A decision and the observed objects → the writes, in order. Pure; the controller, `--dry-run` and `--shadow` use the same
 * plan. A plan deletes only objects that are marked as this source's and were applied by our field manager.
 */
import type { Immutable, Kind, Obj } from '@seamark/kube/object'
import { Certificate } from '../../api/certificate.ts'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { TLSCertificateDelegation } from '@seamark/kube/contour'
import { annotation, CLASS_MARK } from '../annotation-keys.ts'
import { CHILD_ROLES, type ChildRole, findOwner, ownerKey, type DesiredChild } from './child.ts'
import { type Decision, desiredChildren } from './decide.ts'
import { type Finding, warning } from '../../finding.ts'
import type { PublishOptions } from '../options.ts'
import type { Source } from '../sources/source.ts'

export type Child = DNSEndpoint | Certificate | TLSCertificateDelegation

export interface OwnedChild {
  readonly kind: Kind<Child>
  readonly object: Immutable<Child>
}

export interface Observed {
  find(kind: Kind<Child>, key: string): Immutable<Child> | undefined
  /** Children marked as this source's and applied by our field manager, of the enabled kinds. */
  readonly owned: readonly OwnedChild[]
  /** Whether the source of this owner key (`HTTPProxy/ns/name`) exists. */
  isAlive(owner: string): boolean
  /** Whether balance's DNSEndpoint has the name, which is balance's. */
  isBalanced(dnsName: string): boolean
  /** Another Certificate with the same Secret. */
  findSecretHolder(namespace: string, secretName: string, except: string): string | undefined
}

export type Step =
  | { readonly type: 'add-finalizer' }
  | { readonly type: 'apply'; readonly desired: DesiredChild; readonly isRetarget: boolean }
  | { readonly type: 'set-secret-name'; readonly secretName: string }
  /** `isHandedOver`: balance publishes all of its names; nothing is lost with it. */
  | { readonly type: 'delete'; readonly child: OwnedChild; readonly isHandedOver?: boolean }
  | { readonly type: 'remove-finalizer' }

export interface Plan {
  readonly steps: readonly Step[]
  readonly findings: readonly Finding[]
}

export const KIND_OF_ROLE: Readonly<Record<ChildRole, Kind<Child>>> = {
  dns: DNSEndpoint,
  delegation: DNSEndpoint,
  certificate: Certificate,
  'tls-delegation': TLSCertificateDelegation,
}

export function planWrites(source: Source, decision: Decision, observed: Observed, options: PublishOptions): Plan {
  const isHandedOver = ({ kind, object }: OwnedChild): boolean =>
    kind === DNSEndpoint && isAllBalanced(object as Immutable<DNSEndpoint>, observed)
  const findings: Finding[] = []
  const desired = desiredChildren(decision)
  const applies = desired.filter((item) => {
    const objection = findObjection(source, item, observed, options)
    if (objection !== undefined) findings.push(objection)
    return objection === undefined
  })
  // Not to a Secret that is not issued, or not delegated to the namespace of the source: it would lose the Secret it has.
  const isSecretReady = desired.every((item) => applies.includes(item) || !isForSecret(item))
  const isPatchDue =
    isSecretReady && decision.secretName !== undefined && source.tls[0]?.secretName !== decision.secretName
  const obsolete = findObsolete(source, decision, desired, observed, options)
  const deletes = options.prune ? obsolete : obsolete.filter(isHandedOver)
  const finalizer = planFinalizer(source, decision, applies, observed)
  const steps: Step[] = []
  if (finalizer === 'add-finalizer') steps.push({ type: finalizer })
  for (const item of applies) {
    const existing = item.role === 'dns' ? observed.find(DNSEndpoint, childKey(item)) : undefined
    steps.push({ type: 'apply', desired: item, isRetarget: isRetarget(item, existing) })
  }
  if (isPatchDue) steps.push({ type: 'set-secret-name', secretName: decision.secretName })
  for (const child of deletes) steps.push({ type: 'delete', child, ...(isHandedOver(child) && { isHandedOver: true }) })
  // Last: after a crash before this step, the next reconcile still cleans up.
  if (finalizer === 'remove-finalizer') steps.push({ type: finalizer })
  return { steps, findings }
}

function isAllBalanced(object: Immutable<DNSEndpoint>, observed: Observed): boolean {
  const { endpoints } = object.spec
  return endpoints.length > 0 && endpoints.every(({ dnsName }) => observed.isBalanced(dnsName))
}

/** Children in the source's own namespace are deleted by garbage collection. */
export function planCleanup(source: Source, observed: Observed): Plan {
  if (!source.hasFinalizer) return { steps: [], findings: [] }
  const elsewhere = observed.owned.filter(({ object }) => object.metadata.namespace !== source.namespace)
  return {
    steps: [...elsewhere.map((child): Step => ({ type: 'delete', child })), { type: 'remove-finalizer' }],
    findings: [],
  }
}

/** The Secret of the source depends on it. */
export function isForSecret({ role }: Pick<DesiredChild, 'role'>): boolean {
  return role === 'certificate' || role === 'tls-delegation'
}

function childKey({ object }: DesiredChild): string {
  return `${object.metadata.namespace}/${object.metadata.name}`
}

/** Why a desired child must not be written. */
function findObjection(
  source: Source,
  item: DesiredChild,
  observed: Observed,
  options: PublishOptions,
): Finding | undefined {
  const key = childKey(item)
  const label = `${item.object.kind} ${key}`
  const existing = observed.find(KIND_OF_ROLE[item.role], key)
  if (existing !== undefined) {
    const owner = findOwner(existing)
    const isOurs = owner === ownerKey(source)
    const controller = existing.metadata.ownerReferences?.find((reference) => reference.controller === true)
    if (controller !== undefined && controller.uid !== source.uid) {
      return warning(
        'ForeignObject',
        `${label} is controlled by ${controller.kind} ${controller.name}; it is not changed. Rename one of the two, or set publish.namePrefix`,
      )
    }
    if (!isOurs && owner !== undefined && observed.isAlive(owner)) {
      return warning(
        'ForeignObject',
        `${label} belongs to ${owner}; two sources make the same name, rename one of them`,
      )
    }
    if (!isOurs && options.foreign === 'refuse') {
      return warning(
        'ForeignObject',
        `${label} exists and was not made for this source; it is not changed. Delete it, or set publish.namePrefix`,
      )
    }
  }
  if (item.role !== 'certificate' || options.foreign === 'take') return undefined
  const holder = observed.findSecretHolder(
    item.object.metadata.namespace ?? '',
    item.object.spec.secretName,
    item.object.metadata.name ?? '',
  )
  if (holder === undefined) return undefined
  return warning(
    'SecretClaimed',
    `Certificate ${holder} already writes the Secret ${item.object.spec.secretName}; no second one is created. Use another secretName`,
  )
}

function findObsolete(
  source: Source,
  decision: Decision,
  desired: readonly DesiredChild[],
  observed: Observed,
  options: PublishOptions,
): OwnedChild[] {
  const keep = new Set(desired.map((item) => `${KIND_OF_ROLE[item.role].plural} ${childKey(item)}`))
  const heldKinds = new Set(
    CHILD_ROLES.filter((role) => decision.children[role].state === 'held').map((role) => KIND_OF_ROLE[role].plural),
  )
  return observed.owned.filter(({ kind, object }) => {
    const { namespace, name, ownerReferences } = object.metadata
    if (heldKinds.has(kind.plural) || keep.has(`${kind.plural} ${namespace}/${name}`)) return false
    // Of a source that changed to another class only what this instance wrote: another instance may serve the new class.
    if (decision.isOtherClass && annotation(object.metadata.annotations, CLASS_MARK) !== options.ingressClassName)
      return false
    return namespace !== source.namespace || (ownerReferences ?? []).some((reference) => reference.uid === source.uid)
  })
}

function planFinalizer(
  source: Source,
  decision: Decision,
  applies: readonly DesiredChild[],
  observed: Observed,
): 'add-finalizer' | 'remove-finalizer' | undefined {
  const isElsewhere = ({ object }: { object: Immutable<Obj> }): boolean =>
    object.metadata.namespace !== source.namespace
  // Also before children elsewhere are deleted: the guard may hold that, and an earlier list may have omitted them.
  const isNeeded = applies.some(isElsewhere) || observed.owned.some(isElsewhere)
  if (isNeeded) return source.hasFinalizer ? undefined : 'add-finalizer'
  // Another instance may have added it to a source of another class, and excluded sources are never changed.
  const isOurs = !decision.isOtherClass && !CHILD_ROLES.every((role) => decision.children[role].state === 'held')
  return source.hasFinalizer && isOurs ? 'remove-finalizer' : undefined
}

/** The names are unchanged and their targets change. */
export function isRetarget(item: DesiredChild, existing: Immutable<Child> | undefined): boolean {
  if (item.role !== 'dns' || existing === undefined) return false
  const before = new Map(
    ((existing as Immutable<DNSEndpoint>).spec?.endpoints ?? []).map((endpoint) => [
      `${endpoint.dnsName} ${endpoint.recordType}`,
      endpoint.targets,
    ]),
  )
  return item.object.spec.endpoints.some((endpoint) => {
    const targets = before.get(`${endpoint.dnsName} ${endpoint.recordType}`)
    return targets !== undefined && targets.join(' ') !== endpoint.targets.join(' ')
  })
}
