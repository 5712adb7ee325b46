/** The objects of API servers as text, and back: with their UIDs, times, managed fields, and in the order of their versions. */
import type { ApiServer } from '@seamark/apiserver'
import type { Obj } from '@seamark/kube/object'

export interface StoredObject {
  /** Of the store: group and resource. */
  readonly collection: string
  readonly key: string
  readonly object: Obj
}

export interface StoredState {
  /** ms since the epoch. */
  readonly recordedAt: number
  /** What `seamark approve` listed: id by id. */
  readonly held: readonly string[]
  /** What the zone answered: `NAME TYPE VALUES`. */
  readonly answers: readonly string[]
  readonly servers: Readonly<Record<string, readonly StoredObject[]>>
}

export function dumpObjects({ cluster }: ApiServer): StoredObject[] {
  const objects = [...cluster.store.collections()].flatMap((collection) =>
    [...collection.values()].map((stored) => ({
      collection: collection.id,
      key: stored.key,
      object: stored.object as Obj,
      version: stored.resourceVersion,
    })),
  )
  return objects
    .filter(({ object, key }) => !isOmitted(object, key))
    .toSorted((a, b) => a.version - b.version)
    .map(({ collection, key, object }) => ({ collection, key, object: withoutCredentials(object) }))
}

function isOmitted({ kind = '', metadata }: Obj, key: string): boolean {
  const isOfServer =
    /^(CustomResourceDefinition|Event|.*Role|.*RoleBinding|ServiceAccount|APIService|FlowSchema|PriorityLevelConfiguration|PriorityClass)$/
  const isKubernetes =
    key === 'default/kubernetes' || key === 'default/kubernetes-443' || metadata.name === 'kube-root-ca.crt'
  return isOfServer.test(kind) || isKubernetes
}

/** The kubeconfig of a member is another one in each run. */
function withoutCredentials(object: Obj): Obj {
  return object.kind === 'Secret' ? ({ ...object, data: {} } as Obj) : object
}

/**
 * Puts them into a server that has the definitions of their kinds. `kubeconfigs`: of members, for their Secrets. Times of
 * guards are moved to the present, as if the state had been written just now.
 */
export function loadObjects(
  { cluster }: ApiServer,
  objects: readonly StoredObject[],
  { recordedAt, kubeconfigs }: { recordedAt: number; kubeconfigs: ReadonlyMap<string, string> },
): void {
  const delayMs = Date.now() - recordedAt
  makeKindsOlder(cluster, recordedAt - HOUR_MS)
  for (const { collection, key, object } of objects) {
    const moved = object.kind === 'ConfigMap' ? movedTimes(object, delayMs) : object
    const label = object.metadata.labels?.['seamark.io/cluster']
    const kubeconfig = object.kind === 'Secret' && label !== undefined ? kubeconfigs.get(label) : undefined
    const data = kubeconfig === undefined ? {} : { data: { kubeconfig: Buffer.from(kubeconfig).toString('base64') } }
    cluster.store.collection(collection).put(key, { ...moved, ...data })
  }
}

const HOUR_MS = 3_600_000

/** As where the kinds were there before the objects: a record that is older than its kind is not deleted for a while. */
function makeKindsOlder({ store }: ApiServer['cluster'], atMs: number): void {
  const creationTimestamp = `${new Date(atMs).toISOString().slice(0, 19)}Z`
  for (const collection of store.collections())
    for (const { kind, key, object } of collection.values())
      if (kind === 'CustomResourceDefinition')
        collection.put(key, { ...object, metadata: { ...object.metadata, creationTimestamp } })
}

const MILLISECONDS = /\b1[789]\d{11}\b/g

function movedTimes(object: Obj & { readonly data?: Readonly<Record<string, string>> }, delayMs: number): Obj {
  const data = Object.entries(object.data ?? {}).map(([key, text]) => [
    key,
    text.replaceAll(MILLISECONDS, (ms) => String(Number(ms) + delayMs)),
  ])
  return { ...object, ...(object.data !== undefined && { data: Object.fromEntries(data) }) }
}
