/**
 * The currently held changes with their reasons: one entry per RRset and source, replaced whenever its name is planned.
 * Events, conditions and metrics are derived from it, and it determines when to plan a name again (INV-24).
 */
import type { Reason } from '../../reasons.ts'
import type { Names } from './sources/source-index.ts'

export interface Held {
  readonly provider: string
  /** Empty when no zone contains the name. */
  readonly zone: string
  readonly name: string
  readonly type: string
  readonly code: Reason
  readonly why: string
  /** UID of the source. */
  readonly source: string
  /** ms since the epoch, when it will be made without an approval. */
  readonly until?: number
  /** Id of the held set that contains it. */
  readonly set?: string
  /** UID of the source that has the name. */
  readonly holder?: string
}

interface Entry {
  readonly held: Held
  readonly lookAt: number
}

/** No event signals that a budget is available again or that a foreign record was deleted. */
const RECHECK_MS = 600_000

export class HeldChanges {
  readonly #entries = new Map<string, Entry>()
  readonly #bySource = new Map<string, Set<string>>()
  readonly #byName = new Map<string, Set<string>>()

  /** Replaces what is held for these names in a zone; returns the changes that were not held before, or for another reason. */
  replace(zone: Pick<Held, 'provider' | 'zone'>, names: Names, held: readonly Held[], now: number): Held[] {
    const before = new Map<string, Reason>()
    for (const key of this.#keysOf(names)) {
      const entry = this.#entries.get(key)
      if (entry?.held.provider !== zone.provider || entry.held.zone !== zone.zone) continue
      before.set(key, entry.held.code)
      this.#delete(key, entry)
    }
    return held.filter((item) => this.#put(item, now) && before.get(keyOf(item)) !== item.code)
  }

  /** Adds one; true when it was not held before, or for another reason. */
  add(held: Held, now: number): boolean {
    const before = this.#entries.get(keyOf(held))
    this.#put(held, now)
    return before?.held.code !== held.code
  }

  /** Removes what is held of one source for one reason. */
  removeSource(source: string, code: Reason): void {
    for (const key of Array.from(this.#bySource.get(source) ?? [])) {
      const entry = this.#entries.get(key)
      if (entry?.held.code === code) this.#delete(key, entry)
    }
  }

  isHeld(name: string): boolean {
    return this.#byName.has(name)
  }

  /** Whether a change of the name is held for a reason that satisfies `isReason`. */
  isHeldFor(name: string, isReason: (code: Reason) => boolean): boolean {
    for (const key of this.#byName.get(name) ?? []) {
      const code = this.#entries.get(key)?.held.code
      if (code !== undefined && isReason(code)) return true
    }
    return false
  }

  /** The held changes of one source. */
  of(source: string): Held[] {
    return [...(this.#bySource.get(source) ?? [])].flatMap((key) => this.#entries.get(key)?.held ?? [])
  }

  /** Names that are due; they are not due again before they were planned. */
  takeDue(now: number): Set<string> {
    const names = new Set<string>()
    for (const [key, { held, lookAt }] of this.#entries) {
      if (lookAt > now) continue
      names.add(held.name)
      this.#entries.set(key, { held, lookAt: now + RECHECK_MS })
    }
    return names
  }

  all(): Iterable<Held> {
    return Array.from(this.#entries.values(), ({ held }) => held)
  }

  /** At a cost proportional to the number of names. */
  #keysOf(names: Names): string[] {
    if (names === 'all') return [...this.#entries.keys()]
    return [...names].flatMap((name) => [...(this.#byName.get(name) ?? [])])
  }

  #put(held: Held, now: number): true {
    const key = keyOf(held)
    const before = this.#entries.get(key)
    if (before !== undefined) this.#delete(key, before)
    this.#entries.set(key, { held, lookAt: Math.min(held.until ?? Infinity, now + RECHECK_MS) })
    addKey(this.#bySource, held.source, key)
    addKey(this.#byName, held.name, key)
    return true
  }

  #delete(key: string, { held }: Entry): void {
    this.#entries.delete(key)
    removeKey(this.#bySource, held.source, key)
    removeKey(this.#byName, held.name, key)
  }
}

function addKey(index: Map<string, Set<string>>, at: string, key: string): void {
  index.set(at, (index.get(at) ?? new Set()).add(key))
}

function removeKey(index: Map<string, Set<string>>, at: string, key: string): void {
  const keys = index.get(at)
  keys?.delete(key)
  if (keys?.size === 0) index.delete(at)
}

function keyOf({ provider, zone, name, type, source }: Held): string {
  // Two sources may request one set: each has its own entry.
  return `${provider} ${zone} ${name} ${type} ${source}`
}
