/**
 * The managers of an object: `metadata.managedFields` decoded into sets, and encoded in the order of kube-apiserver.
 *
 * A manager is identified by name, operation and subresource, an Update manager also by apiVersion: a program that
 * writes two versions has two entries.
 */
import type { ManagedFieldsEntry } from '@seamark/kube/object'
import { FieldSet } from './field-set.ts'

export interface Owned {
  manager: string
  operation: 'Apply' | 'Update'
  apiVersion: string
  subresource: string
  set: FieldSet
  time: string | undefined
}

export type Managers = Map<string, Owned>

export function identify(entry: Pick<Owned, 'manager' | 'operation' | 'apiVersion' | 'subresource'>): string {
  const version = entry.operation === 'Apply' ? '' : entry.apiVersion
  return JSON.stringify([entry.manager, entry.operation, version, entry.subresource])
}

/** Undefined when an entry cannot be decoded. */
export function decodeManagers(entries: readonly ManagedFieldsEntry[] | undefined): Managers | undefined {
  const managers: Managers = new Map()
  for (const entry of entries ?? []) {
    const { manager = '', operation, apiVersion, fieldsType, subresource = '', time, fieldsV1 } = entry
    if (operation !== 'Apply' && operation !== 'Update') return undefined
    if (apiVersion === undefined || apiVersion === '' || fieldsType !== 'FieldsV1') return undefined
    let set: FieldSet
    try {
      set = FieldSet.fromFieldsV1(fieldsV1 ?? {})
    } catch (error) {
      if (error instanceof SyntaxError) return undefined
      throw error
    }
    const owned: Owned = { manager, operation, apiVersion, subresource, set, time }
    managers.set(identify(owned), owned)
  }
  return managers
}

export function encodeManagers(managers: Managers): ManagedFieldsEntry[] {
  return [...managers.values()].toSorted(compareEntries).map(encodeEntry)
}

/** Key order as the API documents it; empty names are left out. */
function encodeEntry(owned: Owned): ManagedFieldsEntry {
  return {
    ...(owned.manager !== '' && { manager: owned.manager }),
    operation: owned.operation,
    apiVersion: owned.apiVersion,
    ...(owned.time !== undefined && { time: owned.time }),
    fieldsType: 'FieldsV1',
    fieldsV1: owned.set.toFieldsV1(),
    ...(owned.subresource !== '' && { subresource: owned.subresource }),
  }
}

function compareEntries(a: Owned, b: Owned): number {
  return (
    compareText(a.operation, b.operation) ||
    compareText(seconds(a.time), seconds(b.time)) ||
    compareText(a.manager, b.manager) ||
    compareText(a.apiVersion, b.apiVersion) ||
    compareText(a.subresource, b.subresource)
  )
}

/** Timestamps are RFC 3339 in UTC with whole seconds: text order is time order; absent is the epoch. */
function seconds(time: string | undefined): string {
  return time ?? ''
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

const MAX_UPDATE_MANAGERS = 10

/** Merges the oldest Update managers into one entry per version, so that many one-off writers cannot grow an object. */
export function capUpdateManagers(managers: Managers): void {
  const updaters = [...managers].filter(([, owned]) => owned.operation === 'Update')
  let excess = updaters.length - MAX_UPDATE_MANAGERS
  if (excess <= 0) return
  updaters.sort(([a, x], [b, y]) => compareText(seconds(x.time), seconds(y.time)) || compareText(a, b))
  const firstOfVersion = new Map<string, string>()
  for (const [id, owned] of updaters) {
    if (excess <= 0) return
    const first = firstOfVersion.get(owned.apiVersion)
    if (first === undefined) {
      firstOfVersion.set(owned.apiVersion, id)
      continue
    }
    const bucket: Owned = { ...owned, manager: 'ancient-changes', operation: 'Update', subresource: '' }
    const bucketId = identify(bucket)
    let joined = managers.get(bucketId)
    if (joined === undefined) {
      joined = managers.get(first)!
      managers.delete(first)
    }
    managers.delete(id)
    managers.set(bucketId, { ...bucket, set: owned.set.union(joined.set) })
    excess--
  }
}
