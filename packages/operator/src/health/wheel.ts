/**
 * A timing wheel: many keys, each due once, on one timer. Ten thousand timers of their own would bunch and cost more.
 *
 * Keys run up to `SLOT_MS` late, never early; lateness adds to the detection time of INV-17 once for each probe. The timer is
 * set for the next slot that has keys. Slots that were missed while the process was stalled run at the next tick.
 */
import type { Clock } from '@seamark/kube'

export const SLOT_MS = 10

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
  /** The slot that the timer is set for. */
  let armedSlot = Infinity

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
    armedSlot = Infinity
    const until = Math.floor(clock.monotonic() / SLOT_MS)
    while (cursor <= until) {
      // Past the slot before its keys run: what they schedule must not land in a slot that is done.
      const slot = cursor++
      const keys = slots.get(slot)
      if (keys === undefined) continue
      slots.delete(slot)
      for (const key of keys) slotOf.delete(key)
      for (const key of keys) run(key)
    }
    armNext()
  }

  function armNext(): void {
    if (slotOf.size === 0) return
    let slot = cursor
    while (!slots.has(slot)) slot++
    arm(slot)
  }

  function arm(slot: number): void {
    if (armedSlot <= slot) return
    cancelTick?.()
    armedSlot = slot
    cancelTick = clock.after(Math.max(0, Math.ceil(slot * SLOT_MS - clock.monotonic())), tick)
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
      arm(slot)
    },
    cancel: remove,
    stop() {
      cancelTick?.()
      cancelTick = undefined
      armedSlot = Infinity
      slots.clear()
      slotOf.clear()
    },
  }
}
