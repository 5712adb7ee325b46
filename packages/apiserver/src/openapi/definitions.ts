/**
 * Named schemas of OpenAPI documents: built-in types become definitions that reference each other, a custom kind
 * becomes one definition with everything inline. Internal schema properties (zero, optional, typeName) are omitted.
 *
 * `dialect` v3 is complete; v2 cannot express nullable, anyOf and int-or-string and omits them.
 */
import { schemaOfType } from '../builtin/builtin-schema.ts'
import type { Schema } from '../schema/model.ts'

export type Dialect = 'v2' | 'v3'
export type Json = Record<string, unknown>

/** One served kind, as used by the OpenAPI documents. */
export interface OpenApiKind {
  group: string
  version: string
  kind: string
  plural: string
  namespaced: boolean
  subresources: readonly string[]
  /** Custom resources do not support strategic merge patch, and the document declares that. */
  isCustom?: boolean
  verbs?: readonly string[]
  schema: Schema | undefined
}

const PACKAGES: ReadonlyMap<string, string> = new Map([
  ['meta', 'io.k8s.apimachinery.pkg.apis.meta'],
  ['apiextensions', 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions'],
])

/** `core.v1.Service` → `io.k8s.api.core.v1.Service` */
function typeDefinitionName(typeName: string): string {
  const [pkg = '', ...rest] = typeName.split('.')
  return [PACKAGES.get(pkg) ?? `io.k8s.api.${pkg}`, ...rest].join('.')
}

/** `Widget` of `example.dev/v1` → `dev.example.v1.Widget` */
function kindDefinitionName({ group, version, kind, schema }: OpenApiKind): string {
  if (schema?.typeName !== undefined) return typeDefinitionName(schema.typeName)
  return [...group.split('.').toReversed(), version, kind].join('.')
}

const DROPPED: ReadonlySet<string> = new Set([
  'typeName',
  'zero',
  'hasMicroseconds',
  'optional',
  'externalDocs',
  'example',
])
const V3_ONLY: ReadonlySet<string> = new Set(['nullable', 'anyOf', 'oneOf', 'not'])
const OBJECT_META = 'meta.v1.ObjectMeta'

export class Definitions {
  readonly schemas: Record<string, Json> = {}
  readonly #dialect: Dialect

  constructor(dialect: Dialect) {
    this.#dialect = dialect
  }

  /** Adds a kind and its list; returns the name of the kind's definition. */
  addKind(kind: OpenApiKind): string {
    const name = kindDefinitionName(kind)
    const { group, version } = kind
    const definition =
      kind.schema?.typeName === undefined ? this.#customObject(kind.schema) : this.#typeDefinition(kind.schema)
    const properties = definition['properties'] as Json | undefined
    this.schemas[name] = {
      ...definition,
      properties: { apiVersion: { type: 'string' }, kind: { type: 'string' }, ...properties },
      'x-kubernetes-group-version-kind': [{ group, kind: kind.kind, version }],
    }
    this.schemas[`${name}List`] = {
      type: 'object',
      required: ['items'],
      properties: {
        apiVersion: { type: 'string' },
        items: { type: 'array', items: this.reference(name) },
        kind: { type: 'string' },
        metadata: this.typeReference('meta.v1.ListMeta'),
      },
      'x-kubernetes-group-version-kind': [{ group, kind: `${kind.kind}List`, version }],
    }
    return name
  }

  reference(name: string): Json {
    return { $ref: `#/${this.#dialect === 'v3' ? 'components/schemas' : 'definitions'}/${name}` }
  }

  #customObject(schema: Schema | undefined): Json {
    const definition =
      schema === undefined ? { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } : this.#inline(schema)
    const { metadata: _, ...properties } = (definition['properties'] ?? {}) as Json
    return { ...definition, properties: { ...properties, metadata: this.typeReference(OBJECT_META) } }
  }

  /** A reference to a built-in type, which is defined if necessary. */
  typeReference(typeName: string): Json {
    const name = typeDefinitionName(typeName)
    if (!Object.hasOwn(this.schemas, name)) {
      // Reserved first: a type may contain itself.
      this.schemas[name] = {}
      this.schemas[name] = this.#typeDefinition(schemaOfType(typeName))
    }
    return this.#dialect === 'v3' ? { allOf: [this.reference(name)] } : this.reference(name)
  }

  #typeDefinition(schema: Schema): Json {
    const definition: Json = { type: 'object' }
    if (schema.required !== undefined) definition['required'] = schema.required
    if (schema['x-kubernetes-map-type'] !== undefined)
      definition['x-kubernetes-map-type'] = schema['x-kubernetes-map-type']
    definition['properties'] = this.#fields(schema.properties ?? {})
    return definition
  }

  #fields(properties: Record<string, Schema>): Json {
    return Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, this.#field(property)]))
  }

  #field(schema: Schema): Json {
    if (schema.typeName === undefined || schema.properties === undefined) return this.#inline(schema)
    const reference = this.typeReference(schema.typeName)
    const strategy = schema['x-kubernetes-patch-strategy']
    return strategy === undefined || this.#dialect === 'v2'
      ? reference
      : { ...reference, 'x-kubernetes-patch-strategy': strategy }
  }

  #inline(schema: Schema): Json {
    const result: Json = {}
    for (const [key, value] of Object.entries(schema)) {
      if (DROPPED.has(key) || (this.#dialect === 'v2' && V3_ONLY.has(key))) continue
      if (key === 'properties') result[key] = this.#fields(value as Record<string, Schema>)
      else if (key === 'items' || key === 'not') result[key] = this.#field(value as Schema)
      else if (key === 'allOf' || key === 'anyOf' || key === 'oneOf')
        result[key] = (value as Schema[]).map((sub) => this.#inline(sub))
      else if (key !== 'additionalProperties') result[key] = value
    }
    this.#additional(schema, result)
    if (schema['x-kubernetes-int-or-string'] === true) this.#intOrString(schema, result)
    if (this.#dialect === 'v2' && schema.nullable === true) delete result['type']
    if (schema['x-kubernetes-embedded-resource'] === true) {
      const properties = (result['properties'] ?? {}) as Json
      result['properties'] = {
        apiVersion: { type: 'string' },
        kind: { type: 'string' },
        ...properties,
        metadata: this.typeReference(OBJECT_META),
      }
    }
    return result
  }

  /** `additionalProperties: true` breaks `kubectl explain` of some versions; the extension is equivalent. */
  #additional({ additionalProperties }: Schema, result: Json): void {
    if (additionalProperties === true) result['x-kubernetes-preserve-unknown-fields'] = true
    else if (typeof additionalProperties === 'object')
      result['additionalProperties'] = this.#field(additionalProperties)
  }

  #intOrString(schema: Schema, result: Json): void {
    if (this.#dialect === 'v2') {
      if (schema.format !== 'int-or-string') delete result['type']
      return
    }
    delete result['type']
    if (schema.format === 'int-or-string') result['oneOf'] = [{ type: 'integer' }, { type: 'string' }]
  }
}
