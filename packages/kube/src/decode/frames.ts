/**
 * Splits a watch stream into frames, one JSON document per line.
 *
 * Guarantees: a frame split at any byte gives the same result; a malformed or truncated frame fails the stream and is
 * never skipped; decoding uses at most the turn's budget, and the stream is paused while work is queued, so that memory
 * is bounded and back-pressure reaches the server.
 */
import type { Readable } from 'node:stream'
import { DecodeError, messageOf, TransportError } from '../errors.ts'
import { processBudget, type TurnBudget, type Work } from './decode-budget.ts'

export interface FrameOptions {
  /** Called for every line, within the budget; an exception fails the stream. */
  readonly onLine: (bytes: Buffer, at: number, end: number) => void
  /**
   * Called when any bytes arrive, and for every frame while the stream is paused: a stream whose reader is behind is not
   * silent.
   */
  readonly onBytes?: () => void
  readonly budget?: TurnBudget
  /** A longer frame is an error. @default 32 MiB */
  readonly maxFrameBytes?: number
  /** The stream is paused while more than this is queued. @default 512 KiB */
  readonly maxWaitingBytes?: number
}

const NEWLINE = 0x0a

/** Reads a stream to its end. Resolves if the server ended it between two frames; rejects otherwise. */
export async function readFrames(body: Readable, options: FrameOptions): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const splitter = new LineSplitter(body, options, resolve, reject)
    body.on('data', (chunk: Buffer) => splitter.push(chunk))
    body.once('end', () => splitter.end())
    body.once('error', (cause) => {
      splitter.fail(new TransportError('RESET', `the stream broke: ${messageOf(cause)}`, { cause }))
    })
    body.once('close', () => splitter.close())
  })
}

class LineSplitter implements Work {
  readonly #body: Readable
  readonly #options: FrameOptions
  readonly #budget: TurnBudget
  readonly #maxFrameBytes: number
  readonly #maxWaitingBytes: number
  readonly #resolve: () => void
  readonly #reject: (error: unknown) => void
  /** Chunks not yet processed; `#at` is the position in the first. */
  #chunks: Buffer[] = []
  #at = 0
  #waitingBytes = 0
  /** The start of a frame whose end has not arrived. */
  #torn: Buffer[] = []
  #tornBytes = 0
  #isRunning = false
  #isPaused = false
  #hasEnded = false
  #isClosed = false
  #isSettled = false

  constructor(body: Readable, options: FrameOptions, resolve: () => void, reject: (error: unknown) => void) {
    this.#body = body
    this.#options = options
    this.#budget = options.budget ?? processBudget
    this.#maxFrameBytes = options.maxFrameBytes ?? 32 * 2 ** 20
    this.#maxWaitingBytes = options.maxWaitingBytes ?? 512 * 1024
    this.#resolve = resolve
    this.#reject = reject
  }

  push(chunk: Buffer): void {
    if (this.#isSettled) return
    this.#options.onBytes?.()
    this.#chunks.push(chunk)
    this.#waitingBytes += chunk.length
    if (this.#waitingBytes > this.#maxWaitingBytes && !this.#isPaused) {
      this.#isPaused = true
      this.#body.pause()
    }
    this.#run()
  }

  end(): void {
    this.#hasEnded = true
    this.#run()
  }

  /** `close` without `end`: the connection was closed. */
  close(): void {
    this.#isClosed = true
    if (this.#hasEnded) this.#run()
    else this.fail(new TransportError('RESET', 'the stream was cut'))
  }

  fail(error: unknown): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#chunks = []
    this.#torn = []
    this.#body.destroy()
    this.#reject(error)
  }

  #run(): void {
    if (this.#isRunning || this.#isSettled) return
    this.#isRunning = true
    this.#budget.run(this)
  }

  step(): boolean {
    if (this.#isPaused) this.#options.onBytes?.()
    const isMore = this.#isSettled ? false : this.#line()
    if (!isMore) this.#isRunning = false
    return isMore
  }

  /** Delivers one line; false if there is none. */
  #line(): boolean {
    for (;;) {
      const chunk = this.#chunks[0]
      if (chunk === undefined) {
        this.#drained()
        return false
      }
      const newline = chunk.indexOf(NEWLINE, this.#at)
      if (newline < 0) {
        this.#keepTorn(chunk)
        if (this.#isSettled) return false
        continue
      }
      const from = this.#at
      this.#at = newline + 1
      try {
        if (this.#torn.length > 0) this.#joined(chunk, from, newline)
        else if (newline > from) this.#options.onLine(chunk, from, newline)
      } catch (error) {
        this.fail(error)
        return false
      }
      if (this.#at >= chunk.length) this.#dropChunk(chunk)
      return true
    }
  }

  #joined(chunk: Buffer, from: number, newline: number): void {
    const whole = Buffer.concat([...this.#torn, chunk.subarray(from, newline)])
    this.#torn = []
    this.#tornBytes = 0
    this.#options.onLine(whole, 0, whole.length)
  }

  #keepTorn(chunk: Buffer): void {
    const rest = this.#at === 0 ? chunk : chunk.subarray(this.#at)
    this.#torn.push(rest)
    this.#tornBytes += rest.length
    this.#dropChunk(chunk)
    if (this.#tornBytes > this.#maxFrameBytes) {
      this.fail(new DecodeError(`a watch frame is longer than ${this.#maxFrameBytes} bytes`))
    }
  }

  #dropChunk(chunk: Buffer): void {
    this.#chunks.shift()
    this.#at = 0
    this.#waitingBytes -= chunk.length
  }

  #drained(): void {
    if (this.#isPaused) {
      this.#isPaused = false
      this.#body.resume()
    }
    // An `error` may still follow `end`, but not `close`.
    if (!this.#hasEnded || !this.#isClosed) return
    if (this.#torn.some((part) => part.some((byte) => byte > 0x20))) {
      this.fail(new DecodeError('the stream ended inside a watch frame'))
      return
    }
    this.#isSettled = true
    this.#resolve()
  }
}
