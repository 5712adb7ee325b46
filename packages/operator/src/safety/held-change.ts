/**
 * One change that a guard holds, of a DNS record or of a Kubernetes object, with the decision as every reader shows it, and the
 * state of one scope: what is held in it, and the approvals of it.
 *
 * A scope is a zone of a provider, or a capability that writes objects. Changes that an approval covers together are a set; the
 * id of a set is a hash of the keys of its changes.
 */
import { gunzipSync, gzipSync } from 'node:zlib'
import { type Reason, REASONS } from '../reasons.ts'
import { type Approval, readApprovals } from './approval.ts'

export interface HeldChange {
  /** Of a record: its DNS name. Of an object: `namespace/name`, on a member cluster after `cluster/`. */
  readonly name: string
  /** Of a record: A, CNAME, … Of an object: its kind. */
  readonly type: string
  readonly op: 'create' | 'update' | 'delete'
  readonly code: Reason
  readonly why: string
  /** UID of the source; empty for an object. */
  readonly source: string
  /** Hash of what the change would write. */
  readonly key: string
  /** ms since the epoch, when it was first held for this code. */
  readonly since: number
  /** ms since the epoch, when it will be made without an approval. */
  readonly until?: number
  readonly isApprovable?: boolean
  /** Id of the held set that contains it. */
  readonly set?: string
}

export interface HeldState {
  readonly held: readonly HeldChange[]
  /** Newest first, including used and expired ones. */
  readonly approvals: readonly Approval[]
}

/** The command that approves a held set; every message about a held set ends with it. */
export function approveCommand(id: string): string {
  return `seamark approve ${id}`
}

/** A longer list is compressed: thousands of held changes have few different texts. */
const PLAIN_HELD = 20
const MAX_HELD_BYTES = 16 * 1024 * 1024

type Printed = { readonly held: readonly HeldChange[] } | { readonly heldGzip: string }

/** As fields of the JSON of a state. */
export function printHeld(held: readonly HeldChange[]): Printed {
  return held.length > PLAIN_HELD ? { heldGzip: gzipSync(JSON.stringify(held)).toString('base64') } : { held }
}

/** Throws on invalid content. */
export function readHeldState(value: {
  readonly held?: unknown
  readonly heldGzip?: unknown
  readonly approvals?: unknown
}): HeldState {
  const { held, heldGzip, approvals } = value
  const list: unknown =
    typeof heldGzip === 'string'
      ? JSON.parse(gunzipSync(Buffer.from(heldGzip, 'base64'), { maxOutputLength: MAX_HELD_BYTES }).toString('utf8'))
      : (held ?? [])
  if (!Array.isArray(list)) throw new TypeError('not a list')
  return { held: list.map(readChange), approvals: readApprovals(approvals ?? []) }
}

function readChange(item: Partial<HeldChange>): HeldChange {
  const texts = [item.name, item.type, item.op, item.code, item.why, item.source, item.key]
  if (texts.some((text) => typeof text !== 'string') || typeof item.since !== 'number')
    throw new TypeError('not a held change')
  // An unknown code, from another version, is still a decision to show.
  const code: Reason = Object.hasOwn(REASONS, item.code ?? '') ? (item.code as Reason) : 'Quarantined'
  return { ...(item as HeldChange), code }
}
