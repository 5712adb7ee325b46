/**
 * The garbage collector: deletes objects whose owners are all deleted, waits for dependents on foreground deletion, and
 * removes owner references on orphaning.
 *
 * Flow: an index from owner uid to dependents is updated by every change; a change of an owner or a dependent enqueues
 * the affected objects; a work item decides by the current state only.
 * Guarantees: an object is never deleted while one of its owners exists, or while the kind of an owner is unknown;
 * deletes carry the uid that was read. A namespaced owner counts only in the dependent's own namespace.
 */
import type { OwnerReference } from '@seamark/kube/object'
import { withMetadata } from '../codec/object-shape.ts'
import { keyFor, type Resource } from '../resource/resource.ts'
import type { Change } from '../store/change-log.ts'
import type { Collection } from '../store/collection.ts'
import type { Stored } from '../store/stored-object.ts'
import type { Controller, ControllerContext } from './controller.ts'
import { SystemClient } from './system-client.ts'
import { WorkQueue } from './work-queue.ts'

interface Item {
  readonly collection: Collection
  readonly key: string
}

type OwnerState = 'solid' | 'absent' | 'waiting' | 'unknown'

export class GarbageCollector implements Controller {
  readonly #context: ControllerContext
  readonly #client: SystemClient
  readonly #queue: WorkQueue<Item>
  readonly #dependents = new Map<string, Map<string, Item>>()
  readonly #unsubscribe: () => void

  constructor(context: ControllerContext) {
    this.#context = context
    this.#client = new SystemClient(context.backend, 'generic-garbage-collector')
    this.#queue = new WorkQueue(context.backend.clock, async (item) => await this.#work(item), context.onError)
    this.#unsubscribe = context.backend.store.subscribe((change) => this.#observe(change))
  }

  close(): void {
    this.#unsubscribe()
    this.#queue.close()
  }

  #observe(change: Change): void {
    const { collection, key, previous, current, type } = change
    const item: Item = { collection, key }
    const id = `${collection.id}\n${key}`
    const before = ownersOf(previous)
    const after = type === 'delete' ? [] : ownersOf(current)
    for (const { uid } of before) if (!after.some((owner) => owner.uid === uid)) this.#unlink(uid, id)
    for (const { uid } of after) {
      const known = this.#dependents.get(uid) ?? new Map<string, Item>()
      known.set(id, item)
      this.#dependents.set(uid, known)
    }
    if (after.length > 0) this.#queue.add(id, item)
    const metadata = current.parsed?.metadata ?? current.object.metadata
    if (type !== 'delete' && metadata.deletionTimestamp !== undefined) this.#queue.add(id, item)
    // Dependents of a deleted or terminating object, and owners that wait for a deleted one.
    if (type === 'delete' || metadata.deletionTimestamp !== undefined) {
      for (const [dependentId, dependent] of this.#dependents.get(metadata.uid ?? '') ?? [])
        this.#queue.add(dependentId, dependent)
    }
    for (const owner of before) this.#enqueueOwner(owner, key)
  }

