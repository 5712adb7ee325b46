/** The client of the built-in controllers: calls the normal write path directly, as a system user. */
import type { Backend, Call, WriteOptions } from '../handlers/call.ts'
import { type Deletion, type DeleteOptions, deleteStored } from '../handlers/delete.ts'
import { type ApiObject, cloneJson } from '../codec/object-shape.ts'
import { keyFor, type Resource } from '../resource/resource.ts'
import { ApiError } from '../exchange/status.ts'
import type { Stored } from '../store/stored-object.ts'
import { createObject, updateObject } from '../handlers/write.ts'

const background: DeleteOptions = {
  isDryRun: false,
  propagationPolicy: undefined,
  gracePeriodSeconds: undefined,
  uid: undefined,
  resourceVersion: undefined,
}

export class SystemClient {
  readonly #backend: Backend
  readonly #component: string
  readonly #options: WriteOptions

  constructor(backend: Backend, component: string, manager = 'kube-controller-manager') {
    this.#backend = backend
    this.#component = component
    this.#options = { isDryRun: false, fieldManager: manager, fieldValidation: 'Ignore' }
  }

  #call(resource: Resource, verb: string, namespace: string, name: string, subresource = ''): Call {
    const { group, version, plural } = resource
    return {
      backend: this.#backend,
      resource,
      warnings: [],
      user: {
        name: `system:serviceaccount:kube-system:${this.#component}`,
        groups: ['system:masters', 'system:authenticated'],
      },
      info: {
        isResource: true,
        path: '',
        verb,
        group,
        version,
        namespace,
        resource: plural,
        subresource,
        name,
        hasExtraSegments: false,
        isInNamespace: resource.namespaced,
      },
      request: { method: '', path: '', query: new URLSearchParams(), headers: {}, body: Buffer.alloc(0) },
    }
  }

  async create(resource: Resource, object: ApiObject): Promise<Stored> {
    const { namespace = '', name = '' } = object.metadata
    const copy = cloneJson(object)
    resource.strategy.applyDefaults?.(copy)
    return await createObject(this.#call(resource, 'create', namespace, name), copy, this.#options)
  }

  /** Creates the object unless it exists. */
  async ensure(resource: Resource, object: ApiObject): Promise<void> {
    const { namespace = '', name = '' } = object.metadata
    if (resource.collection.get(keyFor(resource, namespace, name)) !== undefined) return
    await this.#tolerate(['AlreadyExists', 'NotFound', 'Forbidden'], async () => await this.create(resource, object))
  }

  async update(
    resource: Resource,
    stored: Stored,
    build: (old: ApiObject) => ApiObject,
    subresource = '',
  ): Promise<void> {
    const call = this.#call(resource, 'update', stored.namespace, stored.name, subresource)
    await this.#tolerate(['NotFound'], async () => await updateObject(call, { build }, this.#options))
  }

  async delete(
    resource: Resource,
    stored: Stored,
    options: Partial<DeleteOptions> = {},
  ): Promise<Deletion | undefined> {
    const call = this.#call(resource, 'delete', stored.namespace, stored.name)
    return await this.#tolerate(
      ['NotFound', 'Conflict', 'Forbidden'],
      async () => await deleteStored(call, stored.key, { ...background, ...options }),
    )
  }

  async #tolerate<T>(reasons: readonly string[], action: () => Promise<T>): Promise<T | undefined> {
    try {
      return await action()
    } catch (error) {
      if (error instanceof ApiError && reasons.includes(error.status.reason ?? '')) return undefined
      throw error
    }
  }
}
