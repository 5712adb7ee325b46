/** Paths of OpenAPI documents: enough for clients to find kinds, their operations and the parameters of PATCH. */
import type { Definitions, Dialect, Json, OpenApiKind } from './definitions.ts'

const WRITE_PARAMETERS = ['dryRun', 'fieldManager', 'fieldValidation']
const PATCH_TYPES = ['application/json-patch+json', 'application/merge-patch+json', 'application/apply-patch+yaml']
const BUILTIN_PATCH_TYPES = [...PATCH_TYPES, 'application/strategic-merge-patch+json']

/** HTTP method, verb of discovery, action. */
const ITEM_OPERATIONS = [
  ['get', 'get', 'get'],
  ['put', 'update', 'put'],
  ['patch', 'patch', 'patch'],
  ['delete', 'delete', 'delete'],
] as const
const COLLECTION_OPERATIONS = [
  ['get', 'list', 'list'],
  ['post', 'create', 'post'],
  ['delete', 'deletecollection', 'deletecollection'],
] as const

export function pathsOf(
  kind: OpenApiKind,
  definitions: Definitions,
  definition: string,
  dialect: Dialect,
): Record<string, Json> {
  const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`
  const scope = kind.namespaced ? '/namespaces/{namespace}' : ''
  const collection = `${root}${scope}/${kind.plural}`
  const item = (operations: readonly (readonly [string, string, string])[], result: string): Json =>
    Object.fromEntries(
      operations
        .filter(([, verb]) => kind.verbs === undefined || kind.verbs.includes(verb))
        .map(([method, , action]) => [method, operation(kind, action, definitions.reference(result), dialect)]),
    )
  const paths: Record<string, Json> = { [collection]: item(COLLECTION_OPERATIONS, `${definition}List`) }
  if (kind.verbs === undefined || kind.verbs.includes('get'))
    paths[`${collection}/{name}`] = item(ITEM_OPERATIONS, definition)
  if (kind.subresources.includes('status'))
    paths[`${collection}/{name}/status`] = item(ITEM_OPERATIONS.slice(0, 3), definition)
  if (kind.namespaced && scope !== '') {
    const list = item(COLLECTION_OPERATIONS.slice(0, 1), `${definition}List`)
    if (Object.keys(list).length > 0) paths[`${root}/${kind.plural}`] = list
  }
  return paths
}

function operation(kind: OpenApiKind, action: string, reference: Json, dialect: Dialect): Json {
  const { group, version } = kind
  const isWrite = action === 'post' || action === 'put' || action === 'patch'
  const names = isWrite
    ? action === 'patch'
      ? [...WRITE_PARAMETERS, 'force']
      : WRITE_PARAMETERS
    : action === 'delete'
      ? ['dryRun']
      : []
  const result: Json = {
    operationId: `${action}_${group}_${version}_${kind.plural}`.replaceAll(/[.-]/g, '_'),
    parameters: names.map((name) => parameter(name, dialect)),
    responses: { 200: response(reference, dialect) },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { group, version, kind: kind.kind },
  }
  if (dialect === 'v3' && action === 'patch') {
    result['requestBody'] = {
      content: Object.fromEntries(
        (kind.isCustom === true ? PATCH_TYPES : BUILTIN_PATCH_TYPES).map((type) => [
          type,
          { schema: { type: 'object' } },
        ]),
      ),
      required: true,
    }
  } else if (dialect === 'v3' && isWrite) {
    result['requestBody'] = { content: { 'application/json': { schema: reference } }, required: true }
  }
  return result
}

function parameter(name: string, dialect: Dialect): Json {
  const type = name === 'force' ? 'boolean' : 'string'
  return dialect === 'v3'
    ? { name, in: 'query', schema: { type, uniqueItems: true } }
    : { name, in: 'query', type, uniqueItems: true }
}

function response(reference: Json, dialect: Dialect): Json {
  return dialect === 'v3'
    ? { description: 'OK', content: { 'application/json': { schema: reference } } }
    : { description: 'OK', schema: reference }
}
