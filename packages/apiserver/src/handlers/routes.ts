/** Which requests a resource is served at: the paths of its objects and subresources, and the verbs that each supports. */
import type { RequestInfo } from '../exchange/request-info.ts'
import type { Resource } from '../resource/resource.ts'

function subresourceVerbs(subresource: string): readonly string[] {
  if (['token', 'eviction', 'binding'].includes(subresource)) return ['create']
  if (subresource === 'log') return ['get']
  if (['exec', 'attach', 'portforward'].includes(subresource)) return ['create', 'get']
  return subresource === 'finalize' ? ['update'] : ['get', 'update', 'patch']
}

/**
 * Whether a resource is served at the path of a request. A Role of namespace A authorizes requests below
 * `/namespaces/A/`, so a cluster-scoped object must not be reachable there; the path of a Namespace object itself,
 * `/api/v1/namespaces/A`, is the only one that names a namespace without being inside of it.
 */
export function isRouted(resource: Resource, info: RequestInfo): boolean {
  if (info.hasExtraSegments) return false
  if (resource.namespaced) return info.isInNamespace || info.name === ''
  if (info.isInNamespace) return false
  return info.namespace === '' || (resource.group === '' && resource.plural === 'namespaces')
}

/** Whether a resource or subresource supports the verb. */
export function isAllowed(resource: Resource, info: RequestInfo): boolean {
  if (info.subresource !== '') return subresourceVerbs(info.subresource).includes(info.verb)
  if (info.name !== '' && info.verb === 'create') return false
  if (info.name === '' && ['update', 'patch', 'get', 'delete'].includes(info.verb)) return false
  if (resource.namespaced && info.namespace === '' && ['create', 'deletecollection'].includes(info.verb)) return false
  return resource.verbs.includes(info.verb)
}
