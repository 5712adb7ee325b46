/**
 * Desired RRsets from DNSEndpoints: those that ExternalDNS' CRD source would accept, with its label and annotation filters. Pure.
 *
 * A DNSEndpoint is the source of all its endpoints; an endpoint that is not a valid RRset is unusable with a reason, and
 * what is published under its name stays. Annotations: `seamark.io/adopt` (exact old values, external-dns/OWNER or
 * dnslb/IDENTITY) and
 * `seamark.io/approve` (apex, wildcard, delegation), which count only in trusted namespaces, and `seamark.io/share` (several
 * clusters share one name).
 */
import { ageOf } from '@seamark/dialects'
import { DNSEndpoint } from '../../../api/dns-endpoint.ts'
import { loadBalancerOf } from '../../../hosts/load-balancer.ts'
import type { Desired, Policy, RecordSource, Unusable } from '../../plan/plan.ts'
import { EndpointCounts } from './endpoint-counts.ts'
import type { EndpointCount } from '../tenants/tenant-limits.ts'
import type { TenantRules } from '../tenants/tenant-rules.ts'
import { POLICY_SET_TYPE, policyValue } from '../../../rrset/answer-policy.ts'
import { canonicalName, canonicalSet, isInvalid, shown, sortedUnique } from '../../../rrset/rrset.ts'

const ADOPT_ANNOTATION = 'seamark.io/adopt'
const APPROVE_ANNOTATION = 'seamark.io/approve'
const SHARE_ANNOTATION = 'seamark.io/share'

/** Prefix of source UIDs of this kind: only a process that can list a kind can confirm that one of its objects is gone. */
export const SOURCE_PREFIX = 'dnsendpoint/'

export interface DesiredRecords {
  readonly desired: readonly Desired[]
  readonly unusable: readonly Unusable[]
}

/** One week. */
const MAX_TTL_SECONDS = 604_800

interface Readable {
  readonly metadata: {
    readonly name?: string
    readonly namespace?: string
    readonly uid?: string
    readonly generation?: number
    readonly creationTimestamp?: string
    readonly annotations?: Readonly<Record<string, string>>
    readonly ownerReferences?: readonly {
      readonly apiVersion: string
      readonly kind: string
      readonly name?: string
      readonly uid: string
      readonly controller?: boolean
    }[]
  }
  /** Untrusted schema: `desiredRRset` validates every field. */
  readonly spec?: { readonly endpoints?: readonly unknown[] }
  readonly status?: { readonly observedGeneration?: unknown }
}

export function sourceOf(object: Readable): RecordSource {
  const { name = '', namespace = '', uid, generation } = object.metadata
  const placed = object.status?.observedGeneration
  return {
    // A manifest that is not in a cluster yet has no UID.
    uid: `${SOURCE_PREFIX}${uid ?? `${namespace}/${name}`}`,
    label: `DNSEndpoint ${namespace}/${name}`,
    namespace,
    ...(generation !== undefined && { revision: String(generation) }),
    ...(typeof placed === 'number' && { placedRevision: String(placed) }),
    age: ageOf(DNSEndpoint, object),
  }
}

