/**
 * The one edge to DNS services. A provider is small and dumb: it lists zones, reads record sets, and applies a batch.
 * Guards, ownership, ordering, retries and rate limits are not its business (records/executor.ts).
 *
 * Guarantees every provider gives, and `conformance.ts` checks:
 * - `read` gives canonical sets, complete for the names asked; a failed page fails the whole read (INV-21);
 * - `apply` with `isAtomic` writes all of a batch or nothing;
 * - with `comparesAndSwaps`, nothing is written when a `from` is not what the zone holds;
 * - every failure is a ProviderError whose `outcome` is true, and whose text holds no credential.
 */
import type { ProviderError } from '../rrset/error.ts'
import type { ObservedRRset } from '../rrset/rrset.ts'
import type { SetChange } from '../rrset/set-change.ts'

export interface ProviderZone {
  /** What the service calls it; equal to `name` where names are unique. */
  readonly id: string
  /** Canonical, with trailing dot. */
  readonly name: string
  /** Two zones of one name are told apart by this. @default 'public' */
  readonly visibility?: 'public' | 'private'
}

export interface Capabilities {
  readonly isAtomic: boolean
  readonly comparesAndSwaps: boolean
  /** Reading some names costs in proportion to them, not to the zone. */
  readonly readsByName: boolean
  /** Largest batch, in record sets. */
  readonly maxChanges: number
  /** Requests per second that this program allows itself per account. */
  readonly requestsPerSecond: number
}

/**
 * Waits until the account may be asked again. A call of a provider comes with one request; each further one (the next
 * page, the next name) takes a turn first, so that a long list keeps the rate limit, and the time-out is of a request. With the
 * error of a throttled request the account slows down, and the same request may be sent again.
 */
export type Turn = (throttled?: ProviderError) => Promise<void>

export interface Provider {
  /** The name in the configuration. */
  readonly name: string
  /** Which account it uses: providers with the same account share one rate limit. Holds no secret. */
  readonly account: string
  readonly capabilities: Capabilities
  zones(signal: AbortSignal, turn?: Turn): Promise<readonly ProviderZone[]>
  read(
    zone: ProviderZone,
    names: ReadonlySet<string> | 'all',
    signal: AbortSignal,
    turn?: Turn,
  ): Promise<readonly ObservedRRset[]>
  apply(zone: ProviderZone, batch: readonly SetChange[], signal: AbortSignal): Promise<void>
  /** Does the batch fit in one call, where the limit is more than a number of sets? */
  fits?(batch: readonly SetChange[]): boolean
  close?(): Promise<void>
}
