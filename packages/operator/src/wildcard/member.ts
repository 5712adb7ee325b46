/**
 * One registered cluster: the connection its kubeconfig gives and a watch of its nodes.
 *
 * Guarantees: nothing but nodes is read; `stop` ends the watch and closes the connections. A cluster that cannot be reached
 * is `unreachable`, which is not the same as having no nodes: its targets stay.
 */
import {
  type connect,
  type ConnectOptions,
  type Immutable,
  type Informer,
  messageOf,
  Node,
  parseRemoteConfig,
  type RemoteConfigOptions,
} from '@seamark/kube'
import type { Cluster } from '@seamark/kube'

export interface Member {
  /** Undefined while it has never been read, or cannot be read now. */
  nodes(): readonly Immutable<Node>[] | undefined
  /** A consistent list past the cache: what the server has right now. Rejects when it cannot be read. */
  listAfresh(signal: AbortSignal): Promise<readonly Node[]>
  stop(): Promise<void>
}

export type Joined = { readonly ok: true; readonly member: Member } | { readonly ok: false; readonly message: string }

export interface JoinOptions extends RemoteConfigOptions, Pick<ConnectOptions, 'clock' | 'log'> {
  readonly name: string
  readonly onChange: () => void
  readonly connect: typeof connect
}

/** `kubeconfig`: text out of a Secret, which anybody who may write Secrets can choose: only plain credentials are taken. */
export function joinCluster(
  kubeconfig: string,
  { name, onChange, clock, log, connect: reach, ...remote }: JoinOptions,
): Joined {
  let cluster: Cluster
  try {
    const config = parseRemoteConfig(kubeconfig, remote)
    cluster = reach(config, { name, ...(clock !== undefined && { clock }), ...(log !== undefined && { log }) })
  } catch (error) {
    return { ok: false, message: messageOf(error) }
  }
  return { ok: true, member: watchNodes(cluster, onChange, async () => cluster.close()) }
}

/** `close` releases what belongs to the member alone; the local cluster stays open. */
export function watchNodes(
  cluster: Cluster,
  onChange: () => void,
  close: () => Promise<void>,
  isStarted = false,
): Member {
  const informer: Informer<Node> = cluster.informers.informer(Node, { projection: trimNode })
  const unsubscribe = informer.subscribe(onChange)
  const stop = new AbortController()
  const running = isStarted ? Promise.resolve() : cluster.informers.start(stop.signal)
  void informer.synced(stop.signal).then(onChange, () => undefined)
  return {
    nodes: () => (informer.state === 'live' ? cluster.informers.list(Node) : undefined),
    listAfresh: async (signal) => (await cluster.client.list(Node, { signal })).items,
    async stop() {
      unsubscribe()
      stop.abort()
      await running
      await close()
    },
  }
}

/** Heartbeats change images and capacity all the time; only what a decision reads is kept, so only that wakes anybody. */
function trimNode(node: Node): Node {
  const { name, uid, resourceVersion, labels, deletionTimestamp } = node.metadata
  return {
    metadata: {
      ...(name !== undefined && { name }),
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
      ...(labels !== undefined && { labels }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    },
    ...(node.spec?.unschedulable === true && { spec: { unschedulable: true } }),
    status: {
      ...(node.status?.addresses !== undefined && { addresses: node.status.addresses }),
      conditions: (node.status?.conditions ?? [])
        .filter((condition) => condition.type === 'Ready')
        .map(({ type, status }) => ({ type, status })),
    },
  }
}
