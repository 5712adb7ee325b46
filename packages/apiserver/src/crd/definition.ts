/** Reads CustomResourceDefinitions into a `Resource` per served version. */
import type { Converter, Resource, ScalePaths, Strategy } from '../resource/resource.ts'
import { parseJsonPath } from '../codec/json-path.ts'
import { type ApiObject, asRecords, asStrings, getPath, isRecord, type Json } from '../codec/object-shape.ts'
import { compareVersions } from '../resource/registry.ts'
import type { CompiledSchema, Schema } from '../schema/model.ts'
import { compileSchema } from '../schema/schema.ts'
import type { FieldReader } from '../resource/selectors.ts'
import type { Collection } from '../store/collection.ts'
import type { Store } from '../store/store.ts'
import { bodyPrefix } from '../store/stored-object.ts'
import { age, ageColumn, type Column, nameColumn } from '../table/table.ts'

export const cleanupFinalizer = 'customresourcecleanup.apiextensions.k8s.io'

const allVerbs = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'] as const

const text = (value: unknown, fallback = ''): string => (typeof value === 'string' ? value : fallback)

export interface Names {
  readonly plural: string
  readonly singular: string
  readonly kind: string
  readonly listKind: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
}

export function readNames(definition: ApiObject): Names {
  const names = getPath(definition, 'spec', 'names')
  const kind = text(getPath(names, 'kind'))
  return {
    plural: text(getPath(names, 'plural')),
    kind,
    singular: text(getPath(names, 'singular'), kind.toLowerCase()),
    listKind: text(getPath(names, 'listKind'), `${kind}List`),
    shortNames: asStrings(getPath(names, 'shortNames')),
    categories: asStrings(getPath(names, 'categories')),
  }
}

export function readVersions(definition: ApiObject): Json[] {
  return asRecords(getPath(definition, 'spec', 'versions'))
}

export function isTerminating(definition: ApiObject): boolean {
  return definition.metadata.deletionTimestamp !== undefined
}

/** The value of a typed column; a value of another type is omitted. */
function cell(type: string, values: readonly unknown[], nowMs: number): unknown {
  const [value] = values
  if (value === undefined || value === null) return null
  switch (type) {
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null
    case 'number':
      return typeof value === 'number' ? value : null
    case 'boolean':
      return typeof value === 'boolean' ? value : null
    case 'date':
      return typeof value === 'string' && !Number.isNaN(Date.parse(value)) ? age(value, nowMs) : '<invalid>'
    default:
      return typeof value === 'object' ? JSON.stringify(value) : String(value)
  }
}

function readColumns(version: Json): Column[] {
  const columns = asRecords(version['additionalPrinterColumns'])
  if (columns.length === 0) return [nameColumn, { ...ageColumn, type: 'date' }]
  return [
    nameColumn,
    ...columns.map((column): Column => {
      const path = parseJsonPath(text(column['jsonPath']))
      const type = text(column['type'], 'string')
      return {
        name: text(column['name']),
        type,
        format: text(column['format']),
        description: text(column['description']),
        priority: Number(column['priority'] ?? 0),
        read: (object, nowMs) => cell(type, path?.read(object) ?? [], nowMs),
      }
    }),
  ]
}

function readScale(version: Json): ScalePaths | undefined {
  const scale = getPath(version, 'subresources', 'scale')
  if (!isRecord(scale)) return undefined
  const selector = scale['labelSelectorPath']
  return {
    specReplicasPath: text(scale['specReplicasPath']),
    statusReplicasPath: text(scale['statusReplicasPath']),
    labelSelectorPath: typeof selector === 'string' ? selector : undefined,
  }
}

function readSelectableFields(version: Json): Record<string, FieldReader> {
  const entries = asRecords(version['selectableFields']).map(({ jsonPath }): [string, FieldReader] => {
    const path = parseJsonPath(text(jsonPath))
    return [text(jsonPath).replace(/^\./, ''), (stored) => String(path?.read(stored.object)[0] ?? '')]
  })
  return Object.fromEntries(entries)
}

const customStrategy: Strategy = { hasGeneration: true }

class CustomResource implements Resource {
  readonly group: string
  readonly version: string
  readonly apiVersion: string
  readonly kind: string
  readonly listKind: string
  readonly plural: string
  readonly singular: string
  readonly namespaced: boolean
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly verbs = allVerbs
  readonly subresources: readonly string[]
  readonly isCustom = true
  readonly collection: Collection
  readonly storageVersion: string
  readonly schema: Schema | undefined
  readonly prefix: Buffer
  readonly columns: readonly Column[]
  readonly selectableFields: Readonly<Record<string, FieldReader>>
  readonly strategy = customStrategy
  readonly scale: ScalePaths | undefined
  readonly converter: Converter | undefined
  readonly deprecationWarning: string | undefined
  #compiled: CompiledSchema | undefined

  constructor(definition: ApiObject, version: Json, storage: string, store: Store, converter: Converter | undefined) {
    const names = readNames(definition)
    this.group = text(getPath(definition, 'spec', 'group'))
    this.version = text(version['name'])
    this.apiVersion = `${this.group}/${this.version}`
    this.kind = names.kind
    this.listKind = names.listKind
    this.plural = names.plural
    this.singular = names.singular
    this.shortNames = names.shortNames
    this.categories = names.categories
    this.namespaced = getPath(definition, 'spec', 'scope') === 'Namespaced'
    this.collection = store.collection(`${names.plural}.${this.group}`)
    this.storageVersion = `${this.group}/${storage}`
    const schema = getPath(version, 'schema', 'openAPIV3Schema')
    this.schema = isRecord(schema) ? schema : undefined
    this.prefix = bodyPrefix(this.apiVersion, names.kind)
    this.columns = readColumns(version)
    this.selectableFields = readSelectableFields(version)
    this.scale = readScale(version)
    const hasStatus = isRecord(getPath(version, 'subresources', 'status'))
    this.subresources = [...(hasStatus ? ['status'] : []), ...(this.scale === undefined ? [] : ['scale'])]
    this.converter = converter
    this.deprecationWarning = version['deprecated'] === true ? deprecation(definition, version, this) : undefined
  }

  compiled(): CompiledSchema | undefined {
    if (this.schema !== undefined) this.#compiled ??= compileSchema(this.schema)
    return this.#compiled
  }
}

/** The given text, or the version to use instead. */
function deprecation(definition: ApiObject, version: Json, resource: CustomResource): string {
  const given = version['deprecationWarning']
  if (typeof given === 'string') return given
  const better = readVersions(definition)
    .filter((candidate) => candidate['served'] === true && candidate['deprecated'] !== true)
    .map((candidate) => text(candidate['name']))
    .filter((candidate) => compareVersions(candidate, resource.version) < 0)
    .sort(compareVersions)[0]
  const instead = better === undefined ? '' : `; use ${resource.group}/${better} ${resource.kind}`
  return `${resource.apiVersion} ${resource.kind} is deprecated${instead}`
}

/** The resources a definition serves, one per served version. */
export function readResources(definition: ApiObject, store: Store, converter: Converter | undefined): Resource[] {
  const versions = readVersions(definition)
  const storage = text(versions.find((version) => version['storage'] === true)?.['name'])
  return versions
    .filter((version) => version['served'] === true)
    .map((version) => new CustomResource(definition, version, storage, store, converter))
}
