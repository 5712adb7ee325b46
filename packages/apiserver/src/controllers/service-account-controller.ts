/** Creates the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt` in every active namespace. */
import type { Resource } from '../resource/resource.ts'
import type { Controller, ControllerContext } from './controller.ts'
import { SystemClient } from './system-client.ts'
import { WorkQueue } from './work-queue.ts'

export class ServiceAccountController implements Controller {
  readonly #queue: WorkQueue<string>
  readonly #unsubscribe: () => void

  /** `rootCa` is the CA certificate of the server, PEM. */
  constructor(context: ControllerContext, rootCa: () => string) {
    const { registry, store, clock } = context.backend
    const namespaces = registry.find('', 'v1', 'namespaces') as Resource
    const accounts = registry.find('', 'v1', 'serviceaccounts') as Resource
    const configMaps = registry.find('', 'v1', 'configmaps') as Resource
    const client = new SystemClient(context.backend, 'service-account-controller')
    this.#queue = new WorkQueue(
      clock,
      async (namespace) => {
        const stored = namespaces.collection.get(namespace)
        if (stored === undefined || stored.object.metadata.deletionTimestamp !== undefined) return
        await client.ensure(accounts, {
          apiVersion: 'v1',
          kind: 'ServiceAccount',
          metadata: { name: 'default', namespace },
        })
        await client.ensure(configMaps, {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: 'kube-root-ca.crt', namespace },
          data: { 'ca.crt': rootCa() },
        })
      },
      context.onError,
    )
    this.#unsubscribe = store.subscribe(({ collection, key, type, current }) => {
      if (collection === namespaces.collection && type !== 'delete') this.#queue.add(key, key)
      else if (type === 'delete' && (collection === accounts.collection || collection === configMaps.collection)) {
        this.#queue.add(current.namespace, current.namespace)
      }
    })
  }

  close(): void {
    this.#unsubscribe()
    this.#queue.close()
  }
}
