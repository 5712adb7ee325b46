/**
 * Which leaves the syncer of a member looks at, from the cache of the hub: those that change, and all of its own when it
 * starts and when the member can be reached again.
 *
 * Place in the flow: triggers of the syncer. One subscription serves all members: one for each would call every member for
 * every leaf of the fleet.
 */
import { type Index, type Manager, NotSynced } from '@seamark/kube'
import { type Immutable, keyOf } from '@seamark/kube/object'
import { LeafIngress } from '../../api/leaf-ingress.ts'

type Mark = (keys: readonly string[]) => void

export class LeafTriggers {
  readonly #manager: Manager
  readonly #leavesByCluster: Index<LeafIngress>
  /** By member. */
  readonly #marks = new Map<string, Mark>()
  #unsubscribe: (() => void) | undefined

  constructor(manager: Manager, leavesByCluster: Index<LeafIngress>) {
    this.#manager = manager
    this.#leavesByCluster = leavesByCluster
  }

  /** Until the returned function is called. */
  start(mark: Mark, cluster: string): () => void {
    this.#marks.set(cluster, mark)
    this.#unsubscribe ??= this.#subscribe()
    this.#markAll(cluster)
    return () => {
      if (this.#marks.get(cluster) === mark) this.#marks.delete(cluster)
      if (this.#marks.size > 0) return
      this.#unsubscribe?.()
      this.#unsubscribe = undefined
    }
  }

  mark(leaf: Immutable<LeafIngress>): void {
    this.#marks.get(leaf.spec.cluster)?.([keyOf(leaf)])
  }

  /** The same key at every member. */
  markEach(key: string): void {
    for (const mark of this.#marks.values()) mark([key])
  }

  #subscribe(): () => void {
    const informer = this.#manager.cluster.informers.informer(LeafIngress)
    const unsubscribe = informer.subscribe((change) => this.mark(change.object))
    const unsubscribeFleet = this.#manager.fleet.subscribe(({ type, member }) => {
      if (type === 'reachability' && member.reachability.type === 'reachable') this.#markAll(member.name)
    })
    return () => {
      unsubscribe()
      unsubscribeFleet()
    }
  }

  #markAll(cluster: string): void {
    try {
      this.#marks.get(cluster)?.(this.#manager.cluster.informers.by(this.#leavesByCluster, cluster).map(keyOf))
    } catch (error) {
      // The cache of the hub is not filled yet: the subscription reports every leaf then.
      if (!(error instanceof NotSynced)) throw error
    }
  }
}
