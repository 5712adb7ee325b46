/**
 * Recognises a second writer of an object: a write with the content of our previous write means that another client undid
 * it. Pure; second-writer-guard.ts keeps the histories.
 *
 * Flow: `decideWrite` before a write that would change the object, `noteWrite` after it. After `UNDO_LIMIT` undone writes
 * within `UNDO_WINDOW_MS` the object is stopped; it is written again when nothing changed it for `QUIET_MS`. If that write is
 * undone too, the object is stopped again at once.
 * Guarantees: a change of our own decision (other content) is never stopped. At most `UNDO_LIMIT + 1` writes with one content
 * are sent within the window.
 */

/** Undone writes after which an object is stopped. Four: a person who repairs an object by hand does so less often. */
export const UNDO_LIMIT = 4
export const UNDO_WINDOW_MS = 600_000
export const QUIET_MS = 600_000

export interface WriteHistory {
  /**
   * Identifies what was written last. Undefined after the first write: most objects are written once, and the content costs
   * as much as the decision. A second write then counts as a repeated one.
   */
  readonly content: string | undefined
  /** Monotonic time of the last write. */
  readonly wroteMs: number
  /** Monotonic times of the writes that repeated the one before. */
  readonly undoneMs: readonly number[]
  /** Present while nothing is written. */
  readonly stopped?: StoppedObject
}

interface StoppedObject {
  /** Monotonic time of the last decision: an object that is no longer reconciled is forgotten. */
  readonly checkedMs: number
  /** resourceVersion of the object, and since when it has it. */
  readonly version: string
  readonly unchangedSinceMs: number
}

export interface PendingWrite {
  readonly content: string
  /** resourceVersion of the object as it is now; empty when it does not exist. */
  readonly version: string
  readonly nowMs: number
}

export type WriteDecision =
  | { readonly state: 'go'; readonly history: WriteHistory | undefined }
  | {
      readonly state: 'stop'
      readonly history: WriteHistory
      /** When it is written again if nothing changes it. */
      readonly afterMs: number
      /** It was not stopped before. */
      readonly isNew: boolean
    }

export function decideWrite(
  history: WriteHistory | undefined,
  { content, version, nowMs }: PendingWrite,
): WriteDecision {
  if (history === undefined || isOther(history, content)) return { state: 'go', history }
  const { stopped } = history
  if (stopped === undefined) {
    if (recent(history.undoneMs, nowMs).length < UNDO_LIMIT) return { state: 'go', history }
    return {
      state: 'stop',
      history: { ...history, stopped: { version, unchangedSinceMs: nowMs, checkedMs: nowMs } },
      afterMs: QUIET_MS,
      isNew: true,
    }
  }
  const unchangedSinceMs = stopped.version === version ? stopped.unchangedSinceMs : nowMs
  const afterMs = unchangedSinceMs + QUIET_MS - nowMs
  if (afterMs > 0)
    return {
      state: 'stop',
      history: { ...history, stopped: { version, unchangedSinceMs, checkedMs: nowMs } },
      afterMs,
      isNew: false,
    }
  const { content: same, wroteMs } = history
  // One more undone write stops it again.
  return {
    state: 'go',
    history: { content: same, wroteMs, undoneMs: Array.from({ length: UNDO_LIMIT - 1 }, () => nowMs) },
  }
}

/** @param content undefined for the first write */
export function noteWrite(history: WriteHistory | undefined, content: string | undefined, nowMs: number): WriteHistory {
  if (history === undefined || isOther(history, content)) return { content, wroteMs: nowMs, undoneMs: [] }
  return { content, wroteMs: nowMs, undoneMs: [...recent(history.undoneMs, nowMs), nowMs] }
}

/** False: `decideWrite` returns `go` for any content, so the content need not be known. */
export function mayBeStopped({ stopped, undoneMs }: WriteHistory): boolean {
  return stopped !== undefined || undoneMs.length >= UNDO_LIMIT
}

function isOther({ content: last }: WriteHistory, content: string | undefined): boolean {
  return last !== undefined && last !== content
}

/**
 * The history no longer affects a decision. A stopped object is decided about again within `QUIET_MS`: after twice that time
 * it, or its source, is gone.
 */
export function isExpired({ wroteMs, stopped }: WriteHistory, nowMs: number): boolean {
  if (stopped !== undefined) return nowMs - stopped.checkedMs >= 2 * QUIET_MS
  return nowMs - wroteMs >= UNDO_WINDOW_MS
}

function recent(times: readonly number[], nowMs: number): number[] {
  return times.filter((time) => nowMs - time < UNDO_WINDOW_MS)
}
