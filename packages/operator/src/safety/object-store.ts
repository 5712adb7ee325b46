/**
 * The persisted state of the capabilities that write objects: what their mass guards hold, and the approvals of it. One scope
 * per capability, in one ConfigMap of the manager's namespace.
 *
 * Formats, readable forever: version 2 is written; version 1 had the fields of a zone of records, and its scope was the key of
 * that zone. A state of version 1 is written as version 2 when it changes.
 */
import type { Client } from '@seamark/kube'
import { RecordsError } from '../rrset/error.ts'
import { configMapStore } from './config-map-store.ts'
import { type HeldState, printHeld, readHeldState } from './held-change.ts'
import type { HeldStore, StateCodec } from './held-store.ts'

/** The capabilities whose changes of objects are held. */
const OBJECT_SCOPES = ['publish', 'wildcard', 'fleet', 'balance'] as const
export type ObjectScope = (typeof OBJECT_SCOPES)[number]

/** ConfigMap in the manager's namespace. */
export const HELD_OBJECTS_STORE = 'seamark-held-objects'

export interface ObjectState extends HeldState {
  /** Undefined: nothing was stored. */
  readonly scope?: ObjectScope
}

export const OBJECT_STATE: StateCodec<ObjectState> = {
  empty: { held: [], approvals: [] },
  parse: parseObjectState,
  print: ({ scope, held, approvals }) => JSON.stringify({ version: 2, scope, ...printHeld(held), approvals }),
  scopeOf: ({ scope }) => scope,
}

export function isObjectScope(scope: unknown): scope is ObjectScope {
  return (OBJECT_SCOPES as readonly unknown[]).includes(scope)
}

/** Ids of held sets of objects begin with a letter and a hyphen; those of records are hexadecimal. */
export function isObjectId(id: string): boolean {
  return /^[a-z]-/.test(id)
}

export function openObjectStore(client: Client, namespace: string): HeldStore<ObjectState> {
  return configMapStore(client, `${namespace}/${HELD_OBJECTS_STORE}`, OBJECT_STATE)
}

function parseObjectState(text: string, where: string): ObjectState {
  try {
    const value = JSON.parse(text) as Partial<Record<'version' | 'scope' | 'decided' | 'held' | 'approvals', unknown>>
    if (value.version !== 1 && value.version !== 2) throw new TypeError('not version 1 or 2')
    const scope = value.version === 1 ? (value.decided as { key?: unknown } | undefined)?.key : value.scope
    return { ...readHeldState(value), ...(isObjectScope(scope) && { scope }) }
  } catch (cause) {
    throw new RecordsError('STATE_UNREADABLE', `held changes ${where} cannot be read; repair or remove them by hand`, {
      cause,
    })
  }
}