  #unlink(uid: string, id: string): void {
    const known = this.#dependents.get(uid)
    known?.delete(id)
    if (known?.size === 0) this.#dependents.delete(uid)
  }

  #enqueueOwner(owner: OwnerReference, dependentKey: string): void {
    const found = this.#findOwner(owner, dependentKey)
    if (found === undefined || found === 'unknown') return
    if (found.stored.object.metadata.deletionTimestamp === undefined) return
    const { collection } = found.resource
    this.#queue.add(`${collection.id}\n${found.stored.key}`, { collection, key: found.stored.key })
  }

  #findOwner(
    owner: OwnerReference,
    dependentKey: string,
  ): { resource: Resource; stored: Stored } | 'unknown' | undefined {
    const resource = this.#context.backend.registry.findKind(owner.apiVersion, owner.kind)
    if (resource === undefined) return 'unknown'
    const slash = dependentKey.indexOf('/')
    if (resource.namespaced && slash < 0) return undefined
    const stored = resource.collection.get(keyFor(resource, dependentKey.slice(0, Math.max(0, slash)), owner.name))
    return stored?.object.metadata.uid === owner.uid ? { resource, stored } : undefined
  }

  #resourceOf(stored: Stored): Resource | undefined {
    return this.#context.backend.registry.findKind(stored.apiVersion, stored.kind)
  }

  async #work({ collection, key }: Item): Promise<void> {
    const stored = collection.get(key)
    if (stored === undefined) return
    const resource = this.#resourceOf(stored)
    if (resource === undefined) return
    const { deletionTimestamp, finalizers = [] } = stored.object.metadata
    if (deletionTimestamp !== undefined && finalizers.includes('foregroundDeletion'))
      await this.#deleteForeground(resource, stored)
    if (deletionTimestamp !== undefined && finalizers.includes('orphan')) await this.#orphan(resource, stored)
    if (deletionTimestamp === undefined || finalizers.includes('foregroundDeletion'))
      await this.#checkOwners(resource, stored)
  }

  #dependentsOf(uid: string): Stored[] {
    return [...(this.#dependents.get(uid)?.values() ?? [])].flatMap(({ collection, key }) => collection.get(key) ?? [])
  }

  async #deleteForeground(resource: Resource, stored: Stored): Promise<void> {
    const uid = stored.object.metadata.uid ?? ''
    const blocking = this.#dependentsOf(uid).filter((dependent) =>
      ownersOf(dependent).some((owner) => owner.uid === uid && owner.blockOwnerDeletion === true),
    )
    if (blocking.length === 0) {
      await this.#removeFinalizer(resource, stored, 'foregroundDeletion')
      return
    }
    for (const dependent of blocking) {
      const dependentResource = this.#resourceOf(dependent)
      if (dependentResource !== undefined && dependent.object.metadata.deletionTimestamp === undefined)
        await this.#checkOwners(dependentResource, dependent)
    }
  }

  async #orphan(resource: Resource, stored: Stored): Promise<void> {
    const uid = stored.object.metadata.uid ?? ''
    for (const dependent of this.#dependentsOf(uid)) {
      const dependentResource = this.#resourceOf(dependent)
      if (dependentResource !== undefined) await this.#dropOwners(dependentResource, dependent, [uid])
    }
    await this.#removeFinalizer(resource, stored, 'orphan')
  }

  async #removeFinalizer(resource: Resource, stored: Stored, finalizer: string): Promise<void> {
    await this.#client.update(resource, stored, (old) => {
      const finalizers = (old.metadata.finalizers ?? []).filter((name) => name !== finalizer)
      return withMetadata(old, finalizers.length === 0 ? { finalizers: undefined as never } : { finalizers })
    })
  }

  async #dropOwners(resource: Resource, stored: Stored, uids: readonly string[]): Promise<void> {
    await this.#client.update(resource, stored, (old) => {
      const ownerReferences = (old.metadata.ownerReferences ?? []).filter((owner) => !uids.includes(owner.uid))
      return withMetadata(
        old,
        ownerReferences.length === 0 ? { ownerReferences: undefined as never } : { ownerReferences },
      )
    })
  }

  #stateOf(owner: OwnerReference, key: string): OwnerState {
    const found = this.#findOwner(owner, key)
    if (found === undefined) return 'absent'
    if (found === 'unknown') return 'unknown'
    const { deletionTimestamp, finalizers = [] } = found.stored.object.metadata
    return deletionTimestamp !== undefined && finalizers.includes('foregroundDeletion') ? 'waiting' : 'solid'
  }

  /** Deletes an object when none of its owners exists. */
  async #checkOwners(resource: Resource, stored: Stored): Promise<void> {
    const owners = ownersOf(stored)
    if (owners.length === 0 || stored.object.metadata.deletionTimestamp !== undefined) return
    const states = owners.map((owner) => ({ owner, state: this.#stateOf(owner, stored.key) }))
    if (states.some(({ state }) => state === 'unknown')) return
    const gone = states.filter(({ state }) => state !== 'solid')
    if (gone.length === 0) return
    if (gone.length < states.length) {
      await this.#dropOwners(
        resource,
        stored,
        gone.map(({ owner }) => owner.uid),
      )
      return
    }
    const isWaitedFor = states.some(({ state }) => state === 'waiting')
    const uid = stored.object.metadata.uid ?? ''
    const isOwner = this.#dependentsOf(uid).length > 0
    const { finalizers = [] } = stored.object.metadata
    const propagationPolicy =
      isWaitedFor && isOwner ? 'Foreground' : finalizers.includes('orphan') ? 'Orphan' : 'Background'
    await this.#client.delete(resource, stored, { uid, propagationPolicy })
  }
}

function ownersOf(stored: Stored | undefined): readonly OwnerReference[] {
  if (stored === undefined) return []
  // Most objects have no owner: avoids parsing them.
  if (stored.parsed === undefined && !stored.body.includes('"ownerReferences"')) return []
  return stored.object.metadata.ownerReferences ?? []
}
