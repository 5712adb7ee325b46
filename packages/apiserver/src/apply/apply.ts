/**
 * Server-side apply and update tracking: which manager owns which field, and how an applied configuration changes an
 * object.
 *
 * Place in the flow: the write path calls `serverSideApply` for apply patches and `trackUpdate` for every other write.
 * Both receive objects as decoded and defaulted, before the strategy sets uid and timestamps and resets fields of other
 * endpoints. The caller defaults and validates the result of an apply but does not prune it, because validation reports
 * remaining nulls; the stored result is pruned and defaulted on read like any other object.
 * Guarantees: pure (the time is an argument); the result equals structured-merge-diff's, field for field.
 * Caveats: one schema serves all versions in managedFields, which is exact for conversion strategy None.
 */
import type { ManagedFieldsEntry, Obj } from '@seamark/kube/object'
import { jsonEqual } from '../codec/json-equal.ts'
import { zeroValue } from '../schema/zero.ts'
import type { Schema } from '../schema/model.ts'
import type { ApplyConflict } from './conflict.ts'
import { conflictsOf } from './conflict.ts'
import { FieldSet } from './field-set.ts'
import { objectType } from './field-type.ts'
import type { FieldType, Fields } from './field-type.ts'
import { allowedByLastApplied, refreshLastApplied } from './last-applied.ts'
import { TypedValueError } from './list-item.ts'
import { capUpdateManagers, decodeManagers, encodeManagers, identify } from './managers.ts'
import type { Managers, Owned } from './managers.ts'
import { UNOWNED_METADATA, fieldsOfCreator } from './owned-fields.ts'
import { pruneApplied } from './prune-applied.ts'
import { reconcileWithType } from './reconcile.ts'
import { compareFields, fieldsOf } from './typed-compare.ts'
import type { Comparison } from './typed-compare.ts'
import { mergeValues } from './typed-merge.ts'
import { checkValue, violationText } from './typed-validate.ts'

export type { ApplyConflict } from './conflict.ts'
export { conflictCauses, conflictMessage } from './conflict.ts'

interface Write {
  manager: string
  schema: Schema | undefined
  apiVersion: string
  subresource?: string
  /** Top-level fields this endpoint takes from the stored object: no manager becomes their owner here. */
  resetFields?: readonly string[]
  /** RFC 3339 in UTC, whole seconds. */
  now: string
}

export interface ApplyInput extends Write {
  live: Obj | undefined
  intent: Obj
  force: boolean
}

export interface UpdateInput extends Write {
  old: Obj | undefined
  next: Obj
}

/** The configuration does not fit the kind; the server responds with `status`. */
export class ApplyError extends Error {
  readonly code = 'APPLY_REJECTED'
  readonly status: 400 | 500

  constructor(status: 400 | 500, message: string) {
    super(message)
    this.name = 'ApplyError'
    this.status = status
  }
}

const STRIPPED = new FieldSet(
  new Set(['f:apiVersion', 'f:kind', 'f:metadata']),
  new Map([['f:metadata', new FieldSet(new Set([...UNOWNED_METADATA].map((name) => `f:${name}`)))]]),
)

export function serverSideApply(input: ApplyInput): { object: Obj } | { conflicts: ApplyConflict[] } {
  const { intent, manager, schema, apiVersion } = input
  if (intent.apiVersion !== apiVersion) {
    throw new ApplyError(400, `invalid object type: ${intent.apiVersion ?? ''}, Kind=${intent.kind ?? ''}`)
  }
  if (intent.metadata.managedFields !== undefined) throw new ApplyError(400, 'metadata.managedFields must be nil')
  const type = objectType(schema)
  const violations = checkValue(type, intent)
  if (violations.length > 0) {
    throw new ApplyError(500, `failed to create typed patch object (${describe(intent)}): ${violationText(violations)}`)
  }
  const managers = decodeManagers(input.live?.metadata.managedFields)
  if (managers === undefined) throw new ApplyError(500, 'failed to decode managed fields of the stored object')
  const live = withoutManagedFields(input.live) ?? emptyObject(input, intent.kind)
  if (managers.size === 0 && input.live !== undefined) claimExisting(input, type, live, managers)
  const self: Owned = ownedBy(input, manager, 'Apply')
  const outcome = applyOnce(input, type, live, managers, self, input.force)
  if ('object' in outcome || manager !== 'kubectl') return outcome
  const rest = outcome.conflicts.filter((conflict) => !allowedByLastApplied(type, live, apiVersion, conflict.path))
  if (rest.length > 0) return { conflicts: rest }
  return applyOnce(input, type, live, managers, self, true)
}

