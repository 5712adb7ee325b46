/** Kinds with few rules: Namespaces, Nodes, Leases, Events, PodDisruptionBudgets, classes, claims. */
import { parseQuantity } from '../cel/quantity.ts'
import { forbiddenValue, invalidValue, requiredValue } from './metadata.ts'
import { checkQualifiedName } from './names.ts'
import {
  type ApiObject,
  asRecords,
  asStrings,
  getPath,
  isRecord,
  isSameJson,
  type Json,
} from '../codec/object-shape.ts'
import type { Cause } from '../schema/model.ts'
import { atLeastZero, count, ipRange, labelSelector, named, oneOf, text } from './field-rules.ts'
import { resourceAmount } from './container-rules.ts'
import { share } from './workload-rules.ts'

const specOf = (object: ApiObject | undefined): Json => (isRecord(object?.['spec']) ? object['spec'] : {})

export function validateLease(object: ApiObject): Cause[] {
  const { leaseDurationSeconds: seconds, leaseTransitions } = specOf(object)
  return [
    ...(typeof seconds === 'number' && seconds <= 0
      ? [invalidValue('spec.leaseDurationSeconds', seconds, 'must be greater than 0')]
      : []),
    ...atLeastZero('spec.leaseTransitions', leaseTransitions),
  ]
}

const unqualified = 'name is neither a standard finalizer name nor is it fully qualified'

/** The finalizers of a Namespace's spec; paths contain an index on `finalize`, but not on create. */
export function validateNamespace(object: ApiObject, old: ApiObject | undefined): Cause[] {
  return asStrings(specOf(object)['finalizers']).flatMap((name, index) => {
    const field = old === undefined ? 'spec.finalizers' : `spec.finalizers[${index}]`
    const causes = named(checkQualifiedName, field, name)
    return name.includes('/') || name === 'kubernetes' ? causes : [...causes, invalidValue(field, name, unqualified)]
  })
}

/** Additional rules apply to new Events of events.k8s.io and to those of the core group with an eventTime. */
export function validateEvent(object: ApiObject, old: ApiObject | undefined): Cause[] {
  const isNew = object.apiVersion === 'events.k8s.io/v1'
  const [subject, controller] = isNew ? ['regarding', 'reportingController'] : ['involvedObject', 'reportingComponent']
  const { namespace = '' } = object.metadata
  const given = text(getPath(object, subject, 'namespace'))
  const causes: Cause[] = []
  if (given !== namespace && !(given === '' && namespace === 'default'))
    causes.push(invalidValue('involvedObject.namespace', given, 'does not match event.namespace'))
  const hasTime = object['eventTime'] !== undefined && object['eventTime'] !== null
  if (old !== undefined || (!isNew && !hasTime)) return causes
  return [
    ...causes,
    ...(hasTime ? timedEvent(object, controller) : [requiredValue('eventTime')]),
    ...eventType(object, isNew),
  ]
}

function timedEvent(object: ApiObject, controller: string): Cause[] {
  const name = text(object[controller])
  const series = object['series']
  return [
    ...(isRecord(series) && count(series['count']) < 2
      ? [invalidValue('series.count', '', 'should be at least 2')]
      : []),
    ...(name === '' ? [requiredValue('reportingComponent')] : []),
    ...named(checkQualifiedName, 'reportingComponent', name),
    ...['reportingInstance', 'action', 'reason'].flatMap((key) =>
      text(object[key]) === '' ? [requiredValue(key)] : [],
    ),
  ]
}

function eventType(object: ApiObject, isNew: boolean): Cause[] {
  const type = text(object['type'])
  if (!isNew || type === 'Normal' || type === 'Warning') return []
  return [invalidValue('type', '', `has invalid value: ${type}`)]
}

export function validateNode(object: ApiObject, old: ApiObject | undefined): Cause[] {
  const spec = specOf(object)
  const seen = new Set<string>()
  const causes = asRecords(spec['taints']).flatMap((taint, index) => {
    const at = `metadata.taints[${index}]`
    const [key, effect] = [text(taint['key']), text(taint['effect'])]
    const problems = [
      ...named(checkQualifiedName, `${at}.key`, key),
      ...(effect === '' ? [requiredValue(`${at}.effect`)] : oneOf(`${at}.effect`, effect, taintEffects)),
    ]
    if (problems.length > 0) return problems
    const pair = `${key}:${effect}`
    const internal = { Key: key, Value: text(taint['value']), Effect: effect, TimeAdded: taint['timeAdded'] ?? null }
    const isDuplicate = seen.has(pair)
    seen.add(pair)
    return isDuplicate ? [duplicateWith(at, internal, 'taints must be unique by key and effect pair')] : []
  })
  causes.push(...asStrings(spec['podCIDRs']).flatMap((range, index) => ipRange(`spec.podCIDRs[${index}]`, range)))
  causes.push(...nodeStatus(object))
  return old === undefined ? causes : [...causes, ...keptNode(spec, specOf(old))]
}

const taintEffects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

function duplicateWith(field: string, value: Json, why: string): Cause {
  return { reason: 'FieldValueDuplicate', message: `Duplicate value: ${JSON.stringify(value)}: ${why}`, field }
}

