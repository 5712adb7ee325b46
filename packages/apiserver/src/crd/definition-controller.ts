/**
 * The controller of CustomResourceDefinitions: serves a defined resource synchronously with the write, then accepts or
 * rejects its names and sets the conditions that clients wait for. A deleted definition rejects new objects, its
 * objects are deleted, and then the definition itself.
 *
 * This is part of the API server, not of the controller manager: it always runs.
 */
import { timestamp } from '../clock.ts'
import type { Controller, ControllerContext } from '../controllers/controller.ts'
import { SystemClient } from '../controllers/system-client.ts'
import { WorkQueue } from '../controllers/work-queue.ts'
import { type ApiObject, asRecords, getPath, isSameJson, type Json, withMetadata } from '../codec/object-shape.ts'
import type { Converter, Resource } from '../resource/resource.ts'
import type { Change } from '../store/change-log.ts'
import type { Collection } from '../store/collection.ts'
import { cleanupFinalizer, isTerminating, type Names, readNames, readResources } from './definition.ts'

export type MakeConverter = (definition: ApiObject) => Converter | undefined

export class DefinitionController implements Controller {
  readonly #context: ControllerContext
  readonly #definitions: Resource
  readonly #client: SystemClient
  readonly #queue: WorkQueue<string>
  readonly #makeConverter: MakeConverter
  readonly #served = new Map<string, { spec: unknown; resources: readonly Resource[] }>()
  readonly #unsubscribe: () => void

  constructor(context: ControllerContext, makeConverter: MakeConverter) {
    this.#context = context
    this.#makeConverter = makeConverter
    const { registry, clock, store } = context.backend
    this.#definitions = registry.find('apiextensions.k8s.io', 'v1', 'customresourcedefinitions') as Resource
    this.#client = new SystemClient(context.backend, 'kube-apiserver', 'kube-apiserver')
    this.#queue = new WorkQueue(clock, async (name) => await this.#work(name), context.onError)
    const stopDefinitions = this.#definitions.collection.subscribe((change) => this.#serve(change))
    const stopInstances = store.subscribe((change) => {
      // An instance was deleted: its definition may wait for that.
      if (change.type === 'delete' && this.#served.has(change.collection.id))
        this.#queue.add(change.collection.id, change.collection.id)
    })
    this.#unsubscribe = () => {
      stopDefinitions()
      stopInstances()
    }
  }

  close(): void {
    this.#unsubscribe()
    this.#queue.close()
  }

  #serve({ type, key, current }: Change): void {
    const { registry, store, hub } = this.#context.backend
    if (type === 'delete') {
      if (!this.#served.delete(key)) return
      registry.setCustom(key, [])
      hub.end(store.collection(key))
      return
    }
    const definition = current.object
    // A built-in resource of that name is still served, and its objects remain when the definition is deleted.
    if (registry.isBuiltin(String(getPath(definition, 'spec', 'group')), readNames(definition).plural)) {
      this.#queue.add(key, key)
      return
    }
    const known = this.#served.get(key)
    const conflict = this.#findConflict(key, definition)
    if (conflict === undefined && !isSameJson(known?.spec, definition['spec'])) {
      const resources = readResources(definition, store, this.#makeConverter(definition))
      this.#served.set(key, { spec: definition['spec'], resources })
      registry.setCustom(key, resources)
      const collection = store.collection(key)
      // Objects of an earlier process may have been written before the definition changed.
      if (collection.size > 0) rereadAll(collection, known?.resources ?? [], resources)
      // As in kube-apiserver: an open watch would send objects in the form of the old definition.
      if (known !== undefined) hub.end(collection)
    }
    this.#queue.add(key, key)
  }

  /** Finds another definition of the group that already uses one of the names. */
  #findConflict(name: string, definition: ApiObject): string | undefined {
    const group = getPath(definition, 'spec', 'group')
    const names = readNames(definition)
    for (const stored of this.#definitions.collection.values()) {
      if (stored.name === name || getPath(stored.object, 'spec', 'group') !== group) continue
      if (!hasCondition(stored.object, 'Established')) continue
      const taken = conflictingName(names, readNames(stored.object))
      if (taken !== undefined) return taken
    }
    return undefined
  }

