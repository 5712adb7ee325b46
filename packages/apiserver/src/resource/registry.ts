/**
 * The served resources: built-in kinds and the kinds of CustomResourceDefinitions, by group, version and plural.
 *
 * `generation` increases with every change, so that discovery and OpenAPI documents are built once per state.
 */
import { BUILTIN_KINDS, type BuiltinKind } from '../builtin/builtin.ts'
import { eventConverter } from './event-versions.ts'
import { builtinColumns } from '../table/printers.ts'
import type { Converter, Resource, ScalePaths, Strategy } from './resource.ts'
import type { CompiledSchema, Schema } from '../schema/model.ts'
import { compileSchema } from '../schema/schema.ts'
import type { FieldReader } from './selectors.ts'
import { builtinFields } from './selectable-fields.ts'
import type { Collection } from '../store/collection.ts'
import type { Store } from '../store/store.ts'
import { bodyPrefix } from '../store/stored-object.ts'
import type { Column } from '../table/table.ts'

/** Identifier of the collection that stores a resource: `services`, `widgets.example.dev`. */
function collectionId(group: string, plural: string): string {
  // The two Event APIs share one collection.
  if (plural === 'events' && group === 'events.k8s.io') return 'events'
  return group === '' ? plural : `${plural}.${group}`
}

const scalePaths: ScalePaths = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.status.selector',
}

class BuiltinResource implements Resource {
  readonly #kind: BuiltinKind
  readonly collection: Collection
  readonly strategy: Strategy
  readonly apiVersion: string
  readonly storageVersion: string
  readonly listKind: string
  readonly prefix: Buffer
  readonly isCustom = false
  readonly deprecationWarning: string | undefined
  readonly converter: Converter | undefined
  #columns: readonly Column[] | undefined
  #compiled: CompiledSchema | undefined

  constructor(kind: BuiltinKind, store: Store, strategy: Strategy) {
    this.#kind = kind
    this.strategy = strategy
    this.collection = store.collection(collectionId(kind.group, kind.plural))
    this.apiVersion = kind.group === '' ? kind.version : `${kind.group}/${kind.version}`
    this.storageVersion = kind.plural === 'events' ? 'v1' : this.apiVersion
    this.listKind = `${kind.kind}List`
    this.prefix = bodyPrefix(this.apiVersion, kind.kind)
    this.converter = kind.plural === 'events' ? eventConverter : undefined
    this.deprecationWarning =
      kind.kind === 'Endpoints'
        ? 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice'
        : undefined
  }

  get group(): string {
    return this.#kind.group
  }
  get version(): string {
    return this.#kind.version
  }
  get kind(): string {
    return this.#kind.kind
  }
  get plural(): string {
    return this.#kind.plural
  }
  get singular(): string {
    return this.#kind.singular
  }
  get namespaced(): boolean {
    return this.#kind.namespaced
  }
  get shortNames(): readonly string[] {
    return this.#kind.shortNames
  }
  get categories(): readonly string[] {
    return this.#kind.categories
  }
  get verbs(): readonly string[] {
    return this.#kind.verbs
  }
  get subresources(): readonly string[] {
    return this.#kind.subresources
  }
  get schema(): Schema {
    return this.#kind.schema
  }
  get columns(): readonly Column[] {
    this.#columns ??= builtinColumns(this.group, this.plural)
    return this.#columns
  }
  get selectableFields(): Readonly<Record<string, FieldReader>> {
    return builtinFields(this.group, this.plural)
  }
  get scale(): ScalePaths | undefined {
    return this.subresources.includes('scale') ? scalePaths : undefined
  }
  compiled(): CompiledSchema {
    this.#compiled ??= compileSchema(this.schema)
    return this.#compiled
  }
}

export interface GroupVersion {
  readonly group: string
  readonly version: string
  readonly resources: readonly Resource[]
}

export class Registry {
  readonly #builtin = new Map<string, Map<string, Resource>>()
  /** By group-version; each CRD contributes its served versions. */
  readonly #custom = new Map<string, Map<string, Resource>>()
  readonly #byDefinition = new Map<string, readonly Resource[]>()
  #generation = 1

