/**
 * The guard against mistakes that change many objects at once: a wrong class, Service or annotation prefix causes hundreds
 * of deletions or retargets within seconds, and none of them is executed before their number is known.
 *
 * Flow: a reconcile that would delete a child, or retarget published names although their Service did not change, requests
 * it here. The first answer is `wait`; requests are collected until none arrived for `settleMs`; then all of them pass, or,
 * above `max(5, 30 %)` of the published objects, all of them are held until the cause is undone or they are approved.
 * What is held is one set; its id is a hash of its content, so an approval of the id covers exactly these changes.
 * Guarantees: no request passes uncounted; a held request stays held and counted only while it is repeated.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '@seamark/kube'
import type { Reason } from '../../reasons.ts'

export type MassChange = 'prune' | 'retarget'
type GuardAnswer =
  | { readonly state: 'go' }
  | { readonly state: 'wait'; readonly afterMs: number }
  | { readonly state: 'held'; readonly message: string }

/** A change that is held. */
interface HeldObject {
  readonly op: 'update' | 'delete'
  readonly kind: string
  /** `namespace/name` */
  readonly name: string
  /** Hash of the change, with what it would write. */
  readonly key: string
}

export interface HeldSet {
  /** Empty when nothing is held. */
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
  /** Number of objects published now: the base of the share. */
  readonly countPublished: () => number
  /** @default 500 */
  readonly settleMs?: number
  /** Up to this number nothing is held. @default 5 */
  readonly floor?: number
  /** @default 0.3 */
  readonly share?: number
}

export interface MassGuard {
  ask(request: MassRequest): GuardAnswer
  /** The object no longer needs such a change. */
  withdraw(request: Pick<MassRequest, 'change' | 'kind' | 'name'>): void
  /** Lets the held changes with these keys pass. */
  approve(keys: ReadonlySet<string>): void
  /** Keys of approved changes that passed since the last call. */
  takePassed(): string[]
  readonly heldSet: HeldSet
  readonly held: number
  /** Nothing is collected or held. */
  readonly isIdle: boolean
}

interface Entry extends HeldObject {
  readonly change: MassChange
  state: 'collecting' | 'go' | 'approved' | 'held'
  askedMs: number
}

/** Ids of publish are distinguishable from those of records: `seamark approve` and the annotation take both. */
export const HELD_ID_PREFIX = 'p-'

/** A source that still needs a change repeats its request within seconds; an older request is dropped. */
const REQUEST_EXPIRY_MS = 300_000
/** Interval for evaluating held requests again: others may have been withdrawn. */
const REVIEW_MS = 60_000

export function createMassGuard(options: MassGuardOptions): MassGuard {
  const { clock, countPublished, settleMs = 500, floor = 5, share = 0.3 } = options
  const entries = new Map<string, Entry>()
  let passed: string[] = []
  /** Of the current set; computed again when the set changes. */
  let known: { readonly keys: string; readonly id: string } = { keys: '', id: '' }
  let lastAskMs = Number.NEGATIVE_INFINITY
  let judgedMs = Number.NEGATIVE_INFINITY
  let lastAsked = 0
  let lastTotal = 0

  function forget(): void {
    const sinceMs = clock.monotonic() - REQUEST_EXPIRY_MS
    for (const [key, entry] of entries) if (entry.askedMs < sinceMs) entries.delete(key)
  }

  function counted(): number {
    forget()
    return [...entries.values()].filter(isPending).length
  }

  function heldId(objects: readonly HeldObject[]): string {
    const keys = objects
      .map(({ key }) => key)
      .toSorted()
      .join(',')
    if (keys !== known.keys) known = { keys, id: keys === '' ? '' : `${HELD_ID_PREFIX}${hash(keys, 12)}` }
    return known.id
  }

  function heldSet(): HeldSet {
    const objects = [...entries.values()].filter((entry) => entry.state === 'held')
    const id = heldId(objects)
    const isRemoval = objects.every(({ op }) => op === 'delete')
    const effect = isRemoval ? 'be removed' : 'be changed or removed'
    return {
      id,
      code: 'GuardTripped',
      objects: objects.map(({ op, kind, name, key }) => ({ op, kind, name, key })),
      message: `${lastAsked} of ${lastTotal} objects would ${effect} at once, and none of them is; undo the cause (a class, Service or prefix in the configuration or the sources), or let exactly these changes pass with: seamark approve ${id}`,
    }
  }

  /** After `settleMs` without a request, every collected request gets the same answer. */
  function judge(): void {
    const asked = counted()
    // The requested objects are published too, or were until now.
    const total = Math.max(countPublished(), asked)
    judgedMs = clock.monotonic()
    lastAsked = asked
    lastTotal = total
    const verdict = asked > floor && asked > total * share ? 'held' : 'go'
    for (const entry of entries.values()) if (isPending(entry)) entry.state = verdict
  }

  return {
    ask(request) {
      const { change, kind, name, content = '' } = request
      const nowMs = clock.monotonic()
      const id = idOf(request)
      const key = hash(JSON.stringify([id, content]), 10)
      const entry = entries.get(id)
      // Another content is another change, which was not counted or approved.
      if (entry === undefined || entry.key !== key) {
        const op = change === 'prune' ? 'delete' : 'update'
        entries.set(id, { change, op, kind, name, key, state: 'collecting', askedMs: nowMs })
        lastAskMs = nowMs
        return { state: 'wait', afterMs: settleMs }
      }
      entry.askedMs = nowMs
      if (entry.state === 'collecting') {
        const quietAtMs = lastAskMs + settleMs
        if (nowMs < quietAtMs) return { state: 'wait', afterMs: quietAtMs - nowMs }
        judge()
      } else if (entry.state === 'held' && nowMs - judgedMs >= REVIEW_MS) judge()
      if (entry.state === 'held') return { state: 'held', message: heldSet().message }
      if (entry.state === 'approved') passed.push(key)
      entries.delete(id)
      return { state: 'go' }
    },
    withdraw(request) {
      if (
        entries.delete(idOf(request)) &&
        counted() > 0 &&
        [...entries.values()].some((entry) => entry.state === 'held')
      )
        judge()
    },
    approve(keys) {
      for (const entry of entries.values()) if (entry.state === 'held' && keys.has(entry.key)) entry.state = 'approved'
    },
    takePassed() {
      const taken = passed
      passed = []
      return taken
    },
    get heldSet() {
      forget()
      return heldSet()
    },
    get isIdle() {
      return counted() === 0
    },
    get held() {
      forget()
      return [...entries.values()].filter((entry) => entry.state === 'held').length
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
