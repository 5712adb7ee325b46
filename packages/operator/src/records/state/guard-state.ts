/**
 * Guard state that persists across restarts: spent budgets, deleted sources, quarantine, the newest plan.
 *
 * Flow: loaded before a plan is made; what the plan will spend is saved before its first batch is sent, so a process
 * that was killed after a batch restarts with that budget already spent.
 * Guarantees: one state per provider account and zone; `update` is atomic between processes that share the store.
 * Caveats: times are wall-clock, because they outlast processes; a time in the future counts as now.
 */
import type { Client } from '@seamark/kube'
import { configMapStore } from '../../safety/config-map-store.ts'
import { fileStore } from '../../safety/file-store.ts'
import { type HeldState, printHeld, readHeldState } from '../../safety/held-change.ts'
import { type HeldStore, memoryHeldStore, type StateCodec } from '../../safety/held-store.ts'
import { RecordsError } from '../../rrset/error.ts'
import { compareText } from '../../rrset/rrset.ts'

export interface Stamp {
  /** ms since the epoch. */
  readonly at: number
  readonly key: string
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

export interface GuardState extends HeldState {
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

export type GuardStore = HeldStore<GuardState>

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

function printState({ waiting, held, ...rest }: GuardState): string {
  return JSON.stringify({ ...rest, waiting: [...waiting], ...printHeld(held) })
}

/** Throws on invalid content: a guard without its history is worse than a guard that stops. */
function parseState(text: string, where: string): GuardState {
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
      ...readHeldState(value),
      ...(value.decided !== undefined && { decided: value.decided as Decided }),
    }
  } catch (cause) {
    throw new RecordsError('STATE_UNREADABLE', `guard state ${where} cannot be read; repair or remove it by hand`, {
      cause,
    })
  }
}

const GUARD_STATE: StateCodec<GuardState> = {
  empty: EMPTY_STATE,
  parse: parseState,
  print: printState,
  scopeOf: ({ decided }) => decided?.key,
}

export function memoryGuardStore(): GuardStore {
  return memoryHeldStore(GUARD_STATE)
}

/** `name` is `namespace/name` of the ConfigMap. */
export function configMapGuardStore(client: Client, name: string): GuardStore {
  return configMapStore(client, name, GUARD_STATE)
}

export function fileGuardStore(folder: string): GuardStore {
  return fileStore(folder, GUARD_STATE)
}
