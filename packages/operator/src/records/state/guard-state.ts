/**
 * Guard state that persists across restarts: spent budgets, deleted sources, quarantine, the newest plan.
 *
 * Flow: loaded before a plan is made; what the plan will spend is saved before its first batch is sent, so a process
 * that was killed after a batch restarts with that budget already spent.
 * Guarantees: one state per provider account and zone; `update` is atomic between processes that share the store.
 * Caveats: times are wall-clock, because they outlast processes; a time in the future counts as now.
 */
import { open, readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { makePrivateFolder, writePrivateFile } from '@seamark/kube/private-file'
import { type Reason, REASONS } from '../../reasons.ts'
import { RecordsError } from '../../rrset/error.ts'
import { compareText } from '../../rrset/rrset.ts'
import type { Approval } from './approval.ts'

export interface Stamp {
  /** ms since the epoch. */
  readonly at: number
  readonly key: string
}

/** One change that is held, with the decision as every reader shows it. */
export interface HeldChange {
  readonly name: string
  readonly type: string
  readonly op: 'create' | 'update' | 'delete'
  readonly code: Reason
  readonly why: string
  /** UID of the source. */
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

/** The context of the decisions in a state. */
interface Decided {
  /** Key of the state in its store. */
  readonly key: string
  readonly provider: string
  readonly zone: string
  /** Number of the plan (ms since the epoch) that last changed the decisions. */
  readonly plan: number
  readonly mode: 'enforce' | 'observe'
}

export interface GuardState {
  readonly version: 1
  /** Number of the newest plan that was begun: an older one is refused. */
  readonly fence: number
  /** Number of names we own, and of their sources, at the last read of the whole zone. */
  readonly ownedNames: number
  readonly ownedSources: number
  /** Names deleted, sources gone, names retargeted, within the window. */
  readonly deleted: readonly Stamp[]
  readonly gone: readonly Stamp[]
  readonly retargeted: readonly Stamp[]
  /** Since when a set waits: in quarantine, or for the hand-over between two sources. */
  readonly waiting: ReadonlyMap<string, number>
  /** Changes that the manager holds, by name, type and source. */
  readonly held: readonly HeldChange[]
  /** Newest first, including used and expired ones. */
  readonly approvals: readonly Approval[]
  /** Absent until a manager has planned the zone. */
  readonly decided?: Decided
}

export const EMPTY_STATE: GuardState = {
  version: 1,
  fence: 0,
  ownedNames: 0,
  ownedSources: 0,
  deleted: [],
  gone: [],
  retargeted: [],
  waiting: new Map(),
  held: [],
  approvals: [],
}

export interface GuardStore {
  /** All states, by zone key. */
  list(): Promise<ReadonlyMap<string, GuardState>>
  load(zone: string): Promise<GuardState>
  /**
   * Reads, changes and writes atomically; the return value of `change` is saved, unless it is its argument. `change` may
   * run several times, and on a version that is not the newest: only the result that is saved counts, or the last one.
   */
  update(zone: string, change: (state: GuardState) => GuardState): Promise<GuardState>
}

/** Stamps within the window, each key once with its latest time. */
export function withinWindow(stamps: readonly Stamp[], now: number, windowMs: number): Stamp[] {
  const latest = new Map<string, number>()
  for (const { at, key } of stamps) {
    const time = Math.min(at, now)
    if (now - time < windowMs) latest.set(key, Math.max(time, latest.get(key) ?? 0))
  }
  return [...latest].map(([key, at]) => ({ at, key })).sort((a, b) => compareText(a.key, b.key))
}

export function addStamps(stamps: readonly Stamp[], keys: Iterable<string>, now: number): Stamp[] {
  const added = [...keys].map((key) => ({ at: now, key }))
  return [...stamps, ...added]
}

export function printState(state: GuardState): string {
  const { waiting, held, ...rest } = state
  const packed = held.length > PLAIN_HELD ? { heldGzip: gzipSync(JSON.stringify(held)).toString('base64') } : { held }
  return JSON.stringify({ ...rest, waiting: [...waiting], ...packed })
}

/** A longer list is compressed: thousands of held changes have few different texts. */
const PLAIN_HELD = 20
const MAX_HELD_BYTES = 16 * 1024 * 1024

function readHeld(plain: unknown, packed: unknown): HeldChange[] {
  const list: unknown =
    typeof packed === 'string'
      ? JSON.parse(gunzipSync(Buffer.from(packed, 'base64'), { maxOutputLength: MAX_HELD_BYTES }).toString('utf8'))
      : (plain ?? [])
  if (!Array.isArray(list)) throw new TypeError('not a list')
  return list.map((item: Partial<HeldChange>) => {
    const texts = [item.name, item.type, item.op, item.code, item.why, item.source, item.key]
    if (texts.some((text) => typeof text !== 'string') || typeof item.since !== 'number')
      throw new TypeError('not a held change')
    // An unknown code, from another version, is still a decision to show.
    const code: Reason = Object.hasOwn(REASONS, item.code ?? '') ? (item.code as Reason) : 'Quarantined'
    return { ...(item as HeldChange), code }
  })
}

function readApprovals(list: unknown): Approval[] {
  if (!Array.isArray(list)) throw new TypeError('not a list')
  return list.map((item: Partial<Approval>) => {
    const { id, at, until, keys } = item
    if (typeof id !== 'string' || typeof at !== 'number' || typeof until !== 'number' || !Array.isArray(keys))
      throw new TypeError('not an approval')
    return { id, at, until, keys }
  })
}

/** Throws on invalid content: a guard without its history is worse than a guard that stops. */
export function parseState(text: string, where: string): GuardState {
  try {
    const value = JSON.parse(text) as Partial<Record<keyof GuardState | 'heldGzip', unknown>>
    const stamps = (list: unknown): Stamp[] => {
      if (!Array.isArray(list)) throw new TypeError('not a list')
      return list.map((item: Partial<Stamp>) => {
        if (typeof item.at !== 'number' || typeof item.key !== 'string') throw new TypeError('not a stamp')
        return { at: item.at, key: item.key }
      })
    }
    const number = (item: unknown): number => {
      if (typeof item !== 'number' || !Number.isFinite(item)) throw new TypeError('not a number')
      return item
    }
    if (value.version !== 1) throw new TypeError('not version 1')
    return {
      version: 1,
      fence: number(value.fence),
      ownedNames: number(value.ownedNames),
      ownedSources: number(value.ownedSources),
      deleted: stamps(value.deleted),
      gone: stamps(value.gone),
      retargeted: stamps(value.retargeted),
      waiting: new Map((value.waiting as [string, number][]).map(([key, at]) => [key, number(at)])),
      held: readHeld(value.held, value.heldGzip),
      approvals: readApprovals(value.approvals ?? []),
      ...(value.decided !== undefined && { decided: value.decided as Decided }),
    }
  } catch (cause) {
    throw new RecordsError('STATE_UNREADABLE', `guard state ${where} cannot be read; repair or remove it by hand`, {
      cause,
    })
  }
}

export function memoryGuardStore(): GuardStore {
  const states = new Map<string, GuardState>()
  return {
    list: async () => new Map(states),
    load: async (zone) => states.get(zone) ?? EMPTY_STATE,
    update: async (zone, change) => {
      const next = change(states.get(zone) ?? EMPTY_STATE)
      states.set(zone, next)
      return next
    },
  }
}

/** An older lock was left by a process that died: an update takes milliseconds. */
const STALE_LOCK_MS = 10_000

/** One file per zone in `folder`, replaced atomically; a lock file excludes concurrent processes. */
export function fileGuardStore(folder: string): GuardStore {
  const fileOf = (zone: string) => join(folder, `${encodeURIComponent(zone)}.json`)
  const load = async (zone: string): Promise<GuardState> => {
    const file = fileOf(zone)
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      throw new RecordsError('STATE_UNREADABLE', `guard state ${file} cannot be read`, { cause: error })
    })
    return text === undefined ? EMPTY_STATE : parseState(text, file)
  }
  return {
    load,
    async list() {
      const files = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return []
        throw new RecordsError('STATE_UNREADABLE', `state folder ${folder} cannot be read`, { cause: error })
      })
      const zones = files.filter((file) => file.endsWith('.json')).map((file) => decodeURIComponent(file.slice(0, -5)))
      return new Map(await Promise.all(zones.map(async (zone) => [zone, await load(zone)] as const)))
    },
    async update(zone, change) {
      await makePrivateFolder(folder)
      const unlock = await lock(`${fileOf(zone)}.lock`)
      try {
        const state = await load(zone)
        const next = change(state)
        if (next !== state) await writePrivateFile(fileOf(zone), printState(next))
        return next
      } finally {
        await unlock()
      }
    },
  }
}

async function lock(file: string): Promise<() => Promise<void>> {
  for (;;) {
    try {
      const handle = await open(file, 'wx', 0o600)
      await handle.close()
      return async () => rm(file, { force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    const age = await stat(file).then(
      (info) => Date.now() - info.mtimeMs,
      () => 0,
    )
    if (age > STALE_LOCK_MS) await rm(file, { force: true })
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
