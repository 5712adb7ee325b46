/**
 * Field ownership of creates and updates: the managedFields that a write leaves behind. Server-side apply computes its own
 * (apply/apply.ts).
 */
import type { ManagedFieldsEntry } from '@seamark/kube/object'
import { trackUpdate } from '../apply/apply.ts'
import { timestamp } from '../clock.ts'
import { type ApiObject, withMetadata } from '../codec/object-shape.ts'
import type { Call, WriteOptions } from './call.ts'

/** Field ownership after a write that is not an apply. managedFields remain undefined only in an empty object. */
export function ownFields(
  call: Call,
  options: WriteOptions,
  next: ApiObject,
  old: ApiObject | undefined,
): ManagedFieldsEntry[] {
  const { resource, info, backend } = call
  // kube-apiserver tracks scale for built-in kinds only.
  if (info.subresource === 'scale' && resource.isCustom) return old?.metadata.managedFields ?? []
  const entries = trackUpdate({
    old,
    next,
    manager: options.fieldManager,
    schema: resource.schema,
    apiVersion: resource.apiVersion,
    now: timestamp(backend.clock.now()),
    ...(info.subresource !== '' && { subresource: info.subresource }),
  })
  if (info.subresource !== 'scale') return entries
  // kube-apiserver stores no time for fields set through scale; entries without a time come first.
  const scaled = entries.map(({ time, ...entry }) =>
    entry.subresource === 'scale' || time === undefined ? entry : { ...entry, time },
  )
  return [...scaled.filter((entry) => !('time' in entry)), ...scaled.filter((entry) => 'time' in entry)]
}

export function setManagedFields(object: ApiObject, entries: ManagedFieldsEntry[]): ApiObject {
  return entries.length === 0
    ? withMetadata(object, { managedFields: undefined as never })
    : withMetadata(object, { managedFields: entries })
}
