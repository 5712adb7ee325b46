/**
 * The guard against mistakes that change many objects at once: a wrong class, Service or annotation prefix, or a hub that was
 * restored empty, causes hundreds of deletions or retargets within seconds, and none of them is executed before their number is
 * known.
 *
 * Flow: a reconcile that would delete an object, or retarget published names although their Service did not change, requests
 * it here. The first answer is `wait`; requests are collected until none arrived for `settleMs`; then all of them pass, or,
 * above the limits (mass-limits.ts), all of them are held until the cause is undone or they are approved.
 * Changes are counted by group, such as a member cluster. What is held of a group is one set; its id is a hash of its content,
 * so an approval of the id covers exactly these changes.
 * Guarantees: no request passes uncounted; a held request stays held and counted only while it is repeated; what a previous
 * process held (`restore`) is held and counted until it expires.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '@seamark/kube'
import type { Reason } from '../reasons.ts'
import { approveCommand, type HeldChange } from './held-change.ts'
import { isMassChange, type MassLimits } from './mass-limits.ts'

export type MassChange = 'prune' | 'retarget'
type GuardAnswer =
  | { readonly state: 'go' }
  | { readonly state: 'wait'; readonly afterMs: number }
  | { readonly state: 'held'; readonly message: string }

/** A change that is held. */
interface HeldObject {
  readonly op: 'update' | 'delete'
  readonly kind: string
  /** `namespace/name`, on a member cluster after `cluster/`. */
  readonly name: string
  /** Hash of the change, with what it would write. */
  readonly key: string
}

/** What is held of one group. */
export interface HeldGroup {
  readonly id: string
  readonly code: Extract<Reason, 'GuardTripped'>
  readonly objects: readonly HeldObject[]
  readonly message: string
}

/** What a reconcile requests. */
export interface MassRequest {
  readonly change: MassChange
  readonly kind: string
  readonly name: string
  /** What would be written; empty for a deletion. */
  readonly content?: string
}

export interface MassGuardOptions {
  readonly clock: Clock
  readonly limits: MassLimits
  /** Which changes are counted together. @default all */
  readonly groupOf?: (object: Pick<HeldObject, 'kind' | 'name'>) => string
  /** Number of objects of the group published now: the base of the share. */
  readonly countPublished: (group: string) => number
  /** First letter of the ids; `seamark approve` and the annotation take ids of all guards. */
  readonly idPrefix: string
  /** What to do instead of an approval, as part of the message. */
  readonly cause: string
  /** What is counted in a group, in the plural, as part of the message. @default objects */
  readonly noun?: (group: string) => string
  /** @default 500 */
  readonly settleMs?: number
  /** A request that was not repeated for this time is dropped. @default 300 000 */
  readonly expiryMs?: number
}

export interface MassGuard {
  ask(request: MassRequest): GuardAnswer
  /** The object no longer needs such a change. */
  withdraw(request: Pick<MassRequest, 'change' | 'kind' | 'name'>): void
  /** Lets the held changes with these keys pass; returns how many that were held. */
  approve(keys: ReadonlySet<string>): number
  /** Keys of approved changes that passed since the last call. */
  takePassed(): string[]
  /** What a previous process held. */
  restore(held: readonly HeldChange[]): void
  readonly heldGroups: readonly HeldGroup[]
  readonly held: number
  /** Nothing is collected or held. */
  readonly isIdle: boolean
}

interface Entry extends HeldObject {
  readonly change: MassChange
  readonly group: string
  state: 'collecting' | 'go' | 'approved' | 'held'
  askedMs: number
}

/** A source that still needs a change repeats its request within seconds; an older request is dropped. */
const REQUEST_EXPIRY_MS = 300_000
/** Interval for evaluating held requests again: others may have been withdrawn. */
const REVIEW_MS = 60_000

/** How often expired requests are searched. */
const EXPIRE_INTERVAL_MS = 1_000

/** Of the changes that are counted together. */
interface Group {
  judgedMs: number
  asked: number
  total: number
  /** Requests were withdrawn: the others are judged again. */
  isStale: boolean
  /** Of what is held now; undefined after a change. */
  held?: HeldGroup | undefined
}