function applyOnce(
  input: ApplyInput,
  type: FieldType,
  live: Fields,
  stored: Managers,
  self: Owned,
  force: boolean,
): { object: Obj } | { conflicts: ApplyConflict[] } {
  const id = identify(self)
  const managers: Managers = new Map()
  for (const [key, owned] of stored) managers.set(key, { ...owned, set: reconcileWithType(owned.set, type) })
  const last = managers.get(id)
  const reset = resetSet(input)
  managers.set(id, { ...self, set: fieldsOf(type, input.intent).differenceWithBelow(reset), time: last?.time })
  let merged: unknown
  try {
    merged = mergeValues(type, live, input.intent)
  } catch (error) {
    if (!(error instanceof TypedValueError)) throw error
    throw new ApplyError(500, `failed to merge config: ${error.message}`)
  }
  const next = (last === undefined ? merged : pruneApplied(type, merged, managers, last.set)) as Fields
  const changes = withoutFields(compareFields(type, live, next), reset)
  if (!force) {
    const conflicts = conflictsOf(managers, id, changes)
    if (conflicts.length > 0) return { conflicts }
  }
  releaseFields(managers, id, changes)
  const current = managers.get(id)
  if (current !== undefined) replaceSet(managers, id, current, current.set.difference(STRIPPED))
  const isChanged = !jsonEqual(live, next)
  const owned = managers.get(id)
  if (isChanged && owned !== undefined) managers.set(id, { ...owned, time: input.now })
  const object = withManagedFields(isChanged ? next : live, encodeManagers(managers))
  if (input.manager === 'kubectl') refreshLastApplied(object, input.intent)
  return { object }
}

/**
 * Without managedFields no owner is known: existing fields are assigned to a separate manager, so that they are kept.
 */
function claimExisting(input: ApplyInput, type: FieldType, live: Fields, managers: Managers): void {
  const owner = ownedBy(input, 'before-first-apply', 'Update')
  const fields = fieldsOfCreator(type, emptyObject(input, input.intent.kind), live, input.resetFields ?? [])
  if (fields !== undefined) {
    managers.set(identify(owner), { ...owner, set: FieldSet.fromFieldsV1(fields), time: input.now })
  }
}

export function trackUpdate(input: UpdateInput): ManagedFieldsEntry[] {
  const type = objectType(input.schema)
  try {
    const managers = managersBefore(input)
    if (managers.size === 0) return input.old === undefined ? trackCreate(input, type) : []
    return trackChange(input, type, managers)
  } catch (error) {
    // A list that cannot be split into items: ownership is dropped, the write itself succeeds.
    if (error instanceof TypedValueError) return []
    throw error
  }
}

/** managedFields of the request take effect, except on a subresource; `[]` or `[{}]` resets them. */
function managersBefore({ old, next, subresource }: UpdateInput): Managers {
  const given = next.metadata.managedFields
  if (subresource === undefined || subresource === '') {
    if (given?.length === 0 || (given?.length === 1 && Object.keys(given[0]!).length === 0)) return new Map()
    const managers = decodeManagers(given)
    if (managers !== undefined && managers.size > 0) return managers
  }
  return decodeManagers(old?.metadata.managedFields) ?? new Map<string, Owned>()
}

