/**
 * What is held at the moment, and why: one entry per record set, replaced whenever its name is looked at again. Events,
 * conditions and metrics are readings of it, and it says when to look again (INV-24).
 */
import type { Reason } from '../../reasons.ts'
import type { Names } from './source-index.ts'

export interface Held {
  readonly provider: string
  /** '': no zone takes the name. */
  readonly zone: string
  readonly name: string
  readonly type: string
  readonly code: Reason
  readonly why: string
  /** UID of the source. */
  readonly source: string
  /** ms since the epoch, when it will be done by itself. */
  readonly until?: number
  /** Id of the held set it is approved with. */
  readonly set?: string
}

interface Entry {
  readonly held: Held
  readonly lookAt: number
}

/** Nothing tells when a budget is whole again or a stranger's record is gone. */
const LOOK_AGAIN_MS = 600_000

export class HeldChanges {
  readonly #entries = new Map<string, Entry>()
  readonly #bySource = new Map<string, Set<string>>()
  readonly #byName = new Map<string, Set<string>>()

  /** All that is held for these names in a zone; returns what was not held before, or for another reason. */
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

  /** One more; true when it was not held before, or for another reason. */
  add(held: Held, now: number): boolean {
    const before = this.#entries.get(keyOf(held))
    this.#put(held, now)
    return before?.held.code !== held.code
  }

  isHeld(name: string): boolean {
    return this.#byName.has(name)
  }

  /** What is held of one source. */
  of(source: string): Held[] {
    return [...(this.#bySource.get(source) ?? [])].flatMap((key) => this.#entries.get(key)?.held ?? [])
  }

  /** Names whose time has come; they are not due again before they were looked at. */
  takeDue(now: number): Set<string> {
    const names = new Set<string>()
    for (const [key, { held, lookAt }] of this.#entries) {
      if (lookAt > now) continue
      names.add(held.name)
      this.#entries.set(key, { held, lookAt: now + LOOK_AGAIN_MS })
    }
    return names
  }

  all(): Iterable<Held> {
    return Array.from(this.#entries.values(), ({ held }) => held)
  }

  /** At a cost in proportion to the names. */
  #keysOf(names: Names): string[] {
    if (names === 'all') return [...this.#entries.keys()]
    return [...names].flatMap((name) => [...(this.#byName.get(name) ?? [])])
  }

  #put(held: Held, now: number): true {
    const key = keyOf(held)
    const before = this.#entries.get(key)
    if (before !== undefined) this.#delete(key, before)
    this.#entries.set(key, { held, lookAt: Math.min(held.until ?? Infinity, now + LOOK_AGAIN_MS) })
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
  // Two sources may want one set: each is told about its own.
  return `${provider} ${zone} ${name} ${type} ${source}`
}