  async #work(name: string): Promise<void> {
    const stored = this.#definitions.collection.get(name)
    if (stored === undefined) return
    if (isTerminating(stored.object)) {
      await this.#finalize(name)
      return
    }
    const now = timestamp(this.#context.backend.clock.now())
    const conflict = this.#findConflict(name, stored.object)
    await this.#client.update(
      this.#definitions,
      stored,
      (old) => {
        const wasEstablished = hasCondition(old, 'Established')
        const conditions = mergeConditions(
          old,
          [
            conflict === undefined
              ? { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts', message: 'no conflicts found' }
              : { type: 'NamesAccepted', status: 'False', reason: 'ListKindConflict', message: conflict },
            conflict === undefined || wasEstablished
              ? {
                  type: 'Established',
                  status: 'True',
                  reason: 'InitialNamesAccepted',
                  message: 'the initial names have been accepted',
                }
              : { type: 'Established', status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' },
          ],
          now,
        )
        const acceptedNames =
          conflict === undefined ? getPath(old, 'spec', 'names') : getPath(old, 'status', 'acceptedNames')
        return { ...old, status: { ...(old['status'] as Json), conditions, acceptedNames } }
      },
      'status',
    )
  }

  async #finalize(name: string): Promise<void> {
    const served = this.#served.get(name)?.resources[0]
    if (served !== undefined) {
      for (const instance of served.collection.range({ namespace: '', limit: 0 }).items) {
        if (instance.object.metadata.deletionTimestamp === undefined) await this.#client.delete(served, instance)
      }
      // The deletion of the last object triggers this again.
      if (served.collection.size > 0) return
    }
    const stored = this.#definitions.collection.get(name)
    if (stored === undefined) return
    await this.#client.update(this.#definitions, stored, (old) => {
      const finalizers = (old.metadata.finalizers ?? []).filter((finalizer) => finalizer !== cleanupFinalizer)
      return withMetadata(old, finalizers.length === 0 ? { finalizers: undefined as never } : { finalizers })
    })
  }
}

/**
 * Rereads stored objects with the current schema: drops fields that it does not declare and applies its defaults. Each
 * object is read with the schema of the version it was stored in; other versions are converted from it on request.
 */
function rereadAll(collection: Collection, before: readonly Resource[], now: readonly Resource[]): void {
  const schemaOf = (resources: readonly Resource[], { apiVersion }: Resource) =>
    resources.find((resource) => resource.apiVersion === apiVersion)?.schema
  const changed = new Map(
    now
      .filter((resource) => !isSameJson(schemaOf(before, resource), resource.schema))
      .map((resource) => [resource.apiVersion, resource.compiled()]),
  )
  if (changed.size === 0) return
  collection.reread((object) => {
    const compiled = changed.get(object.apiVersion ?? '')
    if (compiled === undefined) return undefined
    compiled.prune(object)
    compiled.applyDefaults(object)
    return object
  })
}

function conflictingName(names: Names, other: Names): string | undefined {
  const taken = new Set([other.plural, other.singular, ...other.shortNames])
  if (taken.has(names.plural)) return `${JSON.stringify(names.plural)} is already in use`
  if (taken.has(names.singular)) return `${JSON.stringify(names.singular)} is already in use`
  const short = names.shortNames.find((name) => taken.has(name))
  if (short !== undefined) return `${JSON.stringify(short)} is already in use`
  const kinds = new Set([other.kind, other.listKind])
  if (kinds.has(names.kind)) return `${JSON.stringify(names.kind)} is already in use`
  return kinds.has(names.listKind) ? `${JSON.stringify(names.listKind)} is already in use` : undefined
}

function hasCondition(definition: ApiObject, type: string): boolean {
  return asRecords(getPath(definition, 'status', 'conditions')).some(
    (condition) => condition['type'] === type && condition['status'] === 'True',
  )
}

function mergeConditions(old: ApiObject, desired: readonly Json[], now: string): Json[] {
  const before = asRecords(getPath(old, 'status', 'conditions'))
  const others = before.filter((condition) => !desired.some((next) => next['type'] === condition['type']))
  const merged = desired.map((next) => {
    const same = before.find((condition) => condition['type'] === next['type'])
    const isSame = same !== undefined && same['status'] === next['status'] && same['reason'] === next['reason']
    const { type, status, ...rest } = next
    return isSame ? same : { type, status, lastTransitionTime: now, ...rest }
  })
  return [...merged, ...others]
}
