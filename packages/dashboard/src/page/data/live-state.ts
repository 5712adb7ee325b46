/**
 * The state as the stream gives it. One reader per page: it resumes with Last-Event-ID, takes a snapshot where it cannot, and
 * tries again for as long as the page is open. What was read stays on the page meanwhile, and the page says how old it is.
 */
import { signal } from '@preact/signals'
import type { DataAge, State } from '../../api/state.ts'
import { applyDifference, type Beat, type Difference } from '../../api/stream.ts'
import { setManagerTime } from './clock.ts'
import { readEvents, type StreamEvent } from './event-stream.ts'
import { parseJson } from './json.ts'
import { askForToken, request, RequestError, tokenWanted } from './requests.ts'

export type Connection =
  | { readonly kind: 'open' }
  | { readonly kind: 'connecting' }
  | { readonly kind: 'lost'; readonly sinceMs: number; readonly message: string }

export const state = signal<State | undefined>(undefined)
/** Of the last beat or snapshot. */
export const dataAge = signal<DataAge | undefined>(undefined)
export const connection = signal<Connection>({ kind: 'connecting' })

/** The manager sends a beat every 5 s: a connection that is silent for three of them is cut. */
const SILENCE_MS = 15_000
const FIRST_PAUSE_MS = 300
const LAST_PAUSE_MS = 5000

export async function followState(): Promise<never> {
  let pauseMs = FIRST_PAUSE_MS
  for (;;) {
    const opened = await readOnce()
    if (opened) pauseMs = FIRST_PAUSE_MS
    if (tokenWanted.value !== undefined) {
      await tokenGiven()
      // Another token may read other things: nothing that the former one gave is shown.
      state.value = undefined
      connection.value = { kind: 'connecting' }
      continue
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
    pauseMs = Math.min(pauseMs * 2, LAST_PAUSE_MS)
  }
}

/** Whether the manager answered. */
async function readOnce(): Promise<boolean> {
  const stop = new AbortController()
  let silence: ReturnType<typeof setTimeout> | undefined
  const heard = (): void => {
    clearTimeout(silence)
    silence = setTimeout(() => stop.abort(new Error('the manager has sent nothing for 15 s')), SILENCE_MS)
  }
  let isOpen = false
  try {
    heard()
    const known = state.peek()?.version
    const response = await request('/api/v1/stream', {
      signal: stop.signal,
      headers: { accept: 'text/event-stream', ...(known !== undefined && { 'last-event-id': known }) },
    })
    if (response.body === null) throw new Error('the answer of the manager has no body')
    for await (const event of readEvents(response.body)) {
      heard()
      if (!take(event)) return isOpen
      isOpen = true
      if (connection.peek().kind !== 'open') connection.value = { kind: 'open' }
    }
    lose('the manager closed the connection')
  } catch (error) {
    lose(messageOf(stop.signal.aborted ? stop.signal.reason : error))
  } finally {
    clearTimeout(silence)
    stop.abort()
  }
  return isOpen
}

/** False: nothing more comes from this connection that could be used. */
function take({ event, data }: StreamEvent): boolean {
  switch (event) {
    case 'snapshot': {
      const next = parseJson(data) as State
      state.value = next
      setAge(next.manager.data)
      return true
    }
    case 'difference': {
      const before = state.peek()
      const next = before && applyDifference(before, parseJson(data) as Difference)
      state.value = next
      return next !== undefined
    }
    case 'beat': {
      const beat = parseJson(data) as Beat
      setManagerTime(beat.at)
      dataAge.value = beat.data
      return true
    }
    case 'end': {
      askForToken((parseJson(data) as { message: string }).message)
      return false
    }
    default:
      return true
  }
}

/** A snapshot does not say what time it is; while its data is current, it is the time at which the data was read. */
function setAge(data: DataAge): void {
  if (dataAge.peek() === undefined && data.isCurrent) setManagerTime(data.readAt)
  dataAge.value = data
}

function lose(message: string): void {
  const before = connection.peek()
  const sinceMs = before.kind === 'lost' ? before.sinceMs : Date.now()
  connection.value = { kind: 'lost', sinceMs, message }
}

function messageOf(error: unknown): string {
  if (error instanceof RequestError) return error.message
  // What browsers say about a refused connection is "Failed to fetch".
  return error instanceof TypeError
    ? 'the manager does not answer'
    : error instanceof Error
      ? error.message
      : String(error)
}

async function tokenGiven(): Promise<void> {
  await new Promise<void>((resolve) => {
    const stop = tokenWanted.subscribe((wanted) => {
      if (wanted !== undefined) return
      resolve()
      queueMicrotask(() => stop())
    })
  })
}
