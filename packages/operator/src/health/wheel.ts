/**
 * A timing wheel: many keys, each due once, on one timer. Ten thousand timers of their own would bunch and cost more.
 *
 * Keys run up to `SLOT_MS` late, never early. Slots that were missed while the process was stalled run at the next tick.
 */
import type { Clock } from '@seamark/kube'

export const SLOT_MS = 50

export interface Wheel {
  /** Replaces an earlier due time of the key. */
  schedule(key: string, delayMs: number): void
  cancel(key: string): void
  stop(): void
}

export function createWheel(clock: Clock, run: (key: string) => void): Wheel {
  const slots = new Map<number, Set<string>>()
  const slotOf = new Map<string, number>()
  let cursor = Math.floor(clock.monotonic() / SLOT_MS)
  let cancelTick: (() => void) | undefined

  function remove(key: string): void {
    const slot = slotOf.get(key)
    if (slot === undefined) return
    slotOf.delete(key)
    const keys = slots.get(slot)
    keys?.delete(key)
    if (keys?.size === 0) slots.delete(slot)
  }

  function tick(): void {
    cancelTick = undefined
    const until = Math.floor(clock.monotonic() / SLOT_MS)
    for (; cursor <= until; cursor++) {
      const keys = slots.get(cursor)
      if (keys === undefined) continue
      slots.delete(cursor)
      for (const key of keys) slotOf.delete(key)
      for (const key of keys) run(key)
    }
    arm()
  }

  function arm(): void {
    if (cancelTick !== undefined || slotOf.size === 0) return
    cancelTick = clock.after(SLOT_MS, tick)
  }

  return {
    schedule(key, delayMs) {
      remove(key)
      const nowSlot = Math.floor(clock.monotonic() / SLOT_MS)
      if (slotOf.size === 0) cursor = Math.max(cursor, nowSlot)
      const slot = Math.max(cursor, Math.ceil((clock.monotonic() + delayMs) / SLOT_MS))
      slotOf.set(key, slot)
      const keys = slots.get(slot)
      if (keys === undefined) slots.set(slot, new Set([key]))
      else keys.add(key)
      arm()
    },
    cancel: remove,
    stop() {
      cancelTick?.()
      cancelTick = undefined
      slots.clear()
      slotOf.clear()
    },
  }
}