export function createMassGuard(options: MassGuardOptions): MassGuard {
  const { clock, limits, countPublished, idPrefix, cause, groupOf = () => '' } = options
  const { settleMs = 500, expiryMs = REQUEST_EXPIRY_MS, noun = () => 'objects' } = options
  const entries = new Map<string, Entry>()
  const groups = new Map<string, Group>()
  let passed: string[] = []
  let lastAskMs = Number.NEGATIVE_INFINITY
  let expireAtMs = Number.NEGATIVE_INFINITY

  function forget(): void {
    const nowMs = clock.monotonic()
    if (nowMs < expireAtMs) return
    expireAtMs = nowMs + EXPIRE_INTERVAL_MS
    for (const [id, entry] of entries) if (nowMs - entry.askedMs > expiryMs) remove(id, entry)
  }

  function stateOf(name: string): Group {
    let group = groups.get(name)
    if (group === undefined)
      groups.set(name, (group = { judgedMs: Number.NEGATIVE_INFINITY, asked: 0, total: 0, isStale: false }))
    return group
  }

  function put(id: string, entry: Entry): void {
    entries.set(id, entry)
    stateOf(entry.group).held = undefined
  }

  function remove(id: string, entry: Entry): void {
    entries.delete(id)
    stateOf(entry.group).held = undefined
  }

  function entriesOf(name: string): Entry[] {
    return [...entries.values()].filter(({ group }) => group === name)
  }

  /** After `settleMs` without a request, every pending request of the group gets the same answer. */
  function judge(name: string): void {
    const pending = entriesOf(name).filter(isPending)
    const asked = pending.length
    // The requested objects are published too, or were until now.
    const total = Math.max(countPublished(name), asked)
    groups.set(name, { judgedMs: clock.monotonic(), asked, total, isStale: false })
    const verdict = isMassChange(asked, total, limits) ? 'held' : 'go'
    for (const entry of pending) entry.state = verdict
  }

  /** Undefined: nothing of the group is held. */
  function heldGroup(name: string): HeldGroup | undefined {
    const group = stateOf(name)
    if (group.isStale) judge(name)
    const current = stateOf(name)
    if (current.held !== undefined) return current.held
    const held = entriesOf(name).filter(({ state }) => state === 'held')
    if (held.length === 0) return undefined
    // Not judged yet: what a previous process held.
    const asked = Math.max(current.asked, held.length)
    const total = Math.max(current.total, asked)
    const keys = held
      .map(({ key }) => key)
      .toSorted()
      .join(',')
    const id = `${idPrefix}-${hash(keys, 12)}`
    const effect = held.every(({ op }) => op === 'delete') ? 'be removed' : 'be changed or removed'
    return (current.held = {
      id,
      code: 'GuardTripped',
      objects: held.map(({ op, kind, name: object, key }) => ({ op, kind, name: object, key })),
      message: `${asked} of ${total} ${noun(name)} would ${effect} at once, and none of them is; ${cause}, or let exactly these changes pass with: ${approveCommand(id)}`,
    })
  }

  function heldGroups(): HeldGroup[] {
    forget()
    const names = new Set([...entries.values()].map(({ group }) => group))
    for (const name of groups.keys()) if (!names.has(name)) groups.delete(name)
    return [...names].flatMap((name) => heldGroup(name) ?? [])
  }

  return {
    ask(request) {
      forget()
      const { change, kind, name, content = '' } = request
      const group = groupOf(request)
      const nowMs = clock.monotonic()
      const id = idOf(request)
      const key = hash(JSON.stringify([id, content]), 10)
      const entry = entries.get(id)
      // Another content is another change, which was not counted or approved.
      if (entry === undefined || entry.key !== key) {
        const op = change === 'prune' ? 'delete' : 'update'
        put(id, { change, op, kind, name, key, group, state: 'collecting', askedMs: nowMs })
        lastAskMs = nowMs
        return { state: 'wait', afterMs: settleMs }
      }
      entry.askedMs = nowMs
      const { judgedMs, isStale } = stateOf(group)
      if (entry.state === 'collecting') {
        const quietAtMs = lastAskMs + settleMs
        if (nowMs < quietAtMs) return { state: 'wait', afterMs: quietAtMs - nowMs }
        judge(group)
      } else if (entry.state === 'held' && (isStale || nowMs - judgedMs >= REVIEW_MS)) judge(group)
      if (entry.state === 'held') return { state: 'held', message: heldGroup(group)?.message ?? '' }
      if (entry.state === 'approved') passed.push(key)
      remove(id, entry)
      return { state: 'go' }
    },
    withdraw(request) {
      const id = idOf(request)
      const entry = entries.get(id)
      if (entry === undefined) return
      remove(id, entry)
      stateOf(entry.group).isStale = true
    },
    approve(keys) {
      forget()
      let count = 0
      for (const entry of entries.values()) {
        if (entry.state !== 'held' || !keys.has(entry.key)) continue
        entry.state = 'approved'
        stateOf(entry.group).held = undefined
        count++
      }
      return count
    },
    takePassed() {
      const taken = passed
      passed = []
      return taken
    },
    restore(held) {
      const askedMs = clock.monotonic()
      for (const { op, type: kind, name, key } of held) {
        if (op === 'create') continue
        const change = op === 'delete' ? 'prune' : 'retarget'
        const id = idOf({ change, kind, name })
        if (!entries.has(id))
          put(id, { change, op, kind, name, key, group: groupOf({ kind, name }), state: 'held', askedMs })
      }
    },
    get heldGroups() {
      return heldGroups()
    },
    get isIdle() {
      forget()
      return ![...entries.values()].some(isPending)
    },
    get held() {
      return heldGroups().reduce((sum, { objects }) => sum + objects.length, 0)
    },
  }
}

function isPending({ state }: Entry): boolean {
  return state === 'collecting' || state === 'held'
}

function idOf({ change, kind, name }: Pick<MassRequest, 'change' | 'kind' | 'name'>): string {
  return `${change} ${kind} ${name}`
}

function hash(text: string, length: number): string {
  return createHash('sha256').update(text).digest('hex').slice(0, length)
}
