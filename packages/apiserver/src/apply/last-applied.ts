/**
 * Migration from client-side to server-side apply: the manager `kubectl` may take ownership of fields in its
 * last-applied annotation, and the annotation is updated as long as it exists.
 */
import type { Obj } from '@seamark/kube/object'
import { checkValue } from './typed-validate.ts'
import type { FieldType, Fields } from './field-type.ts'
import { compareFields, fieldsOf } from './typed-compare.ts'

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
/** Total size of all annotations that the server accepts, in bytes. */
const MAX_ANNOTATIONS = 256 * 1024

/**
 * Whether the annotation contains the field with its current value: kubectl already managed it, so there is no
 * conflict.
 */
export function allowedByLastApplied(
  type: FieldType,
  live: Fields,
  apiVersion: string,
  path: readonly string[],
): boolean {
  const annotation = (live as unknown as Obj).metadata.annotations?.[LAST_APPLIED]
  const applied = annotation === undefined ? undefined : parseObject(annotation)
  if (applied?.['apiVersion'] !== apiVersion || checkValue(type, applied).length > 0) return false
  const { modified, added, removed } = compareFields(type, applied, live)
  return fieldsOf(type, applied).difference(modified).difference(added).difference(removed).has(path)
}

function parseObject(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Fields) : undefined
  } catch {
    return undefined
  }
}

/**
 * Rewrites the annotation of `object` in place if it exists; drops it when the annotations would exceed their limit.
 */
export function refreshLastApplied(object: Obj, intent: Obj): void {
  const { annotations } = object.metadata
  if (annotations?.[LAST_APPLIED] === undefined || annotations[LAST_APPLIED] === '') return
  const { [LAST_APPLIED]: _, ...rest } = annotations
  const text = `${JSON.stringify(withoutAnnotation(intent))}\n`
  const size = Object.entries(rest).reduce((sum, [key, value]) => sum + byteLength(key) + byteLength(value), 0)
  const fits = size + byteLength(LAST_APPLIED) + byteLength(text) <= MAX_ANNOTATIONS
  object.metadata = { ...object.metadata, annotations: fits ? { ...rest, [LAST_APPLIED]: text } : rest }
}

function withoutAnnotation(intent: Obj): Obj {
  if (intent.metadata.annotations?.[LAST_APPLIED] === undefined) return intent
  const { [LAST_APPLIED]: _, ...annotations } = intent.metadata.annotations
  return { ...intent, metadata: { ...intent.metadata, annotations } }
}

function byteLength(text: string): number {
  return Buffer.byteLength(text)
}
