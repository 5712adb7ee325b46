/** Initial objects of every cluster: the four namespaces, the Service of the API server, and the default RBAC roles. */
import { SystemClient } from './controllers/system-client.ts'
import type { Backend } from './handlers/call.ts'
import { timestamp } from './clock.ts'
import type { ApiObject } from './codec/object-shape.ts'
import { keyFor, type Resource } from './resource/resource.ts'
import { bootstrapRoles } from './auth/bootstrap-roles.ts'

const namespaces = ['default', 'kube-system', 'kube-public', 'kube-node-lease'] as const

/** Nothing is written where an earlier process with the same data directory has done it. */
function putWhenAbsent(backend: Backend, resource: Resource, object: ApiObject): void {
  const { namespace = '', name = '' } = object.metadata
  if (resource.collection.get(keyFor(resource, namespace, name)) !== undefined) return
  const nowMs = backend.clock.now()
  const copy: ApiObject = {
    ...object,
    metadata: { ...object.metadata, uid: backend.newUid(), creationTimestamp: timestamp(nowMs) },
  }
  resource.strategy.applyDefaults?.(copy)
  resource.strategy.prepareForCreate?.(copy, { nowMs, isDryRun: false, subresource: '', warn: () => undefined })
  resource.collection.put(keyFor(resource, namespace, name), copy)
}

/** Synchronous: a client never observes a cluster without its namespaces. */
export function bootstrap(backend: Backend): void {
  const { registry } = backend
  const resource = registry.find('', 'v1', 'namespaces') as Resource
  for (const name of namespaces)
    putWhenAbsent(backend, resource, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  for (const role of bootstrapRoles) {
    const kind = registry.findKind(role.apiVersion ?? '', role.kind ?? '')
    if (kind !== undefined) putWhenAbsent(backend, kind, role)
  }
}

/** The Service `kubernetes`, created through the normal write path, so that it gets the first address. */
export async function bootstrapService(backend: Backend): Promise<void> {
  const client = new SystemClient(backend, 'kube-apiserver')
  await client.ensure(backend.registry.find('', 'v1', 'services') as Resource, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'kubernetes', namespace: 'default', labels: { component: 'apiserver', provider: 'kubernetes' } },
    spec: { ports: [{ name: 'https', port: 443, protocol: 'TCP', targetPort: 6443 }] },
  })
}
