/**
 * Writes statuses and addresses, on the leader only. The build hands over the newest decision per object (latest wins) and
 * never waits; writes are few at a time, read the cached object, and are left out when nothing would change.
 *
 * Losing the lease ends this writer and nothing else: the data plane of the replica continues to serve, and the replica may lead again.
 * Whoever begins to lead writes every status anew, so that none is missing from the time before.
 */
import {
  Conflict,
  createQueue,
  Ingress,
  type Manager,
  messageOf,
  NotFound,
  type RunnableContext,
  untilAborted,
  type Writer,
} from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import { BackendTLSPolicy, Gateway, GatewayClass, GRPCRoute, HTTPRoute, TLSRoute } from '@seamark/kube/gateway-api'
import { apiVersionOf, keyOf, type Key, type Kind, type Obj } from '@seamark/kube/object'
import type { Finding } from '../draft/draft.ts'
import type { StatusIntent } from '../draft/status-intent.ts'
import { GlobalIngress } from '../sources/global-ingress.ts'
import type { StatusBoard } from './status-board.ts'
import { mergeStatus } from './status-merge.ts'

export const FIELD_MANAGER = 'seamark-gateway'

const KINDS: Readonly<Record<StatusIntent['kind'] | Finding['origin']['kind'], Kind>> = {
  Ingress,
  HTTPProxy,
  GatewayClass,
  Gateway,
  HTTPRoute,
  GRPCRoute,
  TLSRoute,
  BackendTLSPolicy,
  GlobalIngress,
}

/** Several instances, each with a Gateway of its own, share the statuses of these: one may replace the entry of another. */
const SHARED_KINDS: readonly Kind[] = [HTTPRoute, GRPCRoute, TLSRoute, BackendTLSPolicy]

const CONCURRENCY = 8

export interface Pause {
  readonly isPaused: boolean
  subscribe(listener: (isPaused: boolean) => void): () => void
}

export interface StatusWriterOptions {
  readonly controllerName: string
  /** The one Gateway of this instance; entries about others belong to other instances. */
  readonly gateway?: Key
  /** What was not written meanwhile is written when it ends. */
  readonly pause?: Pause
}

export function addStatusWriter(mgr: Manager, board: StatusBoard, options: StatusWriterOptions): void {
  mgr.add(
    'gateway-status',
    async (context) =>
      write(context, mgr, board, options, context, (about, finding) => {
        context.event(about, 'Warning', finding.reason, finding.message)
      }),
    { leader: true },
  )
}

async function write(
  context: Pick<RunnableContext, 'get' | 'clock' | 'log' | 'signal'>,
  mgr: Manager,
  board: StatusBoard,
  { controllerName, gateway, pause }: StatusWriterOptions,
  writer: Pick<Writer, 'status'>,
  report: (about: Obj, finding: Finding) => void,
): Promise<void> {
  const { clock, log, signal } = context
  const reported = new Set<string>()
  let running = 0
  const queue = createQueue({ clock, backoffBaseMs: 200, backoffLimitMs: 60_000, onReady: () => pump() })

  const writeOne = async (id: string): Promise<void> => {
    const intent = board.desired.intents.get(id)
    if (intent === undefined || pause?.isPaused === true) return
    const kind = KINDS[intent.kind]
    const object = context.get(kind, intent.key) as (Obj & { status?: Record<string, unknown> }) | undefined
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) return
    // The decision is about an older version; the next build decides about this one.
    if (intent.uid !== undefined && object.metadata.uid !== intent.uid) return
    if (intent.generation !== undefined && object.metadata.generation !== intent.generation) return
    const { addresses } = board
    const status = mergeStatus({
      intent,
      current: object.status,
      addresses,
      controllerName,
      ...(gateway !== undefined && { gateway }),
      nowMs: clock.now(),
    })
    if (Object.keys(status).length === 0 && object.status === undefined) return
    const about = { ...object, apiVersion: apiVersionOf(kind), kind: kind.kind }
    await writer.status(about, status)
  }

  const pump = (): void => {
    while (running < CONCURRENCY && !signal.aborted) {
      const id = queue.take()
      if (id === undefined) return
      running++
      void (async () => {
        try {
          await writeOne(id)
          queue.forget(id)
        } catch (error) {
          if (!signal.aborted && !(error instanceof NotFound)) {
            if (!(error instanceof Conflict)) log.warn({ object: id, error: messageOf(error) }, 'status not written')
            queue.retry(id)
          }
        } finally {
          queue.done(id)
          running--
          pump()
        }
      })()
    }
  }

  const reportFindings = (): void => {
    if (pause?.isPaused === true) return
    const current = new Set<string>()
    for (const finding of board.desired.findings) {
      const id = JSON.stringify(finding)
      if (reported.has(id)) {
        current.add(id)
        continue
      }
      const { kind: kindName, namespace, name } = finding.origin
      const kind = KINDS[kindName]
      const object = context.get(kind, `${namespace}/${name}`) as Obj | undefined
      if (object === undefined) continue
      report({ ...object, apiVersion: apiVersionOf(kind), kind: kind.kind }, finding)
      current.add(id)
    }
    reported.clear()
    for (const id of current) reported.add(id)
  }

  const writeAll = (keys: Iterable<string>): void => {
    for (const key of keys) queue.add(key)
    reportFindings()
    pump()
  }
  const unfollow = board.follow(writeAll)
  const unpause = pause?.subscribe((isPaused) => {
    if (!isPaused) writeAll(board.desired.intents.keys())
  })
  const { informers } = mgr.cluster
  const unsubscribes = (gateway === undefined ? [] : SHARED_KINDS).map((kind) =>
    informers.informer(kind).subscribe(({ type, object }) => {
      if (type !== 'updated') return
      // A status that is still right is not written again.
      queue.add(`${kind.kind} ${keyOf(object)}`)
      pump()
    }),
  )
  try {
    await untilAborted(signal)
  } finally {
    for (const unsubscribe of unsubscribes) unsubscribe()
    unpause?.()
    unfollow()
    queue.close()
  }
}
