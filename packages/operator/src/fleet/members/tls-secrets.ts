/**
 * Copies TLS Secrets of the hub to members, beside the leaves that name them. Only with `fleet.tlsSecrets`, and only Secrets
 * of type kubernetes.io/tls with the label `seamark.io/sync: "true"`: their owner decides that the key leaves the hub.
 *
 * Place in the flow: called by the syncer of a member, before a leaf is applied, after it was removed, and in its sweep.
 * Guarantees: certificates and keys are in no other object, message or log; a Secret of another owner is not changed; a copy
 * is deleted with the last leaf of the member that names it, or by the next sweep when that leaf names another Secret.
 */
import { type Context, Forbidden, Ingress, type Kind, type Manager, Secret } from '@seamark/kube'
import { type Immutable, keyOf, type Obj } from '@seamark/kube/object'
import { LeafIngress } from '../../api/leaf-ingress.ts'
import { isOurs } from '../decide/sync.ts'
import { hashOf, HASH_ANNOTATION, HUB_LABEL, SYNC_LABEL } from '../names.ts'
import { MANAGED_LABEL } from '../../hosts/root.ts'
import type { Manifest } from '../roots/root-kind.ts'
import { deleteExactly } from './exact-delete.ts'

const TLS_TYPE = 'kubernetes.io/tls'
const COPIED_KEYS = ['tls.crt', 'tls.key', 'ca.crt']

export type SecretCopy = Manifest & Secret

export class TlsSecrets {
  readonly #manager: Manager

  /** Watches the Secrets; calls `mark` with the leaves that name one that changed. */
  constructor(manager: Manager, mark: (leaf: Immutable<LeafIngress>) => void) {
    this.#manager = manager
    manager.cluster.informers.informer(Secret, { labelSelector: `${SYNC_LABEL}=true` }).subscribe(({ object }) => {
      const { namespace, name = '' } = object.metadata
      for (const leaf of this.#leavesIn(namespace)) if (secretNames(leaf).includes(name)) mark(leaf)
    })
  }

  /** What the member should have for the leaf. For a Secret that cannot be copied it is a text with the reason. */
  copiesFor(leaf: Immutable<LeafIngress>, hubId: string): (SecretCopy | string)[] {
    const { namespace = '' } = leaf.metadata
    return secretNames(leaf).flatMap((name): (SecretCopy | string)[] => {
      const secret = this.#manager.cluster.informers.get(Secret, `${namespace}/${name}`)
      if (secret?.metadata.labels?.[SYNC_LABEL] !== 'true') return []
      if (secret.type !== TLS_TYPE)
        return [`Secret ${namespace}/${name} has the type ${secret.type}; only ${TLS_TYPE} is copied to clusters`]
      return [copyOf(secret, hubId)]
    })
  }

  /**
   * Secrets of a removed leaf that no other leaf of its cluster names. The leaves are read from the server, because a cache may
   * come from a list that was short.
   */
  async unusedBy(
    leaf: Immutable<LeafIngress>,
    signal: AbortSignal,
  ): Promise<{ readonly kind: Kind; readonly key: string }[]> {
    const { namespace = '' } = leaf.metadata
    const names = secretNames(leaf)
    if (names.length === 0) return []
    const onCluster = await this.#readLeaves(namespace, leaf.spec.cluster, signal)
    const others = onCluster.filter((other) => keyOf(other) !== keyOf(leaf) && other.status?.phase !== 'Drained')
    const used = new Set(others.flatMap(secretNames))
    return names.filter((name) => !used.has(name)).map((name) => ({ kind: Secret, key: `${namespace}/${name}` }))
  }

  /**
   * Deletes copies that neither a leaf of the member names nor one of our objects there: the deletion of an object whose
   * leaf is gone may be held. `ctx`: of the member.
   */
  async sweep(
    ctx: Pick<Context, 'cluster' | 'signal' | 'log' | 'list'> & {
      readonly client: Pick<Context['client'], 'list' | 'delete'>
    },
    hubId: string,
  ): Promise<void> {
    const leaves = this.#leavesIn(undefined).filter(({ spec }) => spec.cluster === ctx.cluster)
    const keysOf = (namespace: string | undefined, names: readonly string[]): string[] =>
      names.map((name) => `${namespace}/${name}`)
    const cached = new Set([
      ...leaves.flatMap((leaf) => keysOf(leaf.metadata.namespace, secretNames(leaf))),
      ...ctx
        .list(Ingress)
        .filter((object) => isOurs(object, hubId))
        .flatMap((object) => keysOf(object.metadata.namespace, tlsSecretsOf([object]))),
    ])
    for (const namespace of new Set(leaves.map(({ metadata }) => metadata.namespace ?? ''))) {
      const unnamed = (await this.#findCopies(namespace, hubId, ctx)).filter((copy) => !cached.has(keyOf(copy)))
      if (unnamed.length === 0) continue
      const used = new Set((await this.#readLeaves(namespace, ctx.cluster, ctx.signal)).flatMap(secretNames))
      for (const copy of unnamed) if (!used.has(copy.metadata.name ?? '')) await deleteExactly(ctx.client, Secret, copy)
    }
  }

  async #findCopies(
    namespace: string,
    hubId: string,
    { cluster, client, log, signal }: Parameters<TlsSecrets['sweep']>[0],
  ): Promise<readonly Secret[]> {
    try {
      const { items } = await client.list(Secret, { namespace, labelSelector: `${MANAGED_LABEL}=true`, signal })
      return items.filter((copy) => isOurs(copy, hubId))
    } catch (error) {
      if (!(error instanceof Forbidden)) throw error
      const message = `copies of TLS Secrets that no leaf names are left on cluster ${cluster}; grant list of secrets there`
      log.warn({ cluster, namespace }, message)
      return []
    }
  }

  async #readLeaves(namespace: string, cluster: string, signal: AbortSignal): Promise<readonly LeafIngress[]> {
    const { items } = await this.#manager.client.list(LeafIngress, { namespace, signal })
    return items.filter(({ spec }) => spec.cluster === cluster)
  }

  #leavesIn(namespace: string | undefined): readonly Immutable<LeafIngress>[] {
    return this.#manager.cluster.informers.list(LeafIngress, namespace)
  }
}

function copyOf({ metadata, data = {} }: Immutable<Secret>, hubId: string): SecretCopy {
  const copied = Object.fromEntries(Object.entries(data).filter(([key]) => COPIED_KEYS.includes(key)))
  return {
    apiVersion: 'v1',
    kind: Secret.kind,
    metadata: {
      name: metadata.name ?? '',
      namespace: metadata.namespace ?? '',
      labels: { [MANAGED_LABEL]: 'true', [HUB_LABEL]: hubId },
      annotations: { [HASH_ANNOTATION]: hashOf(copied) },
    },
    type: TLS_TYPE,
    data: copied,
  }
}

/** Names in `spec.tls` of the Ingresses of a leaf, sorted. */
function secretNames({ spec }: Immutable<LeafIngress>): string[] {
  return tlsSecretsOf(spec.manifests)
}

function tlsSecretsOf(objects: readonly Immutable<Obj>[]): string[] {
  const names = (objects as readonly Immutable<Obj & { spec?: { tls?: unknown } }>[]).flatMap(({ spec: ingress }) =>
    Array.isArray(ingress?.tls) ? (ingress.tls as { secretName?: unknown }[]).map(({ secretName }) => secretName) : [],
  )
  return [...new Set(names.filter((name): name is string => typeof name === 'string' && name !== ''))].sort()
}
