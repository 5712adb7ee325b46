/**
 * Sends NOTIFY (RFC 1996) to secondaries: after each swap one per secondary, repeated with exponential backoff until it is
 * answered, at most `MAX_TRIES` times. A newer change replaces a NOTIFY that is still being repeated.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { DnsClient } from '../../client/client.ts'
import { serverText } from '../../client/udp-exchange.ts'
import { DnsError } from '../../error.ts'
import type { Fqdn } from '../../wire/name.ts'
import type { Secondary, ZonePolicy } from '../policy.ts'
import type { Keyring } from '../signed.ts'

const MAX_TRIES = 5
const FIRST_RETRY_MS = 1000

export class Notifier {
  readonly #client: DnsClient
  readonly #keys: Keyring
  readonly #onError: (error: Error) => void
  #isClosed = false
  readonly #running = new Map<string, { controller: AbortController; done: Promise<void> }>()

  constructor(client: DnsClient, keys: Keyring, onError: (error: Error) => void) {
    this.#client = client
    this.#keys = keys
    this.#onError = onError
  }

  /** Returns at once. */
  notify(zone: Fqdn, secondaries: NonNullable<ZonePolicy['secondaries']>): void {
    if (typeof secondaries === 'function') {
      secondaries().then(
        (found) => this.notify(zone, found),
        (error: unknown) => this.#onError(error instanceof Error ? error : new Error(String(error))),
      )
      return
    }
    if (this.#isClosed) return
    for (const secondary of secondaries) {
      const id = `${zone} ${serverText(secondary)}`
      this.#running.get(id)?.controller.abort()
      const controller = new AbortController()
      const done = this.#send(zone, secondary, controller.signal).finally(() => {
        if (this.#running.get(id)?.controller === controller) this.#running.delete(id)
      })
      this.#running.set(id, { controller, done })
    }
  }

  async #send(zone: Fqdn, secondary: Secondary, signal: AbortSignal): Promise<void> {
    const key = secondary.key === undefined ? undefined : this.#keys.get(secondary.key)
    for (let attempt = 0; attempt < MAX_TRIES && !signal.aborted; attempt++) {
      try {
        await this.#client.notify({ server: secondary, zone, signal, ...(key !== undefined && { key }) })
        return
      } catch (error) {
        if (signal.aborted) return
        if (!(error instanceof DnsError)) throw error
        this.#onError(error)
        if (error.code !== 'TIMEOUT' && error.code !== 'NETWORK') return
      }
      await sleep(FIRST_RETRY_MS * 2 ** attempt, undefined, { signal, ref: false }).catch(() => {})
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const all = [...this.#running.values()]
    for (const { controller } of all) controller.abort()
    await Promise.all(all.map(async ({ done }) => done))
  }
}
