/**
 * The HTTP requests of a reflector: paged lists, WatchList, plain watches and discovery.
 */
import { type CacheLimits, CacheLimitExceeded, SizeMeter } from './cache-limits.ts'
import {
  createDecoder,
  type Decoder,
  type Frame,
  ListParser,
  type DecoderOptions,
  type ListPage,
} from '../decode/decode.ts'
import { DecodeError, TransportError } from '../errors.ts'
import { readFrames } from '../decode/frames.ts'
import { collectionPath, keyOf, type Kind, kindName, type Obj } from '../object/object.ts'
import type { Source } from './reflector.ts'
import type { Rest, RestRequest } from '../client/rest.ts'
import { processBudget, type TurnBudget } from '../decode/decode-budget.ts'

export interface HttpSourceOptions<T extends Obj> extends DecoderOptions<T> {
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  readonly budget?: TurnBudget
  /** @default none: the server is trusted */
  readonly limits?: CacheLimits
}

/** Of the list of resources of a group. */
const MAX_DISCOVERY_BYTES = 2 ** 20
const LIST_DEADLINE_MS = 60_000
const OPEN_DEADLINE_MS = 30_000

/** A server that does not support PartialObjectMetadata sends complete objects; the decoder then reduces them. */
const PARTIAL = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json'
const PARTIAL_LIST = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json'

export function createHttpSource<T extends Obj>(
  rest: Rest,
  kind: Kind<T>,
  options: HttpSourceOptions<T> = {},
): Source<T> {
  const { labelSelector, fieldSelector, budget = processBudget } = options
  const meter = options.limits === undefined ? undefined : new SizeMeter(options.limits, kindName(kind))
  const decoder = meterDecoder(createDecoder(kind, options), meter)
  const path = collectionPath(kind, options.namespace)
  const isMetadata = options.projection === 'metadata'
  const accept = (type: string) => (isMetadata ? { headers: { accept: type } } : {})

  return {
    async list({ continueToken, limit }, each, signal) {
      if (continueToken === undefined) meter?.reset()
      meter?.addPage()
      const request: RestRequest = {
        method: 'GET',
        path,
        query: { limit: limit?.toString(), continue: continueToken, labelSelector, fieldSelector },
        ...accept(PARTIAL_LIST),
        deadlineMs: LIST_DEADLINE_MS,
        maxBodyBytes: options.limits?.maxBytes,
        signal,
      }
      const response = await rest.call(request).catch((error: unknown) => {
        if (meter !== undefined && error instanceof TransportError && error.code === 'BODY_TOO_LARGE')
          throw new CacheLimitExceeded(error.message)
        throw error
      })
      if (response.status !== 200) throw rest.errorOf(request, response)
      const parser = new ListParser(kind, response.body, decoder, each)
      return parseWithin(budget, parser, signal)
    },
    async watch({ version, timeoutSeconds }, each, onBytes, signal) {
      if (version === undefined) meter?.reset()
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
      // The response has arrived: the watch is open even if no events follow for a while.
      onBytes()
      try {
        await readFrames(stream.body, {
          budget,
          onBytes,
          // Twice the limit, because a frame is slightly longer than its object; the meter then checks the object
          // itself.
          ...(options.limits !== undefined && { maxFrameBytes: 2 * options.limits.maxObjectBytes }),
          onLine: (bytes, at, end) => {
            const frame = decoder.frame(bytes, at, end)
            if (frame.type === 'ERROR') throw rest.frameError('watch', frame.status)
            each(frame)
          },
        })
      } finally {
        stream.cancel()
      }
    },
    async isServed(signal) {
      const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`
      const request: RestRequest = { method: 'GET', path: root, signal, maxBodyBytes: MAX_DISCOVERY_BYTES }
      const response = await rest.call(request)
      if (response.status === 404) return false
      if (response.status !== 200) throw rest.errorOf(request, response)
      try {
        const found = JSON.parse(response.body.toString('utf8')) as { resources?: { name?: string }[] }
        return found.resources?.some(({ name }) => name === kind.plural) === true
      } catch {
        throw new DecodeError(`GET ${root}: the answer is not a resource list`)
      }
    },
  }
}

/** Counts what is decoded; an object above the limit is not parsed. */
function meterDecoder<T extends Obj>(decoder: Decoder<T>, meter: SizeMeter | undefined): Decoder<T> {
  if (meter === undefined) return decoder
  return {
    frame(bytes, at, end): Frame<T> {
      meter.checkObject(end - at)
      const frame = decoder.frame(bytes, at, end)
      if (frame.type === 'ADDED' || frame.type === 'MODIFIED') meter.putObject(keyOf(frame.object), end - at)
      else if (frame.type === 'DELETED') meter.removeObject(keyOf(frame.object))
      return frame
    },
    item(bytes, at, end) {
      meter.checkObject(end - at)
      const decoded = decoder.item(bytes, at, end)
      meter.putObject(keyOf(decoded.object), end - at)
      return decoded
    },
  }
}

/** Parses a page in slices of the turn's budget. */
async function parseWithin<T extends Obj>(
  budget: TurnBudget,
  parser: ListParser<T>,
  signal: AbortSignal,
): Promise<ListPage> {
  await new Promise<void>((resolve, reject) => {
    budget.run({
      step() {
        try {
          if (!signal.aborted && parser.next()) return true
          resolve()
        } catch (error) {
          reject(error)
        }
        return false
      },
    })
  })
  return parser.page
}