export function desiredOf(objects: Iterable<Readable>, defaultTtl: number, rules: TenantRules): DesiredRecords {
  const desired: Desired[] = []
  const unusable: Unusable[] = []
  for (const object of objects) {
    const source = sourceOf(object)
    const { namespace = '', annotations } = object.metadata
    const own = policyOf(annotations, rules.isTrusted(namespace))
    const balanced = rules.adoptedByLoadBalancers === undefined ? undefined : balancedName(object, rules)
    const policyFor = (name: string): Policy | undefined => {
      const adopt = own?.adopt ?? (name === balanced ? rules.adoptedByLoadBalancers : undefined)
      const isOfLoadBalancer = loadBalancerOf(object) !== undefined
      if (adopt === undefined && !isOfLoadBalancer) return own
      return { ...own, ...(isOfLoadBalancer && { isOfLoadBalancer }), ...(adopt !== undefined && { adopt }) }
    }
    const endpoints = Array.isArray(object.spec?.endpoints) ? object.spec.endpoints : []
    /** One RRset holds the policies of all types of a name. */
    const policySets = new Map<string, { ttl: number; values: string[] }>()
    for (const endpoint of endpoints) {
      const fields = typeof endpoint === 'object' && endpoint !== null ? endpoint : {}
      const item = desiredRRset(fields as Partial<Record<string, unknown>>, source, defaultTtl)
      if ('code' in item) {
        unusable.push(item)
        continue
      }
      const why = rules.findNameFault(namespace, item.set.name)
      if (why !== undefined) {
        unusable.push({ ...item.set, source, code: 'NameNotGranted', message: why })
        continue
      }
      const policy = policyFor(item.set.name)
      desired.push({ set: item.set, source, ...(policy !== undefined && { policy }) })
      if (item.answerPolicy === undefined) continue
      const { name, ttl } = item.set
      policySets.set(name, { ttl, values: [...(policySets.get(name)?.values ?? []), item.answerPolicy] })
    }
    for (const [name, { ttl, values }] of policySets) {
      const set = { name, type: POLICY_SET_TYPE, ttl, values: sortedUnique(values) }
      const policy = policyFor(name)
      desired.push({ set, source, ...(policy !== undefined && { policy }) })
    }
  }
  return { desired, unusable }
}

/**
 * For commands, which see all objects at once: the endpoints of objects beyond a limit are unusable. The manager computes
 * limits as objects change, and reports such an object once (records-pass.ts).
 */
export function desiredWithinLimits(
  objects: readonly Readable[],
  defaultTtl: number,
  rules: TenantRules,
): DesiredRecords {
  const counts = new EndpointCounts(rules.limits, rules.unlimited)
  for (const object of objects) counts.set(object.metadata.namespace ?? '', countOf(object))
  const { added: over } = counts.update()
  const { desired, unusable } = desiredOf(objects, defaultTtl, rules)
  const beyond = desired.flatMap(({ set, source }): Unusable[] => {
    const message = over.get(source.uid)
    return message === undefined ? [] : [{ ...set, source, code: 'EndpointLimitExceeded', message }]
  })
  return { desired: desired.filter(({ source }) => !over.has(source.uid)), unusable: [...unusable, ...beyond] }
}

export function countOf(object: Readable): EndpointCount {
  const { uid, age } = sourceOf(object)
  return { uid, age, endpoints: countEndpoints(object) }
}

export function countEndpoints(object: Pick<Readable, 'spec'> | undefined): number {
  const endpoints: unknown = object?.spec?.endpoints
  return Array.isArray(endpoints) ? endpoints.length : 0
}

/** Canonical names; invalid names are included as written, so that their refusal is reported. */
export function requestedBy(object: Pick<Readable, 'spec'> | undefined): Set<string> {
  const names = new Set<string>()
  const endpoints: readonly unknown[] = Array.isArray(object?.spec?.endpoints) ? object.spec.endpoints : []
  for (const endpoint of endpoints) {
    const dnsName = (endpoint as { dnsName?: unknown } | null)?.dnsName
    const text = typeof dnsName === 'string' ? dnsName : ''
    const name = canonicalName(text)
    names.add(isInvalid(name) ? shown(text) : name)
  }
  return names
}

