/**
 * Which roots to reconcile when something changes on a member: a leaf, a Service, its endpoints, a Gateway, or the contact
 * with the whole cluster.
 */
import { EndpointSlice, type Immutable, type Index, type Manager, type Obj, Service } from '@seamark/kube'
import { Gateway } from '@seamark/kube/gateway-api'
import { keyOf } from '@seamark/kube/object'
import { LeafIngress } from '../../api/leaf-ingress.ts'
import { BACKEND_CACHE_LIMITS, LEAF_CACHE_LIMITS } from '../members/limits.ts'
import { SERVICE_NAME_LABEL } from '../members/ready-endpoints.ts'
import type { SyncResults } from '../members/sync-results.ts'
import { LEAF_ANNOTATION, ROOT_ANNOTATION, ROOT_KIND_LABEL } from '../names.ts'
import { MANAGED_LABEL } from '../../hosts/root.ts'
import type { RootKind } from '../roots/root-kind.ts'
import { ROOT_KINDS } from '../roots/root-kinds.ts'

type Mark = (keys: readonly string[], how?: { readonly afterMs?: number }) => void

export interface RootTriggersOptions {
  readonly results: SyncResults
  readonly leavesByCluster: Index<LeafIngress>
  /** How long changes of leaves are collected. */
  readonly batchMs: () => number
}

export class RootTriggers {
  readonly #manager: Manager
  readonly #options: RootTriggersOptions
  readonly #marks = new Map<RootKind, Mark>()
  readonly #backends = new Map<RootKind, ReturnType<Manager['index']>>()

  constructor(manager: Manager, options: RootTriggersOptions) {
    this.#manager = manager
    this.#options = options
    for (const kind of ROOT_KINDS)
      this.#backends.set(
        kind,
        manager.index<Obj>(kind.kind, 'fleetBackend', (object) =>
          kind.backendsOf(object).map((service) => `${object.metadata.namespace}/${service}`),
        ),
      )
    options.results.onChange = (leaf) => this.#markLeaf(manager.cluster.informers.get(LeafIngress, leaf))
    const { fleet } = manager
    for (const kind of ROOT_KINDS)
      fleet.watch<Obj>(
        kind.kind,
        ({ object: { metadata } }) =>
          this.#markLeaf(this.#findLeaf(`${metadata.namespace}/${metadata.annotations?.[LEAF_ANNOTATION] ?? ''}`)),
        { labelSelector: `${MANAGED_LABEL}=true`, limits: LEAF_CACHE_LIMITS },
      )
    fleet.watch(
      Service,
      ({ object }) => this.#markBackend(object.metadata, object.metadata.name ?? '', options.batchMs()),
      { projection: 'metadata', limits: BACKEND_CACHE_LIMITS },
    )
    fleet.watch(EndpointSlice, (change) => {
      const { metadata } = change.object
      // Lost readiness withdraws a leaf: it is not collected, except for the slices of a member that joins.
      const afterMs = change.type === 'added' && change.initial ? options.batchMs() : 0
      this.#markBackend(metadata, metadata.labels?.[SERVICE_NAME_LABEL] ?? '', afterMs)
    })
    fleet.watch(Gateway, ({ object }) => this.#markGateway(object.metadata), { limits: BACKEND_CACHE_LIMITS })
    fleet.subscribe(({ member }) => this.#markCluster(member.name))
  }

  start(kind: RootKind, mark: Mark): () => void {
    this.#marks.set(kind, mark)
    return () => this.#marks.delete(kind)
  }

  byBackend(
    kind: RootKind,
    { namespace, name }: { readonly namespace?: string; readonly name?: string },
    cache: Pick<Manager['cluster']['informers'], 'by'>,
  ): string[] {
    const index = this.#backends.get(kind)
    return index === undefined ? [] : cache.by(index, `${namespace}/${name}`).map(keyOf)
  }

  #markBackend({ namespace }: { readonly namespace?: string }, service: string, afterMs: number): void {
    const backend = { ...(namespace !== undefined && { namespace }), name: service }
    for (const [kind, mark] of this.#marks)
      mark(this.byBackend(kind, backend, this.#manager.cluster.informers), { afterMs })
  }

  /** Few: only HTTPRoutes depend on Gateways of members. */
  #markGateway(_metadata: unknown): void {
    for (const [kind, mark] of this.#marks)
      if (kind.kind.kind === 'HTTPRoute') mark(this.#manager.cluster.informers.list(kind.kind).map(keyOf))
  }

  #markCluster(cluster: string): void {
    for (const leaf of this.#manager.cluster.informers.by(this.#options.leavesByCluster, cluster)) this.#markLeaf(leaf)
  }

  #findLeaf(key: string): Immutable<LeafIngress> | undefined {
    return this.#manager.cluster.informers.get(LeafIngress, key)
  }

  #markLeaf(leaf: Immutable<LeafIngress> | undefined): void {
    if (leaf === undefined) return
    const kindName = leaf.metadata.labels?.[ROOT_KIND_LABEL]
    const kind = ROOT_KINDS.find((each) => each.kind.kind === kindName)
    const mark = kind === undefined ? undefined : this.#marks.get(kind)
    const root = `${leaf.metadata.namespace}/${leaf.metadata.annotations?.[ROOT_ANNOTATION] ?? ''}`
    mark?.([root], { afterMs: this.#options.batchMs() })
  }
}
