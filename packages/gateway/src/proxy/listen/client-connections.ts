/**
 * The connections of clients: limits for those that do not send a request, and the end of idle ones. `node:http` has both for
 * servers that listen; those of the proxy are handed their connections and never listen, so that nothing would end a client
 * that sends its header octet by octet.
 */
import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { ProxyResponse } from '../request/exchange.ts'

export interface ConnectionLimits {
  /** For the header of a request. */
  readonly headersTimeoutMs: number
  /** Of a connection without a request. */
  readonly idleTimeoutMs: number
}

/** Deadlines are looked at this often at least: one timer for all connections costs less than one for each request. */
const MAX_SWEEP_MS = 5_000

export class ClientConnections {
  readonly #limits: ConnectionLimits
  /** When a connection of HTTP/1.1 is closed unless a request arrives; infinite during a request. */
  readonly #deadlines = new Map<Socket, number>()
  readonly #sessions = new Map<ServerHttp2Session, number>()
  readonly #sweep: NodeJS.Timeout

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
    this.#sweep = setInterval(() => this.#closeOverdue(), Math.min(limits.headersTimeoutMs, MAX_SWEEP_MS))
    this.#sweep.unref()
  }

  /** A new connection of HTTP/1.1. */
  add(socket: Socket): void {
    this.#deadlines.set(socket, performance.now() + this.#limits.headersTimeoutMs)
    socket.once('close', () => this.#deadlines.delete(socket))
  }

  /** A request has arrived; after its response the next one has as long as an idle connection, and then for its header. */
  follow(socket: Socket, response: ProxyResponse): void {
    this.#deadlines.set(socket, Number.POSITIVE_INFINITY)
    response.once('close', () => {
      const { headersTimeoutMs, idleTimeoutMs } = this.#limits
      if (!socket.destroyed) this.#deadlines.set(socket, performance.now() + idleTimeoutMs + headersTimeoutMs)
    })
  }

  /** The connection is no longer one of HTTP: a WebSocket. */
  release(socket: Socket): void {
    this.#deadlines.delete(socket)
  }

  addSession(session: ServerHttp2Session): void {
    this.#sessions.set(session, 0)
    const count = (by: number) => this.#sessions.set(session, (this.#sessions.get(session) ?? 0) + by)
    session.on('stream', (stream) => {
      count(1)
      stream.once('close', () => count(-1))
    })
    session.once('close', () => this.#sessions.delete(session))
    session.setTimeout(this.#limits.idleTimeoutMs, () => {
      if (this.#sessions.get(session) === 0) session.close()
    })
  }

  /** Closes what has no request; what has one ends with it. */
  closeIdle(): void {
    for (const [socket, deadline] of this.#deadlines) if (deadline !== Number.POSITIVE_INFINITY) socket.destroy()
    for (const session of this.#sessions.keys()) session.close()
  }

  close(): void {
    clearInterval(this.#sweep)
  }

  #closeOverdue(): void {
    const now = performance.now()
    for (const [socket, deadline] of this.#deadlines) if (deadline <= now) socket.destroy()
  }
}
