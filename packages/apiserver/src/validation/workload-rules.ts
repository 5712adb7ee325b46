/** Deployments, ReplicaSets, DaemonSets, StatefulSets, Jobs: selector, template that it must match, update strategy. */
import { forbiddenValue, invalidValue, requiredValue, unsupportedValue } from './metadata.ts'
import { checkLabel } from './names.ts'
import { type ApiObject, getPath, isRecord, isSameJson, type Json } from '../codec/object-shape.ts'
import type { Cause } from '../schema/model.ts'
import { compileLabelSelector } from '../resource/selectors.ts'
import { atLeastZero, count, immutable, labels, labelSelector, named, oneOf, text } from './field-rules.ts'
import { validatePodSpec } from './pod-rules.ts'

const specOf = (object: ApiObject | undefined): Json => (isRecord(object?.['spec']) ? object['spec'] : {})

function selectorRules(spec: Json, kind: string): Cause[] {
  const { selector } = spec
  if (!isRecord(selector)) return kind === 'daemonset' ? [] : [requiredValue('spec.selector')]
  const causes = labelSelector('spec.selector', selector)
  if (Object.keys(selector).length === 0)
    causes.push(invalidValue('spec.selector', {}, `empty selector is invalid for ${kind}`))
  return causes
}

/** `isSelectorValid`: an invalid selector cannot be compared. */
function templateRules(spec: Json, isSelectorValid: boolean): Cause[] {
  const { selector, template } = spec
  if (!isSelectorValid) return [invalidValue('spec.selector', selector, 'invalid label selector')]
  const given = getPath(template, 'metadata', 'labels')
  const isMatching =
    isRecord(selector) &&
    compileLabelSelector(selector).matches(isRecord(given) ? (given as Record<string, string>) : {})
  const why = '`selector` does not match template `labels`'
  return [
    ...(isMatching ? [] : [invalidValue('spec.template.metadata.labels', given ?? null, why)]),
    ...labels('spec.template.labels', given),
    ...validatePodSpec(getPath(template, 'spec'), 'spec.template.spec'),
    ...alwaysRunning(getPath(template, 'spec')),
  ]
}

/** Pods of these controllers run indefinitely: restartPolicy Always, no activeDeadlineSeconds. */
function alwaysRunning(spec: unknown): Cause[] {
  const [policy, deadline] = [getPath(spec, 'restartPolicy'), getPath(spec, 'activeDeadlineSeconds')]
  const causes: Cause[] = []
  if (policy !== undefined && policy !== 'Always')
    causes.push(unsupportedValue('spec.template.spec.restartPolicy', policy, ['Always']))
  if (deadline !== undefined) {
    const why = 'activeDeadlineSeconds in ReplicaSet is not Supported'
    causes.push(forbiddenValue('spec.template.spec.activeDeadlineSeconds', why))
  }
  return causes
}

function selectorAndTemplate(spec: Json, kind: string): Cause[] {
  const causes = selectorRules(spec, kind)
  const isValid = labelSelector('spec.selector', spec['selector']).length === 0
  return [...causes, ...templateRules(spec, isValid)]
}

const keptSelector = (spec: Json, old: ApiObject | undefined): Cause[] =>
  old === undefined || isSameJson(spec['selector'], specOf(old)['selector'])
    ? []
    : [invalidValue('spec.selector', spec['selector'], immutable)]

const internalStrategy = (strategy: Json): Json => ({
  Type: text(strategy['type']),
  RollingUpdate: strategy['rollingUpdate'] ?? null,
})

/** A number, or a percentage. */
export function share(field: string, value: unknown, isBounded: boolean): Cause[] {
  if (typeof value !== 'string') return atLeastZero(field, value)
  if (!/^[0-9]+%$/.test(value)) {
    const why =
      "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
    return [invalidValue(field, value, why)]
  }
  return isBounded && Number.parseInt(value, 10) > 100
    ? [invalidValue(field, value, 'must not be greater than 100%')]
    : []
}

const isNone = (value: unknown): boolean => value === 0 || (typeof value === 'string' && /^0+%$/.test(value))

function rollout(spec: Json, key: string, types: readonly string[]): Cause[] {
  const strategy = spec[key]
  if (!isRecord(strategy)) return []
  const at = `spec.${key}`
  const type = text(strategy['type'])
  if (!types.includes(type)) return [unsupportedValue(at, internalStrategy(strategy), types)]
  const rolling = strategy['rollingUpdate']
  if (type === 'Recreate')
    return isRecord(rolling)
      ? [forbiddenValue(`${at}.rollingUpdate`, "may not be specified when strategy `type` is 'Recreate'")]
      : []
  if (type !== 'RollingUpdate' || !isRecord(rolling)) return []
  const { maxUnavailable, maxSurge } = rolling
  const causes = [
    ...share(`${at}.rollingUpdate.maxUnavailable`, maxUnavailable, false),
    ...share(`${at}.rollingUpdate.maxSurge`, maxSurge, false),
  ]
  if (isNone(maxUnavailable) && isNone(maxSurge)) {
    const why = 'may not be 0 when `maxSurge` is 0'
    causes.push(invalidValue(`${at}.rollingUpdate.maxUnavailable`, maxUnavailable, why))
  }
  return [
    ...causes,
    ...share(`${at}.rollingUpdate.maxUnavailable`, maxUnavailable, true).filter(({ message }) =>
      message.endsWith('100%'),
    ),
  ]
}

