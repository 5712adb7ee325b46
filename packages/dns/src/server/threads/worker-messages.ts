/** Messages between the server and its worker threads, which answer UDP on the same port. */
import type { Fqdn } from '../../wire/name.ts'
import type { ThreadCounters } from '../counters.ts'
import type { RateLimitOptions } from '../limits/ratelimit.ts'
import type { RegionMessage } from '../regions/region-source.ts'

export interface WorkerSettings {
  readonly addresses: readonly { readonly address: string; readonly port: number }[]
  readonly cookieSecret: Uint8Array
  readonly rateLimit: RateLimitOptions
  readonly maxUdpSize?: number
  readonly regions?: RegionMessage
}

export type ToWorker =
  /** The frames of a snapshot, or of deltas (store/zone-frames.ts). */
  | { readonly kind: 'zone'; readonly origin: Fqdn; readonly snapshot: Uint8Array }
  | { readonly kind: 'changes'; readonly origin: Fqdn; readonly deltas: Uint8Array }
  | { readonly kind: 'suspend'; readonly origin: Fqdn }
  | { readonly kind: 'remove'; readonly origin: Fqdn }
  | { readonly kind: 'limit'; readonly responsesPerSecond: number }
  /** The answer to a packet that the worker passed on. */
  | { readonly kind: 'answer'; readonly id: number; readonly bytes: Uint8Array | undefined }
  | { readonly kind: 'close' }

export type FromWorker =
  | { readonly kind: 'ready' }
  /** UPDATE, NOTIFY and signed queries are answered by the server itself. */
  | {
      readonly kind: 'special'
      readonly id: number
      readonly bytes: Uint8Array
      readonly address: string
      readonly port: number
    }
  | { readonly kind: 'counters'; readonly counters: ThreadCounters }
  /** The worker's copy does not fit a change. */
  | { readonly kind: 'lost'; readonly origin: Fqdn }
  | { readonly kind: 'failed'; readonly why: string }
