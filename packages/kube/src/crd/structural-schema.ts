/**
 * Converts zod schemas to the structural OpenAPI v3 schema of a CRD.
 *
 * Place in the flow: `defineKind` (kind-definition.ts) → here → `customResourceDefinition`.
 * Invariants: a schema that Kubernetes cannot express is an error that names the field, when the program starts and not
 * when the CRD is installed: unions other than int-or-string, references and cycles, patterns that Go's RE2 cannot
 * compile, unknown keywords. Model a union as one optional field per variant plus a CEL rule. The server prunes unknown
 * fields, so a strict object needs no keyword; a loose one preserves them.
 */
import { z } from 'zod'
import { KubeError } from '../errors.ts'

export type StructuralSchema = Record<string, unknown>

/** JSONSchemaProps of apiextensions.k8s.io/v1, without the `x-kubernetes-` extensions. */
const KEYWORDS: ReadonlySet<string> = new Set([
  'additionalProperties',
  'allOf',
  'anyOf',
  'default',
  'description',
  'enum',
  'example',
  'exclusiveMaximum',
  'exclusiveMinimum',
  'externalDocs',
  'format',
  'items',
  'maximum',
  'maxItems',
  'maxLength',
  'maxProperties',
  'minimum',
  'minItems',
  'minLength',
  'minProperties',
  'multipleOf',
  'nullable',
  'pattern',
  'properties',
  'required',
  'title',
  'type',
])

/** Bounds added by `z.int()`: those of a double, which are removed. */
const LARGEST_INTEGER = Number.MAX_SAFE_INTEGER

type Json = Record<string, unknown>

export function structuralSchema(schema: z.ZodType): StructuralSchema {
  const json = z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input' }) as Json
  return convert(json, '')
}

function convert(given: Json, path: string): StructuralSchema {
  const { $schema: _dialect, ...rest } = given
  const schema: StructuralSchema = { ...rest }
  dropIntegerBounds(schema)
  if (schema['format'] === 'date-time') delete schema['pattern']
  checkPattern(schema['pattern'], path)
  convertObject(schema, path)
  if (isJson(schema['items'])) schema['items'] = convert(schema['items'], `${path}[]`)
  if (Array.isArray(schema['allOf'])) schema['allOf'] = (schema['allOf'] as Json[]).map((part) => valueOnly(part, path))
  if (schema['anyOf'] !== undefined) convertUnion(schema, path)
  const isTyped = 'type' in schema || schema['x-kubernetes-int-or-string'] === true
  if (!isTyped) schema['x-kubernetes-preserve-unknown-fields'] = true
  for (const key of Object.keys(schema)) {
    if (!KEYWORDS.has(key) && !key.startsWith('x-kubernetes-')) fail(path, `'${key}' cannot be said in a CRD`)
  }
  return schema
}

function convertObject(schema: StructuralSchema, path: string): void {
  delete schema['propertyNames']
  if (isJson(schema['properties'])) {
    const entries = Object.entries(schema['properties'])
    schema['properties'] = Object.fromEntries(
      entries.map(([name, property]) => [name, convert(property as Json, `${path}.${name}`)]),
    )
  }
  const additional = schema['additionalProperties']
  if (additional === undefined) return
  const isAny = additional === true || (isJson(additional) && Object.keys(additional).length === 0)
  const hasProperties = isJson(schema['properties']) && Object.keys(schema['properties']).length > 0
  if (additional === false) delete schema['additionalProperties']
  else if (isAny) {
    delete schema['additionalProperties']
    schema['x-kubernetes-preserve-unknown-fields'] = true
  } else if (hasProperties) fail(path, 'properties and a type for all others exclude each other in a CRD')
  else schema['additionalProperties'] = convert(additional as Json, `${path}.*`)
}

/** int-or-string, the only union supported by Kubernetes. */
function convertUnion(schema: StructuralSchema, path: string): void {
  const types = new Set((schema['anyOf'] as Json[]).map(({ type }) => type))
  if (types.size !== 2 || !types.has('integer') || !types.has('string'))
    fail(
      path,
      'a union is not allowed in a CRD; use one optional field per variant and a rule (x-kubernetes-validations)',
    )
  delete schema['type']
  schema['anyOf'] = [{ type: 'integer' }, { type: 'string' }]
  schema['x-kubernetes-int-or-string'] = true
}

/** Inside allOf only value validations are allowed. */
function valueOnly(given: Json, path: string): Json {
  const { type: _type, ...rest } = given
  checkPattern(rest['pattern'], path)
  return rest
}

function dropIntegerBounds(schema: StructuralSchema): void {
  if (schema['type'] !== 'integer') return
  if (schema['minimum'] === -LARGEST_INTEGER) delete schema['minimum']
  if (schema['maximum'] === LARGEST_INTEGER) delete schema['maximum']
}

/** RE2 has no look-around and no back-references. */
function checkPattern(pattern: unknown, path: string): void {
  if (typeof pattern !== 'string') return
  if (/\(\?(?:[=!]|<[=!])|\\[1-9]/.test(pattern)) fail(path, `pattern ${pattern} uses look-around or back-references`)
}

function fail(path: string, message: string): never {
  throw new KubeError('CRD_SCHEMA', `schema field ${path === '' ? '(root)' : path.replace(/^\./, '')}: ${message}`)
}

function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
