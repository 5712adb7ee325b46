/**
 * Addresses of the host names of endpoints, resolved in the background: a record with several targets contains addresses
 * only, and they change without notice (cloud load balancers).
 *
 * Guarantees: a name is resolved when it is first used and then every `RESOLVE_INTERVAL_MS`; a failed lookup keeps the last
 * addresses; load balancers are notified only when the addresses of one of their names changed.
 */
import { type Clock, sleep } from '@seamark/kube'
import { canonicalName, compareText, isInvalid } from '../rrset/rrset.ts'

export const RESOLVE_INTERVAL_MS = 30_000
const CHECK_MS = 1_000
const MAX_CONCURRENT = 32

export interface NameLookup {
  /** Replaces the names of the owner; an empty list removes it. */
  setNames(owner: string, names: readonly string[]): void
  /** Of a canonical name; undefined when it was never resolved. */
  addressesOf(name: string): readonly string[] | undefined
  run(signal: AbortSignal): Promise<void>
}

export interface NameLookupDeps {
  readonly clock: Clock
  readonly resolve: (name: string) => Promise<readonly string[]>
  readonly onChange: (owners: readonly string[]) => void
}

interface Entry {
  readonly owners: Set<string>
  addresses: readonly string[] | undefined
  /** Monotonic. */
  dueMs: number
}

export function createNameLookup({ clock, resolve, onChange }: NameLookupDeps): NameLookup {
  const entries = new Map<string, Entry>()
  const namesOf = new Map<string, ReadonlySet<string>>()
  let wake: () => void = () => undefined

  async function refresh(name: string, entry: Entry): Promise<void> {
    entry.dueMs = clock.monotonic() + RESOLVE_INTERVAL_MS
    const found = await resolve(name.replace(/\.$/, '')).catch(() => undefined)
    if (found === undefined || found.length === 0) return
    const addresses = [...new Set(found)].sort(compareText)
    const isSame = addresses.join(' ') === entry.addresses?.join(' ')
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
          entries.set(name, { owners: new Set([owner]), addresses: undefined, dueMs: clock.monotonic() })
          wake()
        }
      }
      if (after.size === 0) namesOf.delete(owner)
      else namesOf.set(owner, after)
    },
    addressesOf: (name) => entries.get(name)?.addresses,
    async run(signal) {
      while (!signal.aborted) {
        const woken = new AbortController()
        wake = () => woken.abort()
        const nowMs = clock.monotonic()
        const due = [...entries].filter(([, { dueMs }]) => dueMs <= nowMs).slice(0, MAX_CONCURRENT)
        await Promise.all(due.map(async ([name, entry]) => refresh(name, entry)))
        if (due.length === MAX_CONCURRENT) continue
        await sleep(clock, CHECK_MS, AbortSignal.any([signal, woken.signal]))
      }
    },
  }
}