function trackCreate(input: UpdateInput, type: FieldType): ManagedFieldsEntry[] {
  const empty = emptyObject(input, input.next.kind)
  const fields = fieldsOfCreator(type, empty, input.next as unknown as Fields, input.resetFields ?? [])
  if (fields === undefined) return []
  const { manager, apiVersion, now: time, subresource = '' } = input
  const entry: ManagedFieldsEntry = {
    manager: manager === '' ? 'unknown' : manager,
    operation: 'Update',
    apiVersion,
    time,
    fieldsType: 'FieldsV1',
    fieldsV1: fields,
  }
  if (subresource !== '') entry.subresource = subresource
  return [entry]
}

function trackChange(input: UpdateInput, type: FieldType, managers: Managers): ManagedFieldsEntry[] {
  const live = withoutManagedFields(input.old) ?? emptyObject(input, input.next.kind)
  for (const [key, owned] of managers) managers.set(key, { ...owned, set: reconcileWithType(owned.set, type) })
  const changes = withoutFields(compareFields(type, live, withoutManagedFields(input.next)), resetSet(input))
  releaseFields(managers, undefined, changes)
  const gained = changes.modified.union(changes.added).difference(STRIPPED)
  if (!gained.isEmpty()) {
    const self = ownedBy(input, input.manager, 'Update')
    const id = identify(self)
    managers.set(id, { ...self, set: gained.union(managers.get(id)?.set ?? new FieldSet()), time: input.now })
  }
  capUpdateManagers(managers)
  return encodeManagers(managers)
}

/** Removes changed and removed fields from every manager except `keeper`; managers without fields are deleted. */
function releaseFields(managers: Managers, keeper: string | undefined, { added, modified, removed }: Comparison): void {
  const changed = modified.union(added).union(removed)
  for (const [id, owned] of managers) {
    if (id === keeper) {
      if (owned.set.isEmpty()) managers.delete(id)
    } else {
      replaceSet(managers, id, owned, owned.set.difference(changed))
    }
  }
}

function replaceSet(managers: Managers, id: string, owned: Owned, set: FieldSet): void {
  if (set.isEmpty()) managers.delete(id)
  else if (set !== owned.set) managers.set(id, { ...owned, set })
}

function ownedBy(write: Write, manager: string, operation: 'Apply' | 'Update'): Owned {
  const { apiVersion, subresource = '' } = write
  return {
    manager: manager === '' ? 'unknown' : manager,
    operation,
    apiVersion,
    subresource,
    set: new FieldSet(),
    time: undefined,
  }
}

function resetSet({ resetFields = [] }: Write): FieldSet {
  return new FieldSet(new Set(resetFields.map((name) => `f:${name}`)))
}

function withoutFields(changes: Comparison, reset: FieldSet): Comparison {
  if (reset.isEmpty()) return changes
  return {
    added: changes.added.differenceWithBelow(reset),
    modified: changes.modified.differenceWithBelow(reset),
    removed: changes.removed.differenceWithBelow(reset),
  }
}

/** The object before creation: apiVersion and kind, and the fields that encoders always write for a built-in kind. */
function emptyObject({ apiVersion, schema }: Write, kind: string | undefined): Fields {
  const zero = schema === undefined ? {} : (zeroValue(schema) as Fields)
  return { ...zero, apiVersion, kind }
}

function withoutManagedFields(object: Obj | undefined): Fields | undefined {
  if (object === undefined) return undefined
  if (object.metadata.managedFields === undefined) return object as unknown as Fields
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}

function withManagedFields(fields: Fields, managedFields: ManagedFieldsEntry[]): Obj {
  const metadata = { ...(fields['metadata'] as Fields | undefined), managedFields }
  return { ...fields, metadata }
}

function describe({ apiVersion = '', kind = '', metadata }: Obj): string {
  return `${metadata.namespace ?? ''}/${metadata.name ?? ''}; ${apiVersion}, Kind=${kind}`
}
