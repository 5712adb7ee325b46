/**
 * The stream: one channel for all readers with the same rights. Each difference is serialised once for a channel, and a reader
 * takes what it has not got yet as fast as it reads.
 *
 * Guarantees: a reader gets the differences that follow the version that it has, or a snapshot; one that does not read costs its
 * place in the channel and a piece of a snapshot, and is closed after 30 s; nothing waits for a reader.
 */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Beat, Difference } from '../api/stream.ts'

/** Differences are kept for readers that are behind: at most this many, and this many octets. */
const MAX_KEPT = 256
const MAX_KEPT_OCTETS = 2 * 1024 * 1024
const BEAT_MS = 5_000
/** A reader that takes nothing for so long is gone. */
const STALLED_MS = 30_000

export interface ChannelSource {
  /** The state of the readers' rights in pieces, and its version. */
  snapshot(): { readonly version: string; readonly pieces: Iterable<string> }
  beat(): Beat
}

interface Kept {
  readonly base: string
  readonly version: string
  readonly text: Buffer
}

export class Channel {
  readonly #source: ChannelSource
  readonly #readers = new Set<() => void>()
  #kept: Kept[] = []
  #octets = 0
  #version: string
  readonly #stalledMs: number

  constructor(source: ChannelSource, version: string, stalledMs = STALLED_MS) {
    this.#source = source
    this.#version = version
    this.#stalledMs = stalledMs
  }

  get readers(): number {
    return this.#readers.size
  }

  publish(difference: Difference): void {
    const { version, base } = difference
    const text = Buffer.from(`id: ${version}\nevent: difference\ndata: ${JSON.stringify(difference)}\n\n`)
    this.#kept.push({ base, version, text })
    this.#octets += text.length
    while (this.#kept.length > MAX_KEPT || this.#octets > MAX_KEPT_OCTETS)
      this.#octets -= this.#kept.shift()!.text.length
    this.#version = version
    this.wake()
  }

  /** Something else is to be said: how old the data is. */
  wake(): void {
    for (const wake of this.#readers) wake()
  }

  /** Serves one reader until it goes, or `end` aborts. `lastId`: what it has; undefined: nothing. */
  async serve(response: ServerResponse, lastId: string | undefined, end: AbortSignal): Promise<void> {
    const gone = new AbortController()
    const stop = AbortSignal.any([end, gone.signal])
    response.once('close', () => gone.abort())
    response.on('error', () => gone.abort())
    let version = lastId
    let beatAt = 0
    let wasCurrent: boolean | undefined
    let wake: () => void = () => undefined
    const notify = (): void => wake()
    const give = async (text: string | Buffer): Promise<boolean> => send(response, text, stop, this.#stalledMs)
    this.#readers.add(notify)
    try {
      while (!stop.aborted) {
        const woken = new Promise<void>((resolve) => (wake = resolve))
        const texts = version === undefined ? undefined : this.#after(version)
        if (texts === undefined) {
          const snapshot = this.#source.snapshot()
          for (const piece of framed(snapshot)) if (!(await give(piece))) return
          version = snapshot.version
          // What was published meanwhile follows it.
          continue
        }
        for (const { text, version: sent } of texts) {
          if (!(await give(text))) return
          version = sent
        }
        const beat = this.#source.beat()
        if (performance.now() >= beatAt || beat.data.isCurrent !== wasCurrent) {
          wasCurrent = beat.data.isCurrent
          beatAt = performance.now() + BEAT_MS
          if (!(await give(`event: beat\ndata: ${JSON.stringify(beat)}\n\n`))) return
        }
        if (version !== this.#version) continue
        await untilWoken(woken, Math.max(1, beatAt - performance.now()), stop)
      }
    } finally {
      this.#readers.delete(notify)
    }
  }

  /** Undefined: the version is not known any more, or of another process. */
  #after(version: string): readonly Kept[] | undefined {
    if (version === this.#version) return []
    const at = this.#kept.findIndex(({ base }) => base === version)
    return at < 0 ? undefined : this.#kept.slice(at)
  }
}

function* framed({
  version,
  pieces,
}: {
  readonly version: string
  readonly pieces: Iterable<string>
}): Generator<string> {
  yield `id: ${version}\nevent: snapshot\ndata: `
  yield* pieces
  yield '\n\n'
}

/** Waits until the reader has room. False: it is gone, or was closed because it does not read. */
export async function send(
  response: ServerResponse,
  text: string | Buffer,
  stop: AbortSignal,
  stalledMs = STALLED_MS,
): Promise<boolean> {
  if (stop.aborted || response.destroyed) return false
  if (response.write(text)) return true
  const late = AbortSignal.any([stop, AbortSignal.timeout(stalledMs)])
  try {
    await once(response, 'drain', { signal: late })
    return true
  } catch {
    // Neither does it get what is buffered.
    response.destroy()
    return false
  }
}

async function untilWoken(woken: Promise<void>, ms: number, stop: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  let onStop: () => void = () => undefined
  const passed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
    onStop = resolve
    stop.addEventListener('abort', onStop, { once: true })
  })
  await Promise.race([woken, passed])
  clearTimeout(timer)
  stop.removeEventListener('abort', onStop)
}
