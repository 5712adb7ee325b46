/**
 * Deletion of namespaces: deletes the content of a terminating namespace; when it is empty, removes the finalizer of
 * the namespace, which deletes it. Objects with finalizers delay this, and the namespace's conditions report them.
 */
import { timestamp } from '../clock.ts'
import { type ApiObject, asStrings, getPath, type Json } from '../codec/object-shape.ts'
import type { Resource } from '../resource/resource.ts'
import type { Stored } from '../store/stored-object.ts'
import { namespaceFinalizer } from '../strategies/namespace.ts'
import type { Controller, ControllerContext } from './controller.ts'
import { SystemClient } from './system-client.ts'
import { WorkQueue } from './work-queue.ts'

export class NamespaceController implements Controller {
  readonly #context: ControllerContext
  readonly #namespaces: Resource
  readonly #client: SystemClient
  readonly #queue: WorkQueue<string>
  readonly #unsubscribe: () => void
  readonly #terminating = new Set<string>()

  constructor(context: ControllerContext) {
    this.#context = context
    this.#namespaces = context.backend.registry.find('', 'v1', 'namespaces') as Resource
    this.#client = new SystemClient(context.backend, 'namespace-controller')
    this.#queue = new WorkQueue(context.backend.clock, async (name) => await this.#work(name), context.onError)
    const { collection: namespaces } = this.#namespaces
    this.#unsubscribe = context.backend.store.subscribe(({ collection, key, type, current }) => {
      if (collection === namespaces) {
        if (type === 'delete') this.#terminating.delete(key)
        else if (current.object.metadata.deletionTimestamp !== undefined) {
          this.#terminating.add(key)
          this.#queue.add(key, key)
        }
        return
      }
      // An object of a terminating namespace was deleted.
      if (this.#terminating.size === 0 || type !== 'delete') return
      const namespace = current.namespace
      if (this.#terminating.has(namespace)) this.#queue.add(namespace, namespace)
    })
  }

  close(): void {
    this.#unsubscribe()
    this.#queue.close()
  }

  async #work(name: string): Promise<void> {
    const stored = this.#namespaces.collection.get(name)
    if (stored?.object.metadata.deletionTimestamp === undefined) return
    const left = await this.#empty(name)
    if (left.length > 0) {
      await this.#report(stored, left)
      return
    }
    const finalizers = asStrings(getPath(stored.object, 'spec', 'finalizers')).filter(
      (item) => item !== namespaceFinalizer,
    )
    await this.#client.update(
      this.#namespaces,
      stored,
      (old) => ({ ...old, spec: { ...(old['spec'] as Json), finalizers } }),
      'finalize',
    )
  }

  /** Deletes the content of the namespace; returns the remaining objects. */
  async #empty(name: string): Promise<{ resource: Resource; stored: Stored }[]> {
    const left: { resource: Resource; stored: Stored }[] = []
    const seen = new Set<string>()
    for (const resource of this.#context.backend.registry.all()) {
      if (!resource.namespaced || seen.has(resource.collection.id)) continue
      seen.add(resource.collection.id)
      for (const stored of resource.collection.range({ namespace: name, limit: 0 }).items) {
        if (stored.object.metadata.deletionTimestamp === undefined)
          await this.#client.delete(resource, stored, { propagationPolicy: 'Background' })
        const rest = resource.collection.get(stored.key)
        if (rest !== undefined) left.push({ resource, stored: rest })
      }
    }
    return left
  }

  async #report(stored: Stored, left: readonly { resource: Resource; stored: Stored }[]): Promise<void> {
    const count = (label: (entry: (typeof left)[number]) => string[]): string => {
      const counts = new Map<string, number>()
      for (const entry of left) for (const name of label(entry)) counts.set(name, (counts.get(name) ?? 0) + 1)
      return [...counts]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, amount]) => `${name} in ${amount} resource instances`)
        .join(', ')
    }
    const resources = count(({ resource }) => [
      resource.group === '' ? `${resource.plural}.` : `${resource.plural}.${resource.group}`,
    ]).replaceAll(' in ', ' has ')
    const finalizers = count((entry) => entry.stored.object.metadata.finalizers ?? [])
    const conditions = [
      condition(
        'NamespaceDeletionDiscoveryFailure',
        false,
        'ResourcesDiscovered',
        'All resources successfully discovered',
      ),
      condition(
        'NamespaceDeletionGroupVersionParsingFailure',
        false,
        'ParsedGroupVersions',
        'All legacy kube types successfully parsed',
      ),
      condition(
        'NamespaceDeletionContentFailure',
        false,
        'ContentDeleted',
        'All content successfully deleted, may be waiting on finalization',
      ),
      condition('NamespaceContentRemaining', true, 'SomeResourcesRemain', `Some resources are remaining: ${resources}`),
      condition(
        'NamespaceFinalizersRemaining',
        finalizers !== '',
        'SomeFinalizersRemain',
        `Some content in the namespace has finalizers remaining: ${finalizers}`,
      ),
    ]
    const now = timestamp(this.#context.backend.clock.now())
    await this.#client.update(this.#namespaces, stored, (old) => withConditions(old, conditions, now), 'status')
  }
}

function condition(type: string, isTrue: boolean, reason: string, message: string): Json {
  return { type, status: isTrue ? 'True' : 'False', reason, message }
}

function withConditions(old: ApiObject, conditions: readonly Json[], now: string): ApiObject {
  const before = getPath(old, 'status', 'conditions')
  const known = Array.isArray(before) ? (before as Json[]) : []
  const merged = conditions.map((next) => {
    const same = known.find((item) => item['type'] === next['type'])
    return {
      ...next,
      lastTransitionTime: same !== undefined && same['status'] === next['status'] ? same['lastTransitionTime'] : now,
    }
  })
  return { ...old, status: { ...(old['status'] as Json), conditions: merged } }
}
