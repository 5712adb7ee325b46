/**
 * The interface to DNS services. A provider lists zones, reads RRsets, and applies a batch. Guards, ownership, ordering,
 * retries and rate limits are implemented by the executor (records/execute/executor.ts).
 *
 * Guarantees of every provider, checked by `conformance.ts`:
 * - `read` returns canonical sets, complete for the requested names; a failed page fails the whole read (INV-21);
 * - `apply` with `isAtomic` writes all of a batch or nothing;
 * - with `comparesAndSwaps`, nothing is written when a `from` differs from the zone;
 * - every failure is a ProviderError whose `outcome` is accurate, and whose text contains no credential.
 */
import type { ProviderError } from '../rrset/error.ts'
import type { ObservedRRset } from '../rrset/rrset.ts'
import type { SetChange } from '../rrset/set-change.ts'

export interface ProviderZone {
  /** The id of the zone at the service; equal to `name` where names are unique. */
  readonly id: string
  /** Canonical, with trailing dot. */
  readonly name: string
  /** Distinguishes two zones of the same name. @default 'public' */
  readonly visibility?: 'public' | 'private'
}

export interface Capabilities {
  readonly isAtomic: boolean
  readonly comparesAndSwaps: boolean
  /** The cost of reading some names is proportional to their number, not to the size of the zone. */
  readonly readsByName: boolean
  /** The service answers by policies (rrset/answer-policy.ts). @default false */
  readonly answersByPolicy?: boolean
  /** `read` asks a server that answers for the zone, so it returns what clients get. @default false: the interface of a service */
  readonly readsServer?: boolean
  /** Largest batch, in RRsets. */
  readonly maxChanges: number
  /** Requests per second that this program sends per account. */
  readonly requestsPerSecond: number
}

/**
 * Waits for the rate limiter of the account. The first request of a provider call is already permitted; each further one
 * (the next page, the next name) waits first, so that a long list keeps the rate limit, and the time-out applies to each
 * request. With the error of a throttled request the rate decreases, and the same request may be sent again.
 */
export type Turn = (throttled?: ProviderError) => Promise<void>

export interface Provider {
  /** The name in the configuration. */
  readonly name: string
  /** The account: providers with the same account share one rate limit. Contains no secret. */
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
  /** Whether its credentials may write to the zone, without writing; where the service has a way to ask. */
  verify?(zone: ProviderZone, signal: AbortSignal): Promise<void>
  /** Whether the batch fits in one call, where the limit is not only a number of sets. */
  fits?(batch: readonly SetChange[]): boolean
  close?(): Promise<void>
}
