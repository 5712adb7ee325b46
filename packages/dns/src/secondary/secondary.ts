/**
 * Keeps a zone equal to that of its primaries (RFC 1034 §4.3.5): asks for their serials, transfers the newest version by IXFR,
 * and by AXFR when IXFR does not fit.
 *
 * Flow: `run` refreshes at the start, after each NOTIFY (`notify`), and by the timers of the SOA; `refresh` is one such round.
 * Guarantees: what a transfer brings is taken whole or not at all; a primary that does not answer is passed over; a zone that
 * was not confirmed for longer than the SOA's expire time is given to `expire`. While `isActive` is false nothing is queried.
 */
import type { DnsClient } from '../client/client.ts'
import { type ServerAddress, serverText } from '../client/udp-exchange.ts'
import { DnsError } from '../error.ts'
import { CLASS, RCODE, rcodeName, TYPE } from '../wire/codes.ts'
import type { Fqdn } from '../wire/name.ts'
import type { Resource } from '../wire/record.ts'
import type { TsigKey } from '../wire/tsig.ts'
import { isNewer, serialOf } from '../zone/soa.ts'
import type { Zone } from '../zone/zone-table.ts'
import { type TransferredZone, zoneOf } from './transferred-zone.ts'

export interface SecondaryOptions {
  readonly zone: Fqdn
  /** The servers to ask; called for each round, because names may resolve differently. */
  readonly primaries: () => Promise<readonly ServerAddress[]>
  readonly key?: TsigKey
  readonly client: DnsClient
  /** The version that is there. */
  readonly present: () => Zone | undefined
  /** Takes a newer version. */
  readonly accept: (transferred: TransferredZone) => Promise<void>
  /** The zone has not been confirmed for longer than its expire time. */
  readonly expire?: () => void
  /** False while this process writes the zone itself. @default always true */
  readonly isActive?: () => boolean
  readonly onError?: (error: unknown) => void
  /** @default those of the process */
  readonly clock?: SecondaryClock
}

export interface SecondaryClock {
  /** Milliseconds, monotonic. */
  now(): number
  /** Returns the function that cancels it. */
  after(ms: number, action: () => void): () => void
}

