/**
 * Discovery: the served groups, versions and resources, in the legacy form and in the aggregated one (v2, v2beta1).
 * Documents are built once per registry generation and have an ETag.
 */
import { createHash } from 'node:crypto'
import { type ApiResponse, jsonResponse, textResponse, type WholeResponse } from '../exchange/exchange.ts'
import { parseAccept } from '../exchange/negotiate.ts'
import type { Json } from '../codec/object-shape.ts'
import type { GroupVersion, Registry } from '../resource/registry.ts'
import type { Resource } from '../resource/resource.ts'
import { unknownPath } from '../exchange/status.ts'

interface SubresourceKind {
  readonly kind: string
  readonly group?: string
  readonly version?: string
  readonly verbs: readonly string[]
}

const edit = ['get', 'patch', 'update']

function subresourceKind(resource: Resource, name: string): SubresourceKind {
  switch (name) {
    case 'scale':
      return { kind: 'Scale', group: 'autoscaling', version: 'v1', verbs: edit }
    case 'token':
      return { kind: 'TokenRequest', group: 'authentication.k8s.io', version: 'v1', verbs: ['create'] }
    case 'eviction':
      return { kind: 'Eviction', group: 'policy', version: 'v1', verbs: ['create'] }
    case 'binding':
      return { kind: 'Binding', verbs: ['create'] }
    case 'finalize':
      return { kind: resource.kind, verbs: ['update'] }
    case 'log':
      return { kind: resource.kind, verbs: ['get'] }
    case 'attach':
      return { kind: 'PodAttachOptions', verbs: ['create', 'get'] }
    case 'exec':
      return { kind: 'PodExecOptions', verbs: ['create', 'get'] }
    case 'portforward':
      return { kind: 'PodPortForwardOptions', verbs: ['create', 'get'] }
    default:
      return { kind: resource.kind, verbs: edit }
  }
}

function unlessEmpty(key: string, list: readonly string[]): Json {
  return list.length === 0 ? {} : { [key]: list }
}

function legacyResources(resource: Resource): Json[] {
  const { plural, singular, namespaced, kind, verbs, shortNames, categories, subresources } = resource
  return [
    {
      name: plural,
      singularName: singular,
      namespaced,
      kind,
      verbs,
      ...unlessEmpty('shortNames', shortNames),
      ...unlessEmpty('categories', categories),
      ...(verbs.includes('watch') ? { storageVersionHash: storageHash(resource) } : {}),
    },
    ...subresources.map((name) => {
      const { kind: subKind, group, version, verbs: subVerbs } = subresourceKind(resource, name)
      return {
        name: `${plural}/${name}`,
        singularName: '',
        namespaced,
        ...(group !== undefined && { group, version }),
        kind: subKind,
        verbs: subVerbs,
      }
    }),
  ]
}

function aggregatedResource(resource: Resource): Json {
  const { plural, singular, namespaced, kind, verbs, shortNames, categories, subresources } = resource
  const own = resource.isCustom ? { group: resource.group, version: resource.version } : { group: '', version: '' }
  return {
    resource: plural,
    responseKind: { ...own, kind },
    scope: namespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs,
    ...unlessEmpty('shortNames', shortNames),
    ...unlessEmpty('categories', categories),
    ...(subresources.length === 0
      ? {}
      : {
          subresources: subresources.map((name) => {
            const sub = subresourceKind(resource, name)
            return {
              subresource: name,
              responseKind: { group: sub.group ?? own.group, version: sub.version ?? own.version, kind: sub.kind },
              verbs: sub.verbs,
            }
          }),
        }),
  }
}

function storageHash({ group, storageVersion, kind }: Resource): string {
  const version = storageVersion.slice(storageVersion.indexOf('/') + 1)
  return createHash('sha256').update(`${group}/${version}/${kind}`).digest().subarray(0, 8).toString('base64')
}

export class Discovery {
  readonly #registry: Registry
  #generation = 0
  #documents = new Map<string, { value: Json; etag: string }>()

  constructor(registry: Registry) {
    this.#registry = registry
  }

  /** The response to a path under /api or /apis that is not a resource. Undefined: not a discovery path. */
  respond(
    path: string,
    headers: Readonly<Record<string, string | undefined>>,
    serverAddress: string,
  ): ApiResponse | undefined {
    const [root, group, version, ...rest] = path.split('/').filter((segment) => segment !== '')
    if (rest.length > 0) return undefined
    if (root === 'api') {
      if (group === undefined) return this.#root(true, headers, serverAddress)
      return version === undefined ? this.#resources('', group) : undefined
    }
    if (root !== 'apis') return undefined
    if (group === undefined) return this.#root(false, headers, serverAddress)
    return version === undefined ? this.#group(group) : this.#resources(group, version)
  }

