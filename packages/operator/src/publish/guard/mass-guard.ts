/**
 * The guard against mistakes that change many objects at once: a wrong class, Service or annotation prefix causes hundreds
 * of deletions or retargets within seconds, and none of them is executed before their number is known.
 *
 * Flow: a reconcile that would delete a child, or retarget published names although their Service did not change, requests
 * it here. The first answer is `wait`; requests are collected until none arrived for `settleMs`; then all of them pass, or,
 * above `max(5, 30 %)` of the published objects, all of them are held until the cause is undone or they are released.
 * Guarantees: no request passes uncounted; a held request stays held and counted only while it is repeated.
 */
import type { Clock } from '@seamark/kube'

export type MassChange = 'prune' | 'retarget'
type GuardAnswer =
  | { readonly state: 'go' }
  | { readonly state: 'wait'; readonly afterMs: number }
  | { readonly state: 'held'; readonly message: string }

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
  /** `key` names the object that would change. */
  ask(change: MassChange, key: string): GuardAnswer
  /** The object no longer needs such a change. */
  withdraw(key: string): void
  /** Releases everything that is held now. Returns the number of released changes. */
  release(): number
  readonly held: number
  /** Nothing is collected or held. */
  readonly isIdle: boolean
}

type Entry = { readonly change: MassChange; state: 'collecting' | 'go' | 'held'; askedMs: number }

/** A source that still needs a change repeats its request within seconds; an older request is dropped. */
const REQUEST_EXPIRY_MS = 300_000
/** Interval for evaluating held requests again: others may have been withdrawn. */
const REVIEW_MS = 60_000

export function createMassGuard(options: MassGuardOptions): MassGuard {
  const { clock, countPublished, settleMs = 500, floor = 5, share = 0.3 } = options
  const entries = new Map<string, Entry>()
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
    return [...entries.values()].filter((entry) => entry.state !== 'go').length
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
    for (const entry of entries.values()) if (entry.state !== 'go') entry.state = verdict
  }

  return {
    ask(change, key) {
      const nowMs = clock.monotonic()
      const known = entries.get(key)
      if (known === undefined) {
        entries.set(key, { change, state: 'collecting', askedMs: nowMs })
        lastAskMs = nowMs
        return { state: 'wait', afterMs: settleMs }
      }
      known.askedMs = nowMs
      if (known.state === 'collecting') {
        const quietAtMs = lastAskMs + settleMs
        if (nowMs < quietAtMs) return { state: 'wait', afterMs: quietAtMs - nowMs }
        judge()
      } else if (known.state === 'held' && nowMs - judgedMs >= REVIEW_MS) judge()
      const { state } = known
      if (state === 'held') {
        const word = change === 'prune' ? 'be removed' : 'point elsewhere'
        return {
          state: 'held',
          message: `${lastAsked} of ${lastTotal} objects would ${word} at once; nothing is changed until this is released`,
        }
      }
      entries.delete(key)
      return { state: 'go' }
    },
    withdraw(key) {
      if (entries.delete(key) && counted() > 0 && [...entries.values()].some((entry) => entry.state === 'held')) judge()
    },
    release() {
      let released = 0
      for (const entry of entries.values()) {
        if (entry.state !== 'held') continue
        entry.state = 'go'
        released++
      }
      return released
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
