/**
 * The nodes of one cluster, as a reconcile reads them: through the cache, or past it.
 *
 * Place in the flow: the controller engages a registered cluster in the manager's fleet, which owns its connections, and
 * watches its nodes here. How nodes are cached (projection, limits) is set once at the manager.
 * Guarantees: nothing but nodes is read. A cluster that cannot be read is `unreadable`, and one that was not read yet is
 * `syncing`; neither is the same as having no nodes.
 */
import { CacheLimitExceeded, type Clock, type Cluster, messageOf, Node, type WatchFailure } from '@seamark/kube'
import type { Immutable } from '@seamark/kube/object'
import type { Reason } from '../reasons.ts'
import { FRESH_LIST, NODE_CACHE_LIMITS } from './limits.ts'
import { trimNode } from './node-fact.ts'

export type NodeReading =
  | { readonly state: 'known'; readonly nodes: readonly Immutable<Node>[] }
  | { readonly state: 'syncing' }
  | Unreadable

interface Unreadable {
  readonly state: 'unreadable'
  readonly reason: Extract<Reason, 'ClusterUnreachable' | 'ClusterOverLimit'>
  /** The message of the server or the transport. */
  readonly message: string
}

export interface Member {
  /** As the cache has them now. */
  read(): NodeReading
  /** A consistent list past the cache. Never rejects: a list that fails is `unreadable`. */
  readAfresh(signal: AbortSignal): Promise<NodeReading>
  /** Ends the subscription; the cluster stays open. */
  close(): void
}

/** A watch that breaks is opened again within seconds; only a cluster that fails for longer is reported. */
const UNREACHABLE_AFTER_MS = 10_000

/** `onChange` is called for every change of a node, and once the nodes are read for the first time. */
export function watchNodes(cluster: Cluster, clock: Clock, onChange: () => void): Member {
  const informer = cluster.informers.informer(Node)
  const stop = new AbortController()
  const unsubscribe = informer.subscribe(onChange)
  void informer.synced(stop.signal).then(onChange, () => undefined)
  /** Until the cluster is live again: between two attempts it neither answers nor waits. */
  let failing: { readonly sinceMs: number; readonly failure: WatchFailure | undefined } | undefined
  return {
    read() {
      if (informer.state === 'live') {
        failing = undefined
        return { state: 'known', nodes: cluster.informers.list(Node) }
      }
      const nowMs = clock.monotonic()
      if (informer.state === 'backoff')
        failing = { sinceMs: failing?.sinceMs ?? nowMs, failure: informer.failure ?? failing?.failure }
      if (failing === undefined) return { state: 'syncing' }
      const { failure, sinceMs } = failing
      if (failure?.reason === 'over-limit') return unreadable('ClusterOverLimit', failure.message)
      if (nowMs - sinceMs < UNREACHABLE_AFTER_MS) return { state: 'syncing' }
      return unreadable('ClusterUnreachable', failure?.message ?? 'its watch ends again and again')
    },
    async readAfresh(signal) {
      try {
        return { state: 'known', nodes: await listNodes(cluster, signal) }
      } catch (error) {
        signal.throwIfAborted()
        const reason = error instanceof CacheLimitExceeded ? 'ClusterOverLimit' : 'ClusterUnreachable'
        return unreadable(reason, messageOf(error))
      }
    },
    close() {
      unsubscribe()
      stop.abort()
    },
  }
}

/** In pages: an answer is parsed in one piece, and a large one would block every other cluster meanwhile. */
async function listNodes({ client, name }: Cluster, signal: AbortSignal): Promise<Node[]> {
  const { pageSize, maxPageBytes, timeoutMs } = FRESH_LIST
  const { maxObjects } = NODE_CACHE_LIMITS
  const nodes: Node[] = []
  let token: string | undefined
  for (let pages = 1; ; pages++) {
    const page = await client.list(Node, {
      limit: pageSize,
      maxBodyBytes: maxPageBytes,
      deadlineMs: timeoutMs,
      signal,
      ...(token !== undefined && { continue: token }),
    })
    if (!Array.isArray(page.items)) throw new TypeError(`cluster ${name}: the list of nodes has no items`)
    for (const item of page.items) nodes.push(trimNode(item))
    token = page.metadata.continue === '' ? undefined : page.metadata.continue
    if (token === undefined) return nodes
    if (nodes.length > maxObjects || pages > maxObjects / pageSize)
      throw new CacheLimitExceeded(`Node: a list of more than ${maxObjects} objects`)
  }
}

function unreadable(reason: Unreadable['reason'], message: string): NodeReading {
  return { state: 'unreadable', reason, message }
}
