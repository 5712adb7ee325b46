/**
 * Recognises watch events of own writes. The object and version of a frame are read from its bytes; if the cache
 * already holds that version, the frame is not parsed.
 */
import { isKey, newMember, nextMember, skipValue, findMember } from './json-bytes.ts'
import type { Key, Obj } from '../object/object.ts'
import type { Decoded } from './decode.ts'

/** Responses to own writes that the watch has not yet reported. */
export interface PendingWrites<T extends Obj> {
  readonly hasPending: boolean
  find(key: Key, resourceVersion: string): Decoded<T> | undefined
}

export interface OwnWriteFrame<T extends Obj> extends Decoded<T> {
  readonly type: 'ADDED' | 'MODIFIED'
}

const TYPE = Buffer.from('"type"')
const METADATA = Buffer.from('"metadata"')
const NAME = Buffer.from('"name"')
const NAMESPACE = Buffer.from('"namespace"')
const RESOURCE_VERSION = Buffer.from('"resourceVersion"')

const member = newMember()

/** Undefined if the frame is not the event of an own write, or cannot be read without parsing; it is then parsed. */
export function readOwnWrite<T extends Obj>(
  bytes: Buffer,
  at: number,
  end: number,
  objectAt: number,
  pendingWrites: PendingWrites<T>,
): OwnWriteFrame<T> | undefined {
  if (!pendingWrites.hasPending || objectAt < 0) return undefined
  const typeAt = findMember(bytes, at, end, TYPE, member)
  const type = typeAt < 0 ? '' : textOf(bytes, typeAt, end)
  if (type !== 'ADDED' && type !== 'MODIFIED') return undefined
  let index = findMember(bytes, objectAt, end, METADATA, member) + 1
  if (index === 0) return undefined
  let [name, namespace, version] = ['', '', '']
  while (nextMember(bytes, index, end, member)) {
    if (isKey(bytes, member, NAME)) name = textOf(bytes, member.valueAt, end)
    else if (isKey(bytes, member, NAMESPACE)) namespace = textOf(bytes, member.valueAt, end)
    else if (isKey(bytes, member, RESOURCE_VERSION)) version = textOf(bytes, member.valueAt, end)
    index = skipValue(bytes, member.valueAt, end)
    if (index < 0) return undefined
  }
  if (name === '' || version === '') return undefined
  const known = pendingWrites.find(namespace === '' ? name : `${namespace}/${name}`, version)
  return known === undefined ? undefined : { type, object: known.object, own: known.own }
}

/** Names, versions and types are ASCII without escapes; any other text matches nothing. */
function textOf(bytes: Buffer, at: number, end: number): string {
  const valueEnd = skipValue(bytes, at, end)
  return valueEnd < 0 ? '' : bytes.toString('latin1', at + 1, valueEnd - 1)
}
