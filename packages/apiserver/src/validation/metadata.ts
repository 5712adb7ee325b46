/**
 * Validation of metadata, in the order and with the messages of kube-apiserver. Returns causes; the caller combines
 * them into one 422.
 */
import type { ObjectMeta, OwnerReference } from '@seamark/kube/object'
import {
  type Check,
  checkLabel,
  checkLabelValue,
  checkPathSegment,
  checkQualifiedName,
  checkSubdomain,
  maskTrailingDash,
} from './names.ts'
import { isSameJson } from '../codec/object-shape.ts'
import type { Cause } from '../schema/model.ts'

const maxAnnotationBytes = 256 * 1024

export function invalidValue(field: string, value: unknown, why: string): Cause {
  return { reason: 'FieldValueInvalid', message: `Invalid value: ${valueText(value)}: ${why}`, field }
}

export function requiredValue(field: string, why = ''): Cause {
  return { reason: 'FieldValueRequired', message: why === '' ? 'Required value' : `Required value: ${why}`, field }
}

export function forbiddenValue(field: string, why: string): Cause {
  return { reason: 'FieldValueForbidden', message: `Forbidden: ${why}`, field }
}

export function unsupportedValue(field: string, value: unknown, supported: readonly string[]): Cause {
  const list = supported.map((item) => JSON.stringify(item)).join(', ')
  return {
    reason: 'FieldValueNotSupported',
    message: `Unsupported value: ${valueText(value)}: supported values: ${list}`,
    field,
  }
}

export function duplicateValue(field: string, value: unknown): Cause {
  return { reason: 'FieldValueDuplicate', message: `Duplicate value: ${valueText(value)}`, field }
}

export function tooLong(field: string, limit: number): Cause {
  return { reason: 'FieldValueTooLong', message: `Too long: may not be more than ${limit} bytes`, field }
}

/** Go's %v for values that are not strings. */
function valueText(value: unknown): string {
  if (value === undefined || value === null) return 'null'
  return typeof value === 'object'
    ? JSON.stringify(value)
    : typeof value === 'string'
      ? JSON.stringify(value)
      : String(value)
}

function checkOwner(owner: OwnerReference, field: string): Cause[] {
  const causes: Cause[] = []
  const parts = (owner.apiVersion ?? '').split('/')
  if (parts.length > 2 || parts.at(-1) === '')
    causes.push(invalidValue(`${field}.apiVersion`, owner.apiVersion ?? '', 'version must not be empty'))
  for (const key of ['kind', 'name', 'uid'] as const) {
    if ((owner[key] ?? '') === '') causes.push(invalidValue(`${field}.${key}`, '', 'must not be empty'))
  }
  // Events expire: they cannot own objects.
  if (owner.apiVersion === 'v1' && owner.kind === 'Event')
    causes.push(invalidValue(field, owner, '/v1, Kind=Event is disallowed from being an owner'))
  return causes
}

function checkOwners(owners: readonly OwnerReference[], field: string): Cause[] {
  const causes: Cause[] = []
  let controller: string | undefined
  for (const owner of owners) {
    causes.push(...checkOwner(owner, field))
    if (owner.controller !== true) continue
    const name = `${owner.kind}/${owner.name}`
    if (controller === undefined) controller = name
    else {
      causes.push(
        invalidValue(
          field,
          owners,
          `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${name}`,
        ),
      )
    }
  }
  return causes
}