  #root(isCore: boolean, headers: Readonly<Record<string, string | undefined>>, serverAddress: string): WholeResponse {
    const aggregated = aggregatedVersion(headers['accept'])
    if (aggregated === undefined) {
      return jsonResponse(
        200,
        isCore ? coreVersions(serverAddress) : { kind: 'APIGroupList', apiVersion: 'v1', groups: this.#groups() },
      )
    }
    const { value, etag } = this.#document(`${isCore ? 'api' : 'apis'}:${aggregated}`, () =>
      this.#aggregated(isCore, aggregated),
    )
    const contentType = `application/json;g=apidiscovery.k8s.io;v=${aggregated};as=APIGroupDiscoveryList`
    const common = { 'content-type': contentType, etag, vary: 'Accept', 'cache-control': 'public' }
    if (headers['if-none-match'] === etag) return { kind: 'whole', status: 304, headers: common, body: [] }
    return jsonResponse(200, value, common)
  }

  #document(name: string, make: () => Json): { value: Json; etag: string } {
    if (this.#generation !== this.#registry.generation) {
      this.#documents = new Map()
      this.#generation = this.#registry.generation
    }
    let document = this.#documents.get(name)
    if (document === undefined) {
      const value = make()
      document = { value, etag: `"${createHash('sha512').update(JSON.stringify(value)).digest('hex').toUpperCase()}"` }
      this.#documents.set(name, document)
    }
    return document
  }

  #byGroup(): Map<string, GroupVersion[]> {
    const groups = new Map<string, GroupVersion[]>()
    for (const one of this.#registry.groupVersions()) groups.set(one.group, [...(groups.get(one.group) ?? []), one])
    return groups
  }

  #groups(): Json[] {
    return [...this.#byGroup()]
      .filter(([group]) => group !== '')
      .map(([group, versions]) => describeGroup(group, versions))
  }

  #aggregated(isCore: boolean, version: string): Json {
    const items = [...this.#byGroup()]
      .filter(([group]) => (group === '') === isCore)
      .map(([group, versions]) => ({
        metadata: group === '' ? {} : { name: group },
        versions: versions.map((one) => ({
          version: one.version,
          resources: one.resources.map(aggregatedResource),
          freshness: 'Current',
        })),
      }))
    return { kind: 'APIGroupDiscoveryList', apiVersion: `apidiscovery.k8s.io/${version}`, metadata: {}, items }
  }

  #group(group: string): ApiResponse {
    const versions = this.#byGroup().get(group)
    if (versions === undefined || group === '') return textResponse(404, '404 page not found\n')
    return jsonResponse(200, { kind: 'APIGroup', apiVersion: 'v1', ...describeGroup(group, versions) })
  }

  #resources(group: string, version: string): ApiResponse {
    const found = this.#registry.groupVersions().find((one) => one.group === group && one.version === version)
    if (found === undefined) {
      if (this.#registry.isBuiltinGroup(group)) throw unknownPath()
      return textResponse(404, '404 page not found\n')
    }
    const groupVersion = group === '' ? version : `${group}/${version}`
    return jsonResponse(200, {
      kind: 'APIResourceList',
      ...(group !== '' && { apiVersion: 'v1' }),
      groupVersion,
      resources: found.resources.flatMap(legacyResources),
    })
  }
}

function describeGroup(group: string, versions: readonly GroupVersion[]): Json {
  const list = versions.map(({ version }) => ({ groupVersion: `${group}/${version}`, version }))
  return { name: group, versions: list, preferredVersion: list[0] }
}

function coreVersions(serverAddress: string): Json {
  return {
    kind: 'APIVersions',
    versions: ['v1'],
    serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }],
  }
}

/** The aggregated version that the client prefers; undefined selects the legacy form. */
function aggregatedVersion(accept: string | undefined): string | undefined {
  for (const clause of parseAccept(accept ?? '')) {
    const version = clause.parameters.get('v')
    const isAggregated =
      clause.parameters.get('g') === 'apidiscovery.k8s.io' && clause.parameters.get('as') === 'APIGroupDiscoveryList'
    if (isAggregated && (version === 'v2' || version === 'v2beta1')) return version
    if (!isAggregated && (clause.type === 'application/json' || clause.type === '*/*')) return undefined
  }
  return undefined
}