/** Validates every field: the CRD and its schema may come from another project. */
function desiredRRset(
  endpoint: Partial<Record<string, unknown>>,
  source: RecordSource,
  defaultTtl: number,
): { set: Desired['set']; answerPolicy?: string } | Unusable {
  const { dnsName, recordType, targets, recordTTL, setIdentifier, providerSpecific } = endpoint
  const name = typeof dnsName === 'string' ? dnsName : ''
  const type = typeof recordType === 'string' ? recordType.toUpperCase() : ''
  const canonical = canonicalName(name)
  const refuse = (message: string): Unusable => ({
    name: isInvalid(canonical) ? shown(name) : canonical,
    type: shown(type),
    source,
    code: 'RecordInvalid',
    message,
  })
  if (isInvalid(canonical)) return refuse(canonical.invalid)
  if (canonical.startsWith('_seamark-')) return refuse('names that begin with _seamark- are markers')
  // Its marker would be the one of the wildcard.
  if (canonical.startsWith('_any.'))
    return refuse('names that begin with _any. stand for wildcards in the names of markers')
  if (typeof setIdentifier === 'string' && setIdentifier !== '')
    return refuse('routing policies (setIdentifier) are not supported')
  if (
    targets !== undefined &&
    targets !== null &&
    (!Array.isArray(targets) || targets.some((target) => typeof target !== 'string'))
  ) {
    return refuse('targets is a list of texts')
  }
  if (recordTTL !== undefined && recordTTL !== null && typeof recordTTL !== 'number')
    return refuse('recordTTL is a number')
  // As in ExternalDNS, zero means "not set".
  const ttl = recordTTL === undefined || recordTTL === null || recordTTL === 0 ? defaultTtl : recordTTL
  // Resolvers would keep a mistake for longer than anybody waits, whatever is published after it.
  if (ttl > MAX_TTL_SECONDS) return refuse(`recordTTL is ${ttl}; at most ${MAX_TTL_SECONDS} (one week) are published`)
  const set = canonicalSet({ name, type, ttl, values: (targets ?? []) as string[] })
  if (isInvalid(set)) return refuse(set.invalid)
  if (type === 'CNAME' && set.values.includes(set.name)) return refuse('a CNAME to its own name has no answer')
  // Such a value could claim a record for ExternalDNS, and so prevent its owner from changing it.
  if (type === 'TXT' && set.values.some(isRegistryShaped))
    return refuse("TXT values that begin with heritage= are entries of ExternalDNS' registry")
  const answerPolicy = policyValue(providerSpecific, set)
  if (isInvalid(answerPolicy)) return refuse(answerPolicy.invalid)
  return { set, ...(answerPolicy !== undefined && { answerPolicy }) }
}

function isRegistryShaped(value: string): boolean {
  return /^"?\s*heritage=/i.test(value)
}

/** The name of the load balancer that the object belongs to. A reference can be made up: the load balancer is looked up. */
function balancedName(object: Readable, { nameOfLoadBalancer }: TenantRules): string | undefined {
  const uid = loadBalancerOf(object)
  if (uid === undefined) return undefined
  const { namespace = '', ownerReferences } = object.metadata
  const owner = ownerReferences?.find(({ controller }) => controller === true)
  const text = nameOfLoadBalancer?.(`${namespace}/${owner?.name ?? ''}`, uid)
  const name = text === undefined ? undefined : canonicalName(text)
  return name === undefined || isInvalid(name) ? undefined : name
}

function policyOf(annotations: Readonly<Record<string, string>> | undefined, isTrusted: boolean): Policy | undefined {
  const adopt = annotations?.[ADOPT_ANNOTATION]
  const isShared = annotations?.[SHARE_ANNOTATION] === 'true'
  if (!isTrusted) {
    const isRequesting = (adopt ?? '') !== '' || annotations?.[APPROVE_ANNOTATION] === 'true'
    if (!isRequesting && !isShared) return undefined
    return { ...(isRequesting && { isUntrusted: true }), ...(isShared && { isShared }) }
  }
  const policy: Policy = {
    ...(adopt !== undefined && adopt !== '' && { adopt }),
    ...(annotations?.[APPROVE_ANNOTATION] === 'true' && { isApproved: true }),
    ...(isShared && { isShared }),
  }
  return Object.keys(policy).length === 0 ? undefined : policy
}