function checkFinalizers(finalizers: readonly string[], field: string): Cause[] {
  const causes = finalizers.flatMap((finalizer) =>
    checkQualifiedName(finalizer).map((why) => invalidValue(field, finalizer, why)),
  )
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    causes.push(invalidValue(field, finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'))
  }
  return causes
}

const standardFinalizers = new Set(['kubernetes', 'orphan', 'foregroundDeletion'])

/** Built-in kinds require qualified names; custom resources only warn. */
export function checkFinalizerNames(metadata: ObjectMeta): Cause[] {
  return (metadata.finalizers ?? []).flatMap((name, index) =>
    name.includes('/') || standardFinalizers.has(name)
      ? []
      : [
          invalidValue(
            `metadata.finalizers[${index}]`,
            name,
            'name is neither a standard finalizer name nor is it fully qualified',
          ),
        ],
  )
}

function checkCommon(metadata: ObjectMeta): Cause[] {
  const causes: Cause[] = []
  const { labels, annotations, ownerReferences, finalizers } = metadata
  if (labels !== undefined) {
    for (const key of Object.keys(labels)) {
      causes.push(...checkQualifiedName(key).map((why) => invalidValue('metadata.labels', key, why)))
      causes.push(
        ...checkLabelValue(labels[key] as string).map((why) => invalidValue('metadata.labels', labels[key], why)),
      )
    }
  }
  if (annotations !== undefined) {
    let bytes = 0
    for (const key of Object.keys(annotations)) {
      causes.push(...checkQualifiedName(key.toLowerCase()).map((why) => invalidValue('metadata.annotations', key, why)))
      bytes += Buffer.byteLength(key) + Buffer.byteLength(annotations[key] as string)
    }
    if (bytes > maxAnnotationBytes) causes.push(tooLong('metadata.annotations', maxAnnotationBytes))
  }
  if (ownerReferences !== undefined) causes.push(...checkOwners(ownerReferences, 'metadata.ownerReferences'))
  if (finalizers !== undefined) causes.push(...checkFinalizers(finalizers, 'metadata.finalizers'))
  return causes
}

export function validateMetadata(
  metadata: ObjectMeta,
  isNamespaced: boolean,
  checkName: Check = checkSubdomain,
): Cause[] {
  const causes: Cause[] = []
  const { name = '', generateName = '', namespace = '' } = metadata
  if (generateName !== '') {
    causes.push(
      ...checkName(maskTrailingDash(generateName)).map((why) =>
        invalidValue('metadata.generateName', generateName, why),
      ),
    )
  }
  if (name === '') causes.push(requiredValue('metadata.name', 'name or generateName is required'))
  else causes.push(...checkName(name).map((why) => invalidValue('metadata.name', name, why)))
  if (isNamespaced) {
    if (namespace === '') causes.push(requiredValue('metadata.namespace'))
    else causes.push(...checkLabel(namespace).map((why) => invalidValue('metadata.namespace', namespace, why)))
  } else if (namespace !== '') causes.push(forbiddenValue('metadata.namespace', 'not allowed on this type'))
  if (checkName !== checkPathSegment && causes.length === 0) {
    causes.push(...checkPathSegment(name).map((why) => invalidValue('metadata.name', name, why)))
  }
  if ((metadata.generation ?? 0) < 0)
    causes.push(invalidValue('metadata.generation', metadata.generation, 'must be greater than or equal to 0'))
  return [...causes, ...checkCommon(metadata)]
}

export function validateMetadataUpdate(next: ObjectMeta, old: ObjectMeta): Cause[] {
  const causes: Cause[] = []
  if (old.deletionTimestamp !== undefined) {
    const extra = (next.finalizers ?? []).filter((finalizer) => !(old.finalizers ?? []).includes(finalizer))
    if (extra.length > 0) {
      const list = `[]string{${[...new Set(extra)]
        .sort()
        .map((name) => JSON.stringify(name))
        .join(', ')}}`
      causes.push(
        forbiddenValue(
          'metadata.finalizers',
          `no new finalizers can be added if the object is being deleted, found new finalizers ${list}`,
        ),
      )
    }
  }
  for (const key of [
    'name',
    'namespace',
    'uid',
    'creationTimestamp',
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
  ] as const) {
    if (!isSameJson(next[key], old[key])) causes.push(invalidValue(`metadata.${key}`, next[key], 'field is immutable'))
  }
  return [...causes, ...checkCommon(next)]
}
