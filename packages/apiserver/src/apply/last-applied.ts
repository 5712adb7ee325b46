/**
 * The bridge from client-side to server-side apply: the manager `kubectl` may take over what its own last-applied
 * annotation already says, and the annotation is kept up to date for as long as it exists.
 */
import type { Obj } from '@seamark/kube/object'
import { checkValue } from './typed-validate.ts'
import type { FieldType, Fields } from './field-type.ts'
import { compareFields, fieldsOf } from './typed-compare.ts'

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
/** Total size of all annotations that the server accepts, in bytes. */
const MAX_ANNOTATIONS = 256 * 1024

/** Whether the annotation names the field with the value it has now: no conflict then, it was kubectl's all along. */
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

/** Rewrites the annotation of `object` in place if there is one; drops it when annotations would grow too large. */
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