const SYSTEM_CLOCK: SecondaryClock = {
  now: () => performance.now(),
  after(ms, action) {
    const timer = setTimeout(action, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

/** Without a zone yet: first retry, and longest interval. */
const FIRST_RETRY_MS = 250
const MAX_RETRY_MS = 30_000
/** Longest interval between refreshes, whatever the SOA says. */
const MAX_REFRESH_MS = 86_400_000
/** Milliseconds for one question. */
const QUERY_MS = 1000

export class SecondaryZone {
  readonly #options: SecondaryOptions
  readonly #clock: SecondaryClock
  #isNotified = false
  #source: string | undefined
  #wake: () => void = () => {}
  #confirmedAt: number
  #isExpired = false

  constructor(options: SecondaryOptions) {
    this.#options = options
    this.#clock = options.clock ?? SYSTEM_CLOCK
    this.#confirmedAt = this.#clock.now()
  }

  /**
   * A primary announced a change: the next round starts at once, or after the one that is running. It asks only `source`
   * when that is the address of a primary, so that another one that does not answer causes no delay.
   */
  notify(source?: string): void {
    this.#isNotified = true
    this.#source = source
    this.#wake()
  }

  async run(signal: AbortSignal): Promise<void> {
    let failures = 0
    while (!signal.aborted) {
      const source = this.#source
      this.#isNotified = false
      this.#source = undefined
      const isConfirmed = this.#isActive() ? await this.refresh(signal, source) : true
      failures = isConfirmed ? 0 : failures + 1
      this.#checkExpiry()
      if (!this.#isNotified) await this.#sleep(this.#delayMs(failures), signal)
    }
  }

  #isActive(): boolean {
    return this.#options.isActive?.() ?? true
  }

  #delayMs(failures: number): number {
    const soa = this.#options.present()?.soa
    if (failures > 0 || soa === undefined) {
      const backoff = Math.min(FIRST_RETRY_MS * 2 ** Math.min(failures, 10), MAX_RETRY_MS)
      return soa === undefined ? backoff : Math.min(backoff, Math.max(soa.retry, 1) * 1000)
    }
    return Math.min(Math.max(soa.refresh, 1) * 1000, MAX_REFRESH_MS)
  }

  #checkExpiry(): void {
    const soa = this.#options.present()?.soa
    if (!this.#isActive()) {
      // This process writes the zone: there is no newer version, and its time begins when another one takes over.
      this.#confirmedAt = this.#clock.now()
      this.#isExpired = false
    }
    if (soa === undefined) return
    const isExpired = this.#clock.now() - this.#confirmedAt > soa.expire * 1000
    if (isExpired && !this.#isExpired) this.#options.expire?.()
    this.#isExpired = isExpired
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.after(ms, resolve)
      this.#wake = () => {
        cancel()
        resolve()
      }
      signal.addEventListener('abort', this.#wake, { once: true })
      if (signal.aborted) this.#wake()
    })
    signal.removeEventListener('abort', this.#wake)
    this.#wake = () => {}
  }

  /**
   * One round over all primaries, or over the one with the address `only`. A version is taken as soon as a primary offers it.
   * True when at least one of them confirmed, or brought, the newest version.
   */
  async refresh(signal?: AbortSignal, only?: string): Promise<boolean> {
    const { primaries, onError } = this.#options
    const all = await primaries().catch((error: unknown) => {
      onError?.(error)
      return []
    })
    const chosen = all.filter(({ address }) => address === only)
    let transfers = Promise.resolve()
    let isConfirmed = false
    const rounds = (chosen.length > 0 ? chosen : all).map(async (server) => {
      const serial = await this.#serialOf(server, signal)
      if (serial === undefined) return
      // One transfer at a time: the next one may be needless after it.
      transfers = transfers.then(async () => {
        if (signal?.aborted === true) return
        const zone = this.#options.present()
        if (zone !== undefined && !isNewer(serial, zone.serial)) isConfirmed = true
        else if (await this.#transfer(server, signal)) isConfirmed = true
      })
      await transfers
    })
    await Promise.all(rounds)
    if (isConfirmed) this.#confirmedAt = this.#clock.now()
    return isConfirmed
  }

  async #serialOf(server: ServerAddress, signal?: AbortSignal): Promise<number | undefined> {
    const { zone, key, client, onError } = this.#options
    try {
      const { message } = await client.query({
        server,
        name: zone,
        type: 'SOA',
        deadlineMs: QUERY_MS,
        ...(key !== undefined && { key }),
        ...(signal !== undefined && { signal }),
      })
      const soa = message.answers.find(({ type }) => type === TYPE.SOA)
      if (message.rcode === RCODE.NOERROR && soa !== undefined) return serialOf(soa.data)
      // A replica that has no zone yet refuses; it is no primary then.
      if (message.rcode !== RCODE.REFUSED)
        onError?.(
          new DnsError('RCODE', `${serverText(server)} answers ${rcodeName(message.rcode)} for the SOA of ${zone}`),
        )
    } catch (error) {
      if (signal?.aborted !== true) onError?.(error)
    }
    return undefined
  }

  /** IXFR, then AXFR when what came does not fit. True when the zone is up to date after it. */
  async #transfer(server: ServerAddress, signal?: AbortSignal): Promise<boolean> {
    const { zone: origin, present, accept, onError } = this.#options
    for (const isIncremental of present() === undefined ? [false] : [true, false]) {
      try {
        const before = present()
        const result = await this.#options.client.transferChanges({
          server,
          zone: origin,
          ...(this.#options.key !== undefined && { key: this.#options.key }),
          ...(signal !== undefined && { signal }),
          ...(isIncremental && before !== undefined && { known: soaOf(before) }),
        })
        const transferred = zoneOf(origin, before, result)
        if (transferred !== undefined) await accept(transferred)
        return true
      } catch (error) {
        if (signal?.aborted !== true) onError?.(error)
        if (error instanceof DnsError && error.code.startsWith('STORE_')) return false
      }
    }
    return false
  }
}

const soaOf = (zone: Zone): Resource => ({
  name: zone.origin,
  type: TYPE.SOA,
  class: CLASS.IN,
  ttl: zone.soa.ttl,
  data: zone.soa.data,
})
