/** Attributes of a request, read from its method and path alone; used by routing, authorization and messages. */
export interface RequestInfo {
  readonly isResource: boolean
  readonly path: string
  /** get, list, watch, create, update, patch, delete, deletecollection; for other paths the method in lower case. */
  readonly verb: string
  readonly group: string
  readonly version: string
  readonly namespace: string
  readonly resource: string
  readonly subresource: string
  readonly name: string
  /** Path segments after the subresource. No route has any, but authorization precedes routing. */
  readonly hasExtraSegments: boolean
  /** `…/namespaces/A/resource…`: the namespace is the scope, not the object itself as in `/api/v1/namespaces/A`. */
  readonly isInNamespace: boolean
}

const verbs: Record<string, string> = {
  POST: 'create',
  GET: 'get',
  HEAD: 'get',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
}

/** Subresources of a namespace itself; any other third segment is a resource inside it. */
const namespaceSubresources = new Set(['status', 'finalize'])

/**
 * Path segments; undefined when an escape is malformed. The path is decoded before it is split, as Go does: `%2F` separates
 * segments, so no namespace or name contains a slash.
 */
function decodeSegments(path: string): string[] | undefined {
  try {
    const decoded = path.includes('%') ? decodeURIComponent(path) : path
    return decoded.split('/').filter((segment) => segment !== '')
  } catch {
    return undefined
  }
}

export function readRequestInfo(method: string, path: string, query: URLSearchParams): RequestInfo | undefined {
  const segments = decodeSegments(path)
  if (segments === undefined) return undefined
  const verb = verbs[method] ?? method.toLowerCase()
  const other = {
    isResource: false,
    path,
    verb: method.toLowerCase(),
    group: '',
    version: '',
    namespace: '',
    resource: '',
    subresource: '',
    name: '',
    hasExtraSegments: false,
    isInNamespace: false,
  }
  const prefix = segments[0]
  if (prefix !== 'api' && prefix !== 'apis') return other
  const head = prefix === 'api' ? 2 : 3
  // /api/v1 and /apis/group/version are discovery, not resources.
  if (segments.length <= head) return other
  const group = prefix === 'api' ? '' : (segments[1] as string)
  const version = segments[head - 1] as string
  let parts = segments.slice(head)
  let isWatchPath = false
  if (parts[0] === 'watch') {
    isWatchPath = true
    parts = parts.slice(1)
  }
  let namespace = ''
  let isInNamespace = false
  if (parts[0] === 'namespaces') {
    namespace = parts[1] ?? ''
    const third = parts[2]
    isInNamespace = third !== undefined && !namespaceSubresources.has(third)
    if (isInNamespace) parts = parts.slice(2)
  }
  const [resource = '', name = '', subresource = ''] = parts
  return {
    isResource: true,
    path,
    verb: resourceVerb(verb, name, query, isWatchPath),
    group,
    version,
    namespace,
    resource,
    subresource,
    name,
    hasExtraSegments: parts.length > 3,
    isInNamespace,
  }
}

function resourceVerb(verb: string, name: string, query: URLSearchParams, isWatchPath: boolean): string {
  if (isWatchPath) return 'watch'
  if (name === '') {
    if (verb === 'get') return isTrue(query.get('watch')) ? 'watch' : 'list'
    if (verb === 'delete') return 'deletecollection'
  }
  return verb
}

/** Booleans in a query: present and neither `false` nor `0`. */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== 'false' && value !== '0'
}
