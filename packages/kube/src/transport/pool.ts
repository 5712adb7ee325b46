/**
 * The HTTP/2 sessions of one lane. A request uses a session with a free stream; if there is none a new session is
 * opened, one dial at a time, up to `maxSessions`; beyond that requests are queued.
 *
 * Guarantees: no session gets more streams than its peer allows minus a reserve; a session with outdated TLS material
 * gets no new requests; a failed dial fails the queued requests only if no session is left to serve them.
 */
import { TransportError } from '../errors.ts'
import type { StopSignal } from '../stop-signal.ts'
import type { Session } from './session.ts'

export interface PoolOptions {
  readonly maxSessions: number
  /** Version of the TLS material for new sessions. */
  readonly tlsVersion: () => number
  readonly open: (onChange: () => void) => Promise<Session>
}

interface Waiter {
  readonly take: (session: Session) => void
  readonly fail: (error: unknown) => void
}

export class SessionPool {
  readonly #options: PoolOptions
  #sessions: Session[] = []
  #waiters: Waiter[] = []
  /** The dial in progress; never rejects. */
  #dialling: Promise<void> | undefined
  #isClosed = false

  constructor(options: PoolOptions) {
    this.#options = options
  }

  get sessions(): number {
    return this.#sessions.length
  }

  get streams(): number {
    return this.#sessions.reduce((sum, session) => sum + session.streams, 0)
  }

  /** A session with a free stream; it must be used in the same turn. */
  find(): Session | undefined {
    const version = this.#options.tlsVersion()
    let isOutdated = false
    for (const session of this.#sessions) {
      if (session.tlsVersion !== version) isOutdated = true
      else if (session.hasFreeStream) return session
    }
    if (isOutdated) this.#retireOutdated(version)
    return undefined
  }

  /** Calls `use` with a session as soon as one has a free stream. */
  async take<T>(signal: StopSignal | undefined, use: (session: Session) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw closedError()
    const session = this.#waiters.length === 0 ? this.find() : undefined
    if (session !== undefined) return use(session)
    return new Promise<T>((resolve, reject) => {
      const onAbort = () => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter)
        const message = 'gave up waiting for a connection with a free stream'
        waiter.fail(new TransportError('ABORTED', message, { cause: signal?.reason, unprocessed: true }))
      }
      const waiter: Waiter = {
        // In the same turn, so that the stream is still free.
        take: (found) => {
          signal?.removeEventListener('abort', onAbort)
          use(found).then(resolve, reject)
        },
        fail: (error) => {
          signal?.removeEventListener('abort', onAbort)
          reject(error)
        },
      }
      signal?.addEventListener('abort', onAbort, { once: true })
      this.#waiters.push(waiter)
      this.#serve()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#failAll(closedError())
    await Promise.all([this.#dialling, ...this.#sessions.map(async (session) => session.destroy())])
    this.#sessions = []
  }

  #serve(): void {
    if (this.#sessions.some(isDestroyed)) this.#sessions = this.#sessions.filter((session) => !isDestroyed(session))
    while (this.#waiters.length > 0) {
      const session = this.find()
      if (session === undefined) break
      this.#waiters.shift()?.take(session)
    }
    if (this.#waiters.length > 0 && this.#dialling === undefined && !this.#isClosed) this.#dial()
  }

  #dial(): void {
    const usable = this.#sessions.filter((session) => session.isUsable).length
    if (usable >= this.#options.maxSessions) return
    this.#dialling = this.#options
      .open(() => this.#serve())
      .then(
        async (session) => {
          this.#dialling = undefined
          if (this.#isClosed) return session.destroy()
          this.#sessions.push(session)
          return this.#serve()
        },
        (error: unknown) => {
          this.#dialling = undefined
          if (!this.#sessions.some((session) => session.isUsable)) this.#failAll(error)
        },
      )
      .catch(() => undefined)
  }

  #failAll(error: unknown): void {
    const waiting = this.#waiters
    this.#waiters = []
    for (const waiter of waiting) waiter.fail(error)
  }

  #retireOutdated(version: number): void {
    for (const session of this.#sessions) if (session.tlsVersion !== version) session.retire()
  }
}

function closedError(): TransportError {
  return new TransportError('CLOSED', 'the client is closed', { unprocessed: true })
}

function isDestroyed(session: Session): boolean {
  return session.isDestroyed
}
