/**
 * Pipelined TCP (RFC 7766 §6.2.1.1): one connection per server carries many queries at a time; answers arrive in any order and
 * are matched by id and question. When a connection fails, its pending queries reject and the next query opens a new one.
 * Idle connections are closed and do not keep the process alive.
 */
import type { Socket } from 'node:net'
import { DnsError } from '../error.ts'
import { Deframer, frame } from '../wire/tcp-frame.ts'
import { connectTcp } from './tcp-connect.ts'
import { type ServerAddress, serverText } from './udp-exchange.ts'

const IDLE_MS = 5000

interface Waiting {
  readonly isAnswer: (message: Buffer) => boolean
  readonly resolve: (message: Buffer) => void
  readonly reject: (error: DnsError) => void
}

class Connection {
  readonly #socket: Socket
  readonly #where: string
  readonly #waiting = new Set<Waiting>()
  isOpen = true

  constructor(socket: Socket, where: string) {
    this.#socket = socket
    this.#where = where
    const deframer = new Deframer()
    socket.on('data', (chunk) => {
      deframer.push(chunk)
      for (let message = deframer.next(); message !== undefined; message = deframer.next()) this.#take(message)
    })
    socket.on('close', () => this.#fail())
    socket.setTimeout(IDLE_MS, () => {
      if (this.#waiting.size === 0) this.close()
    })
    socket.unref()
  }

  #take(message: Buffer): void {
    for (const waiting of this.#waiting) {
      if (!waiting.isAnswer(message)) continue
      this.#remove(waiting)
      waiting.resolve(message)
      return
    }
  }

  #remove(waiting: Waiting): void {
    this.#waiting.delete(waiting)
    if (this.#waiting.size > 0) return
    if (this.isOpen) this.#socket.unref()
    else this.#socket.destroy()
  }

  #fail(): void {
    this.isOpen = false
    for (const { reject } of this.#waiting) reject(new DnsError('NETWORK', `${this.#where} closed the connection`))
    this.#waiting.clear()
  }

  async ask(
    question: Uint8Array,
    isAnswer: (message: Buffer) => boolean,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const done = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        this.#remove(waiting)
      }
      const waiting: Waiting = {
        isAnswer,
        resolve: (message) => {
          done()
          resolve(message)
        },
        reject: (error) => {
          done()
          reject(error)
        },
      }
      const abort = () => waiting.reject(new DnsError('ABORTED', `the query to ${this.#where} was aborted`))
      const timer = setTimeout(() => {
        // The connection may be half open: pending queries may still be answered, the next query opens a new one.
        this.isOpen = false
        waiting.reject(new DnsError('TIMEOUT', `no answer from ${this.#where} over TCP in ${timeoutMs} ms`))
      }, timeoutMs)
      if (signal?.aborted === true) return abort()
      signal?.addEventListener('abort', abort)
      this.#waiting.add(waiting)
      this.#socket.ref()
      this.#socket.write(frame(question))
    })
  }

  close(): void {
    this.isOpen = false
    this.#socket.destroy()
  }
}

export class TcpPool {
  readonly #connections = new Map<string, Promise<Connection>>()

  async #connection(server: ServerAddress, timeoutMs: number, signal?: AbortSignal): Promise<Connection> {
    const where = serverText(server)
    const known = this.#connections.get(where)
    if (known !== undefined) {
      const connection = await known.catch(() => undefined)
      if (connection?.isOpen === true) return connection
      if (this.#connections.get(where) === known) this.#connections.delete(where)
    }
    const other = this.#connections.get(where)
    if (other !== undefined) return other
    const opening = connectTcp(server, timeoutMs, signal).then((socket) => new Connection(socket, where))
    this.#connections.set(where, opening)
    return opening
  }

  async exchange(
    server: ServerAddress,
    question: Uint8Array,
    isAnswer: (message: Buffer) => boolean,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<Buffer> {
    const startedMs = performance.now()
    const connection = await this.#connection(server, timeoutMs, signal)
    // The time in which the connection was opened counts.
    const leftMs = Math.max(1, timeoutMs - (performance.now() - startedMs))
    return connection.ask(question, isAnswer, leftMs, signal)
  }

  async close(): Promise<void> {
    const open = await Promise.allSettled(this.#connections.values())
    this.#connections.clear()
    for (const result of open) if (result.status === 'fulfilled') result.value.close()
  }
}
