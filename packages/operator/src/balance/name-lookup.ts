/**
 * Addresses of the host names of endpoints, resolved in the background: a record with several targets contains addresses
 * only, and they change without notice (cloud load balancers).
 *
 * Guarantees: a name is resolved when it is first used and then every `RESOLVE_INTERVAL_MS`; a failed lookup keeps the last
 * addresses; load balancers are notified only when the addresses of one of their names changed.
 */
import type { Clock, Manager } from '@seamark/kube'
import { canonicalName, compareText, isInvalid } from '../rrset/rrset.ts'

export const RESOLVE_INTERVAL_MS = 30_000
/** After a change: the servers of a zone get it one after the other. */
const FIRST_INTERVAL_MS = 1_000
const CHECK_INTERVAL = '1s'
const MAX_CONCURRENT = 32

export interface NameLookup {
  /** Replaces the names of the owner; an empty list removes it. */
  setNames(owner: string, names: readonly string[]): void
  /** Of a canonical name; undefined when it was never resolved. */
  addressesOf(name: string): readonly string[] | undefined
  /** The name has other records now: it is due at once, and then after waits that double from `FIRST_INTERVAL_MS`. */
  touch(name: string): void
  /** Resolves the names that are due. */
  refresh(): Promise<void>
  /** Calls the listener when a name is due at once. Returns the unsubscribe function. */
  subscribe(listener: () => void): () => void
}

interface NameLookupDeps {
  readonly clock: Clock
  readonly resolve: (name: string) => Promise<readonly string[]>
  readonly onChange: (owners: readonly string[]) => void
  /** An answer without addresses is a fact about the name, and not a failed lookup. @default false */
  readonly isAbsenceKnown?: boolean
}

interface Entry {
  readonly owners: Set<string>
  addresses: readonly string[] | undefined
  /** Monotonic. */
  dueMs: number
  intervalMs: number
}

export function createNameLookup({ clock, resolve, onChange, isAbsenceKnown }: NameLookupDeps): NameLookup {
  const entries = new Map<string, Entry>()
  const namesOf = new Map<string, ReadonlySet<string>>()
  const listeners = new Set<() => void>()

  async function resolveName(name: string, entry: Entry): Promise<void> {
    entry.dueMs = clock.monotonic() + entry.intervalMs
    entry.intervalMs = Math.min(2 * entry.intervalMs, RESOLVE_INTERVAL_MS)
    const found = await resolve(name.replace(/\.$/, '')).catch(() => undefined)
    if (found === undefined || (found.length === 0 && isAbsenceKnown !== true)) return
    const addresses = [...new Set(found)].sort(compareText)
    const isSame = entry.addresses !== undefined && addresses.join(' ') === entry.addresses.join(' ')
    entry.addresses = addresses
    if (!isSame && entries.get(name) === entry) onChange([...entry.owners])
  }

  return {
    setNames(owner, names) {
      const after = new Set(
        names.flatMap((name) => {
          const canonical = canonicalName(name)
          return isInvalid(canonical) ? [] : [canonical]
        }),
      )
      for (const name of namesOf.get(owner) ?? []) {
        if (after.has(name)) continue
        const entry = entries.get(name)
        entry?.owners.delete(owner)
        if (entry?.owners.size === 0) entries.delete(name)
      }
      for (const name of after) {
        const entry = entries.get(name)
        if (entry !== undefined) entry.owners.add(owner)
        else {
          const dueMs = clock.monotonic()
          entries.set(name, {
            owners: new Set([owner]),
            addresses: undefined,
            dueMs,
            intervalMs: isAbsenceKnown === true ? FIRST_INTERVAL_MS : RESOLVE_INTERVAL_MS,
          })
          for (const listener of listeners) listener()
        }
      }
      if (after.size === 0) namesOf.delete(owner)
      else namesOf.set(owner, after)
    },
    addressesOf: (name) => entries.get(name)?.addresses,
    touch(name) {
      const entry = entries.get(name)
      if (entry === undefined) return
      entry.dueMs = clock.monotonic()
      entry.intervalMs = FIRST_INTERVAL_MS
      for (const listener of listeners) listener()
    },
    async refresh() {
      const nowMs = clock.monotonic()
      const due = [...entries].filter(([, { dueMs }]) => dueMs <= nowMs)
      for (let at = 0; at < due.length; at += MAX_CONCURRENT) {
        const part = due.slice(at, at + MAX_CONCURRENT)
        await Promise.all(part.map(async ([name, entry]) => resolveName(name, entry)))
      }
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** Resolves names while the manager leads. */
export function addNameLookup(mgr: Manager, lookup: NameLookup, name = 'balance-names'): void {
  mgr
    .keyedController(name)
    .triggers((mark) => lookup.subscribe(() => mark(['names'])))
    .every(CHECK_INTERVAL, () => ['names'])
    .reconcile(async () => lookup.refresh())
}