export function validateDeployment(object: ApiObject, old: ApiObject | undefined): Cause[] {
  const spec = specOf(object)
  const deadline = spec['progressDeadlineSeconds']
  const isShort = typeof deadline === 'number' && deadline <= count(spec['minReadySeconds'])
  return [
    ...atLeastZero('spec.replicas', spec['replicas']),
    ...selectorAndTemplate(spec, 'deployment'),
    ...rollout(spec, 'strategy', ['Recreate', 'RollingUpdate']),
    ...atLeastZero('spec.minReadySeconds', spec['minReadySeconds']),
    ...atLeastZero('spec.revisionHistoryLimit', spec['revisionHistoryLimit']),
    ...atLeastZero('spec.progressDeadlineSeconds', deadline),
    ...(isShort
      ? [invalidValue('spec.progressDeadlineSeconds', deadline, 'must be greater than minReadySeconds')]
      : []),
    ...keptSelector(spec, old),
  ]
}

export function validateReplicaSet(object: ApiObject, old: ApiObject | undefined): Cause[] {
  const spec = specOf(object)
  return [
    ...atLeastZero('spec.replicas', spec['replicas']),
    ...atLeastZero('spec.minReadySeconds', spec['minReadySeconds']),
    // kube-apiserver shares this rule, and its message, with Deployments.
    ...selectorAndTemplate(spec, 'deployment'),
    ...keptSelector(spec, old),
  ]
}

export function validateDaemonSet(object: ApiObject, old: ApiObject | undefined): Cause[] {
  const spec = specOf(object)
  return [
    ...keptSelector(spec, old),
    ...selectorAndTemplate(spec, 'daemonset'),
    ...atLeastZero('spec.minReadySeconds', spec['minReadySeconds']),
    ...rollout(spec, 'updateStrategy', ['RollingUpdate', 'OnDelete']),
    ...atLeastZero('spec.revisionHistoryLimit', spec['revisionHistoryLimit']),
  ]
}

const statefulFields = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
]

export function validateStatefulSet(object: ApiObject, old: ApiObject | undefined): Cause[] {
  const spec = specOf(object)
  const [policy, strategy] = [text(spec['podManagementPolicy']), spec['updateStrategy']]
  const causes: Cause[] = []
  if (policy !== 'OrderedReady' && policy !== 'Parallel') {
    const why = "must be 'OrderedReady' or 'Parallel'"
    causes.push(invalidValue('spec.podManagementPolicy', policy, why))
  }
  if (isRecord(strategy) && strategy['type'] !== 'RollingUpdate' && strategy['type'] !== 'OnDelete') {
    const why = "must be 'RollingUpdate' or 'OnDelete'"
    causes.push(invalidValue('spec.updateStrategy', internalStrategy(strategy), why))
  }
  if (text(spec['serviceName']) !== '') causes.push(...named(checkLabel, 'spec.serviceName', text(spec['serviceName'])))
  causes.push(
    ...atLeastZero('spec.replicas', spec['replicas']),
    ...atLeastZero('spec.minReadySeconds', spec['minReadySeconds']),
    ...selectorAndTemplate(spec, 'statefulset'),
  )
  return old === undefined ? causes : [...causes, ...keptStateful(spec, specOf(old))]
}

function keptStateful(spec: Json, old: Json): Cause[] {
  const fixed = (value: Json): Json =>
    Object.fromEntries(Object.entries(value).filter(([key]) => !statefulFields.includes(key)))
  if (isSameJson(fixed(spec), fixed(old))) return []
  const list = statefulFields.map((field) => `'${field}'`)
  const why = `updates to statefulset spec for fields other than ${list.slice(0, -1).join(', ')} and ${list.at(-1)} are forbidden`
  return [forbiddenValue('spec', why)]
}

function jobSpec(spec: Json, at: string): Cause[] {
  const template = getPath(spec, 'template', 'spec')
  const policy = text(getPath(template, 'restartPolicy'))
  const field = `${at}.template.spec.restartPolicy`
  const allowed = ['OnFailure', 'Never']
  const numbers = ['parallelism', 'completions', 'activeDeadlineSeconds', 'backoffLimit', 'ttlSecondsAfterFinished']
  return [
    ...numbers.flatMap((key) => atLeastZero(`${at}.${key}`, spec[key])),
    ...validatePodSpec(template, `${at}.template.spec`),
    ...(policy === 'Always' || policy === ''
      ? [requiredValue(field, `valid values: ${allowed.map((item) => JSON.stringify(item)).join(', ')}`)]
      : oneOf(field, policy, allowed)),
  ]
}

export function validateJob(object: ApiObject): Cause[] {
  return jobSpec(specOf(object), 'spec')
}

export function validateCronJob(object: ApiObject): Cause[] {
  const spec = specOf(object)
  const schedule = text(spec['schedule'])
  const fields = schedule.trim().split(/\s+/)
  const causes: Cause[] = []
  if (schedule === '') causes.push(requiredValue('spec.schedule'))
  else if (!schedule.startsWith('@') && fields.length !== 5) {
    const why = `expected exactly 5 fields, found ${fields.length}: [${fields.join(' ')}]`
    causes.push(invalidValue('spec.schedule', schedule, why))
  }
  const template = getPath(spec, 'jobTemplate', 'spec')
  return [
    ...causes,
    ...oneOf('spec.concurrencyPolicy', spec['concurrencyPolicy'], ['Allow', 'Forbid', 'Replace']),
    ...jobSpec(isRecord(template) ? template : {}, 'spec.jobTemplate.spec'),
  ]
}