  constructor(store: Store, strategyOf: (kind: BuiltinKind, collection: Collection) => Strategy) {
    for (const kind of BUILTIN_KINDS)
      put(
        this.#builtin,
        new BuiltinResource(kind, store, strategyOf(kind, store.collection(collectionId(kind.group, kind.plural)))),
      )
  }

  get generation(): number {
    return this.#generation
  }

  find(group: string, version: string, plural: string): Resource | undefined {
    const id = `${group}/${version}`
    return this.#builtin.get(id)?.get(plural) ?? this.#custom.get(id)?.get(plural)
  }

  /** Any served version of a resource; the first is the preferred one. */
  findAny(group: string, plural: string): Resource | undefined {
    return this.groupVersions()
      .filter((candidate) => candidate.group === group)
      .flatMap((candidate) => candidate.resources)
      .find((resource) => resource.plural === plural)
  }

  findKind(apiVersion: string, kind: string): Resource | undefined {
    const slash = apiVersion.indexOf('/')
    const id = slash < 0 ? `/${apiVersion}` : apiVersion
    for (const resources of [this.#builtin.get(id), this.#custom.get(id)]) {
      for (const resource of resources?.values() ?? []) if (resource.kind === kind) return resource
    }
    return undefined
  }

  isBuiltin(group: string, plural: string): boolean {
    for (const [id, resources] of this.#builtin)
      if (id.slice(0, id.indexOf('/')) === group && resources.has(plural)) return true
    return false
  }

  isBuiltinGroup(group: string): boolean {
    return [...this.#builtin.keys()].some((id) => id.slice(0, id.indexOf('/')) === group)
  }

  hasGroupVersion(group: string, version: string): boolean {
    const id = `${group}/${version}`
    return this.#builtin.has(id) || (this.#custom.get(id)?.size ?? 0) > 0
  }

  /** Replaces the resources of one CRD. */
  setCustom(definition: string, resources: readonly Resource[]): void {
    for (const old of this.#byDefinition.get(definition) ?? []) {
      const id = `${old.group}/${old.version}`
      this.#custom.get(id)?.delete(old.plural)
      if (this.#custom.get(id)?.size === 0) this.#custom.delete(id)
    }
    for (const resource of resources) put(this.#custom, resource)
    if (resources.length === 0) this.#byDefinition.delete(definition)
    else this.#byDefinition.set(definition, resources)
    this.#generation += 1
  }

  /** Group by group in order of preference, versions of a group newest first. */
  groupVersions(): GroupVersion[] {
    const all: GroupVersion[] = []
    for (const [id, resources] of [...this.#builtin, ...this.#custom]) {
      const slash = id.indexOf('/')
      const [group, version] = [id.slice(0, slash), id.slice(slash + 1)]
      const list = [...resources.values()]
      const same = all.find((other) => other.group === group && other.version === version)
      if (same === undefined) all.push({ group, version, resources: list.sort(byPlural) })
      else (same.resources as Resource[]).push(...list)
    }
    const order = [...new Set(all.map((one) => one.group))]
    return all.sort((a, b) => order.indexOf(a.group) - order.indexOf(b.group) || compareVersions(a.version, b.version))
  }

  *all(): Generator<Resource> {
    for (const resources of this.#builtin.values()) yield* resources.values()
    for (const resources of this.#custom.values()) yield* resources.values()
  }
}

function put(target: Map<string, Map<string, Resource>>, resource: Resource): void {
  const id = `${resource.group}/${resource.version}`
  const resources = target.get(id) ?? new Map<string, Resource>()
  resources.set(resource.plural, resource)
  target.set(id, resources)
}

const byPlural = (a: Resource, b: Resource): number => (a.plural < b.plural ? -1 : 1)

/** Order of preference: v2, v1, v1beta2, v1beta1, v1alpha1, then other names alphabetically. */
export function compareVersions(a: string, b: string): number {
  const parse = (version: string): [number, number, number] | undefined => {
    const found = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version)
    if (found === null) return undefined
    return [found[2] === undefined ? 2 : found[2] === 'beta' ? 1 : 0, Number(found[1]), Number(found[3] ?? 0)]
  }
  const [left, right] = [parse(a), parse(b)]
  if (left === undefined || right === undefined) return left === right ? (a < b ? -1 : 1) : left === undefined ? 1 : -1
  for (const [index, value] of left.entries()) {
    const other = right[index] as number
    if (value !== other) return other - value
  }
  return 0
}
