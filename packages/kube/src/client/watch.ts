/**
 * One raw watch as an async generator, for callers that need the unprocessed events. Informers also resume, relist and
 * cache.
 */
import type { WatchEvent, WatchOptions } from './client.ts'
import { createDecoder } from '../decode/decode.ts'
import { readFrames } from '../decode/frames.ts'
import { apiVersionOf, collectionPath, type Kind, type Obj } from '../object/object.ts'
import type { Rest } from './rest.ts'

export async function* watchEvents<T extends Obj>(
  rest: Rest,
  kind: Kind<T>,
  options: WatchOptions,
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  const { namespace, labelSelector, fieldSelector, resourceVersion = '0', signal } = options
  const path = collectionPath(kind, namespace)
  const query = { watch: 'true', allowWatchBookmarks: 'true', labelSelector, fieldSelector, resourceVersion }
  const stream = await rest.stream({ method: 'GET', path, query, ...(signal !== undefined && { signal }) })
  const decoder = createDecoder(kind, { keepAll: true })
  const waiting: WatchEvent<T>[] = []
  let wake: () => void = () => undefined
  let hasEnded = false
  let failure: unknown
  readFrames(stream.body, {
    onLine(bytes, at, end) {
      const frame = decoder.frame(bytes, at, end)
      if (frame.type === 'ERROR') throw rest.frameError(`watch of ${kind.plural}`, frame.status)
      waiting.push(
        frame.type === 'BOOKMARK' ? bookmark(kind, frame.resourceVersion) : { type: frame.type, object: frame.object },
      )
      // The consumer is slower than the server: apply back-pressure.
      if (waiting.length >= MAX_WAITING) stream.body.pause()
      wake()
    },
  })
    .catch((error: unknown) => (failure = error))
    .finally(() => {
      hasEnded = true
      wake()
    })
  try {
    for (;;) {
      const events = waiting.splice(0)
      yield* events
      if (waiting.length > 0) continue
      if (failure !== undefined && signal?.aborted !== true) throw failure
      if (hasEnded) return
      stream.body.resume()
      await new Promise<void>((resolve) => (wake = resolve))
    }
  } finally {
    stream.cancel()
  }
}

const MAX_WAITING = 1000

function bookmark<T extends Obj>(kind: Kind<T>, resourceVersion: string): WatchEvent<T> {
  return {
    type: 'BOOKMARK',
    object: { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: { resourceVersion } } as T,
  }
}
