/**
 * The server's side of a reflector over HTTP: paged lists, WatchList and plain watches, discovery.
 */
import { createDecoder, ListWalker, type DecoderOptions, type ListPage } from './decode.ts'
import { DecodeError } from '../errors.ts'
import { readFrames } from './frames.ts'
import { collectionPath, type Kind, type Obj } from '../object/object.ts'
import type { Source } from './reflector.ts'
import { errorOf, type Rest, type RestRequest } from '../client/rest.ts'
import { processBudget, type TurnBudget } from './decode-budget.ts'

export interface HttpSourceOptions<T extends Obj> extends DecoderOptions<T> {
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  readonly budget?: TurnBudget
}

const LIST_DEADLINE_MS = 60_000
const OPEN_DEADLINE_MS = 30_000

/** A server that cannot reduce objects to metadata sends them whole; the decoder reduces them then. */
const PARTIAL = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json'
const PARTIAL_LIST = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json'

export function createHttpSource<T extends Obj>(
  rest: Rest,
  kind: Kind<T>,
  options: HttpSourceOptions<T> = {},
): Source<T> {
  const { labelSelector, fieldSelector, budget = processBudget } = options
  const decoder = createDecoder(kind, options)
  const path = collectionPath(kind, options.namespace)
  const isMetadata = options.projection === 'metadata'
  const accept = (type: string) => (isMetadata ? { headers: { accept: type } } : {})

  return {
    async list({ continueToken, limit }, each, signal) {
      const request: RestRequest = {
        method: 'GET',
        path,
        query: { limit: limit?.toString(), continue: continueToken, labelSelector, fieldSelector },
        ...accept(PARTIAL_LIST),
        deadlineMs: LIST_DEADLINE_MS,
        signal,
      }
      const response = await rest.call(request)
      if (response.status !== 200) throw errorOf(request, response)
      const walker = new ListWalker(kind, response.body, decoder, each)
      return walkWithin(budget, walker, signal)
    },
    async watch({ version, timeoutSeconds }, each, onBytes, signal) {
      const stream = await rest.stream({
        method: 'GET',
        path,
        query: {
          watch: 'true',
          allowWatchBookmarks: 'true',
          timeoutSeconds: String(timeoutSeconds),
          labelSelector,
          fieldSelector,
          ...(version === undefined
            ? { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' }
            : { resourceVersion: version }),
        },
        ...accept(PARTIAL),
        deadlineMs: OPEN_DEADLINE_MS,
        signal,
      })
      // The server answers: the watch is open, also when nothing happens for a while.
      onBytes()
      try {
        await readFrames(stream.body, {
          budget,
          onBytes,
          onLine: (bytes, at, end) => each(decoder.frame(bytes, at, end)),
        })
      } finally {
        stream.cancel()
      }
    },
    async isServed(signal) {
      const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`
      const request: RestRequest = { method: 'GET', path: root, signal }
      const response = await rest.call(request)
      if (response.status === 404) return false
      if (response.status !== 200) throw errorOf(request, response)
      try {
        const found = JSON.parse(response.body.toString('utf8')) as { resources?: { name?: string }[] }
        return found.resources?.some(({ name }) => name === kind.plural) === true
      } catch (cause) {
        throw new DecodeError(`GET ${root}: the answer is not a resource list`, { cause })
      }
    },
  }
}

/** Walks a page in slices of the turn's budget. */
async function walkWithin<T extends Obj>(
  budget: TurnBudget,
  walker: ListWalker<T>,
  signal: AbortSignal,
): Promise<ListPage> {
  await new Promise<void>((resolve, reject) => {
    budget.run({
      step() {
        try {
          if (!signal.aborted && walker.next()) return true
          resolve()
        } catch (error) {
          reject(error)
        }
        return false
      },
    })
  })
  return walker.page
}