function nodeStatus(object: ApiObject): Cause[] {
  const amounts = (key: string): Cause[] => {
    const list = getPath(object, 'status', key)
    return Object.entries(isRecord(list) ? list : {}).flatMap(([name, amount]) =>
      resourceAmount(`status.${key}.${name}`, amount),
    )
  }
  const seen: Json[] = []
  const duplicates = asRecords(getPath(object, 'status', 'addresses')).flatMap((address, index) => {
    const internal = { Type: text(address['type']), Address: text(address['address']) }
    const isDuplicate = seen.some((other) => isSameJson(other, internal))
    seen.push(internal)
    const message = `Duplicate value: ${JSON.stringify(internal)}`
    return isDuplicate ? [{ reason: 'FieldValueDuplicate' as const, message, field: `status.addresses[${index}]` }] : []
  })
  return [...amounts('capacity'), ...amounts('allocatable'), ...duplicates]
}

function keptNode(spec: Json, old: Json): Cause[] {
  const keep = (key: string, field: string, name: string): Cause[] =>
    old[key] === undefined || isSameJson(spec[key], old[key])
      ? []
      : [forbiddenValue(field, `node updates may not change ${name} except from "" to valid`)]
  return [...keep('podCIDRs', 'spec.podCIDRs', 'podCIDR'), ...keep('providerID', 'spec.providerID', 'providerID')]
}

export function validateBudget(object: ApiObject): Cause[] {
  const { minAvailable, maxUnavailable, selector } = specOf(object)
  const causes: Cause[] = []
  if (minAvailable !== undefined && maxUnavailable !== undefined) {
    const internal = {
      MinAvailable: minAvailable,
      Selector: selector ?? null,
      MaxUnavailable: maxUnavailable,
      UnhealthyPodEvictionPolicy: specOf(object)['unhealthyPodEvictionPolicy'] ?? null,
    }
    causes.push(invalidValue('spec', internal, 'minAvailable and maxUnavailable cannot be both set'))
  }
  return [
    ...causes,
    ...share('spec.minAvailable', minAvailable, true),
    ...share('spec.maxUnavailable', maxUnavailable, true),
    ...labelSelector('spec.selector', selector),
  ]
}

export function validateAutoscaler(object: ApiObject): Cause[] {
  const { minReplicas, maxReplicas, scaleTargetRef: target } = specOf(object)
  const causes: Cause[] = []
  if (count(minReplicas) < 1 && minReplicas !== undefined)
    causes.push(invalidValue('spec.minReplicas', minReplicas, 'must be greater than or equal to 1'))
  if (count(maxReplicas) < 1) causes.push(requiredValue('spec.maxReplicas', 'must be set and greater than 0'))
  if (count(maxReplicas) < count(minReplicas)) {
    const why = 'must be greater than or equal to `minReplicas`'
    causes.push(invalidValue('spec.maxReplicas', count(maxReplicas), why))
  }
  for (const key of ['kind', 'name'])
    if (text(getPath(target, key)) === '') causes.push(requiredValue(`spec.scaleTargetRef.${key}`))
  const version = text(getPath(target, 'apiVersion'))
  if (version === '')
    causes.push(invalidValue('spec.scaleTargetRef.apiVersion', version, 'apiVersion must specify API group'))
  return causes
}

export function validateStorageClass(object: ApiObject): Cause[] {
  return text(object['provisioner']) === '' ? [requiredValue('provisioner')] : []
}

const maxUserPriority = 1_000_000_000

export function validatePriorityClass({ metadata, value }: ApiObject): Cause[] {
  const isSystem = (metadata.name ?? '').startsWith('system-')
  return !isSystem && count(value) > maxUserPriority
    ? [forbiddenValue('value', `maximum allowed value of a user defined priority is ${maxUserPriority}`)]
    : []
}

export function validateClaim(object: ApiObject): Cause[] {
  const spec = specOf(object)
  const size = getPath(spec, 'resources', 'requests', 'storage')
  const amount = parseQuantity(String(size))
  const causes: Cause[] = []
  if (asStrings(spec['accessModes']).length === 0)
    causes.push(requiredValue('spec.accessModes', 'at least 1 access mode is required'))
  if (size === undefined) causes.push(requiredValue('spec.resources[storage]'))
  else if (amount !== undefined && amount.units <= 0n)
    causes.push(invalidValue('spec.resources[storage]', String(size), 'must be greater than zero'))
  return causes
}

export function validateQuota(object: ApiObject): Cause[] {
  const hard = specOf(object)['hard']
  return Object.entries(isRecord(hard) ? hard : {}).flatMap(([name, amount]) => {
    const at = `spec.hard[${name}]`
    const causes = named(checkQualifiedName, at, name)
    if (causes.length > 0) causes.push(invalidValue(at, name, 'must be a standard resource for quota'))
    return [...causes, ...resourceAmount(at, amount)]
  })
}

export function validateLimitRange(object: ApiObject): Cause[] {
  return asRecords(specOf(object)['limits']).flatMap((limit, index) =>
    named(checkQualifiedName, `spec.limits[${index}].type`, text(limit['type'])),
  )
}
