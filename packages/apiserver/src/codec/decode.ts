/**
 * Decodes request bodies: JSON, YAML and, for built-in kinds, protobuf; then the checks of a typed decoder: kind,
 * types, unknown and duplicate fields.
 *
 * Flow: bytes → value → kind check → type check (built-in kinds) → prune. `fieldValidation` decides whether unknown and
 * duplicate fields are errors, warnings or ignored. Custom resources are pruned here, and type-checked by validation
 * later.
 */
import { findTypeName } from '../builtin/builtin.ts'
import { DecodeError, normalizeBuiltin } from '../builtin/normalize.ts'
import {
  explainSyntaxError,
  findDuplicateFields,
  findHugeNumber,
  findTooDeep,
  hasDuplicateFields,
} from './json-text.ts'
import { bodyMediaType, builtinMediaTypes, customMediaTypes } from '../exchange/negotiate.ts'
import { type ApiObject, getOwn, getPath, isDeeperThan, isRecord, type Json, MAX_OBJECT_DEPTH } from './object-shape.ts'
import type { Resource } from '../resource/resource.ts'
import type { Schema } from '../schema/model.ts'
import { invalidValue } from '../validation/metadata.ts'
import { badRequest, invalid, unsupportedMediaType } from '../exchange/status.ts'
import { explainTime } from './time-text.ts'

export type FieldValidation = 'Strict' | 'Warn' | 'Ignore'

export interface Decoded {
  readonly value: unknown
  /** The literal of a number that exceeds float64. */
  readonly hugeNumber?: string | undefined
  readonly duplicates: readonly string[]
}

/** JSON only, with the error messages of Go's decoder. */
export function parseJson(text: string): unknown {
  const deep = text.length > MAX_OBJECT_DEPTH ? findTooDeep(text, MAX_OBJECT_DEPTH) : undefined
  if (deep !== undefined) throw new SyntaxError(`invalid character '${deep}' exceeded max depth`)
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new SyntaxError(explainSyntaxError(text) ?? 'invalid JSON')
  }
}

export async function parseYaml(text: string): Promise<unknown> {
  // Controllers declare YAML and send JSON, which is valid YAML and much faster to parse.
  if (text.startsWith('{')) {
    try {
      const value = JSON.parse(text) as unknown
      return requireShallow(value)
    } catch (error) {
      if (error instanceof NestingError) throw error
      // Flow-style YAML that is not JSON.
    }
  }
  const { parseYamlDocument } = await import('./yaml-text.ts')
  return requireShallow(parseYamlDocument(text))
}

class NestingError extends SyntaxError {}

function requireShallow(value: unknown): unknown {
  if (isDeeperThan(value, MAX_OBJECT_DEPTH)) throw new NestingError('yaml: exceeded max depth')
  return value
}

/** The body in its declared format; any value is accepted. */
export async function decodeBody(
  body: Buffer,
  contentType: string | undefined,
  accepted: readonly string[],
): Promise<Decoded> {
  const media = bodyMediaType(contentType)
  if (!accepted.includes(media)) throw unsupportedMediaType(accepted)
  if (media === 'application/vnd.kubernetes.protobuf') {
    const { decodeProtobuf, UnsupportedKind } = await import('../protobuf/decoder.ts')
    try {
      const { apiVersion, kind, object } = decodeProtobuf(body)
      // Fields with raw JSON have no schema that limits their depth.
      if (isDeeperThan(object, MAX_OBJECT_DEPTH)) throw new SyntaxError('exceeded max depth')
      return { value: { ...object, apiVersion, kind }, duplicates: [] }
    } catch (error) {
      if (error instanceof UnsupportedKind) throw unsupportedMediaType(customMediaTypes)
      throw badRequest(error instanceof Error ? error.message : String(error))
    }
  }
  const text = body.toString()
  if (media === 'application/yaml') return { value: await parseYaml(text), duplicates: [] }
  const value = parseJson(text)
  const duplicates = hasDuplicateFields(text, value) ? findDuplicateFields(text) : []
  return { value, duplicates, hugeNumber: findHugeNumber(text) }
}

function summarize(body: Buffer): string {
  if (body.length === 0) return '<empty>'
  const cut = body.subarray(0, 30)
  const text = body[0] === 0x7b ? cut.toString() : cut.toString('hex')
  return body.length > 30 ? `${text} ...` : text
}

const goType = (value: unknown): string =>
  value === null
    ? 'null'
    : Array.isArray(value)
      ? 'array'
      : typeof value === 'object'
        ? 'object'
        : typeof value === 'boolean'
          ? 'bool'
          : typeof value

const versionKind =
  'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'

/** Why a value cannot be an object; undefined when it can. */
function explainShape(value: unknown): string | undefined {
  if (value === null) return undefined
  if (!isRecord(value)) return `json: cannot unmarshal ${goType(value)} into Go value of type ${versionKind}`
  for (const field of ['apiVersion', 'kind']) {
    const found = value[field]
    if (found !== undefined && found !== null && typeof found !== 'string') {
      return `json: cannot unmarshal ${goType(found)} into Go struct field .${field} of type string`
    }
  }
  return undefined
}

/** An object of `resource`, from a body that must contain one. */
export async function decodeObject(
  body: Buffer,
  contentType: string | undefined,
  resource: Resource,
  validation: FieldValidation,
  warn: (message: string) => void,
): Promise<ApiObject> {
  const unrecognized = (why: string): Error =>
    badRequest(
      `the object provided is unrecognized (must be of type ${resource.kind}): couldn't get version/kind; json parse error: ${why} (${summarize(body)})`,
    )
  let decoded: Decoded
  try {
    decoded = await decodeBody(body, contentType, resource.isCustom ? customMediaTypes : builtinMediaTypes)
  } catch (error) {
    if (error instanceof SyntaxError) throw unrecognized(error.message)
    throw error
  }
  const shape = explainShape(decoded.value)
  if (shape !== undefined) throw unrecognized(shape)
  if (resource.isCustom && getOwn(decoded.value, 'kind') === undefined) {
    const missing = `Object 'Kind' is missing in '${body.toString()}'`
    throw badRequest(
      `the object provided is unrecognized (must be of type ${resource.kind}): ${missing} (${summarize(body)})`,
    )
  }
  if (decoded.hugeNumber !== undefined) {
    throw badRequest(
      `${resource.kind} in version ${JSON.stringify(resource.version)} cannot be handled as a ${resource.kind}: json: cannot unmarshal number ${decoded.hugeNumber} into Go value of type float64`,
    )
  }
  return checkObject((decoded.value ?? {}) as Json, resource, validation, decoded.duplicates, warn)
}

/** Checks kind, types and unknown fields of a decoded value; the value is pruned in place and returned. */
export function checkObject(
  value: Json,
  resource: Resource,
  validation: FieldValidation,
  duplicates: readonly string[],
  warn: (message: string) => void,
): ApiObject {
  const { apiVersion = '', kind = '' } = value as { apiVersion?: string; kind?: string }
  checkKind(resource, apiVersion, kind, String(getPath(value, 'metadata', 'name') ?? ''))
  const handled = (why: string): Error =>
    badRequest(
      `${resource.kind} in version ${JSON.stringify(resource.version)} cannot be handled as a ${resource.kind}: ${why}`,
    )
  const typeProblem = explainMetadataTypes(value, resource)
  if (typeProblem !== undefined) throw handled(typeProblem)
  value['apiVersion'] = resource.apiVersion
  value['kind'] = resource.kind
  if (!isRecord(value['metadata'])) value['metadata'] = {}
  const unknown = pruneObject(value, resource)
  if (!resource.isCustom && resource.schema !== undefined) {
    try {
      normalizeBuiltin(resource.schema, value)
      checkBytes(value, resource.schema)
    } catch (error) {
      throw error instanceof DecodeError ? handled(error.message) : error
    }
  }
  const duplicated = duplicates.map((path) => `duplicate field ${JSON.stringify(path)}`)
  const undeclared = unknown.map((path) => `unknown field ${JSON.stringify(path)}`)
  // Typed decoders report duplicates first, the dynamic decoder reports them last.
  const problems = resource.isCustom ? [...undeclared, ...duplicated] : [...duplicated, ...undeclared]
  if (problems.length > 0 && validation === 'Strict') throw handled(`strict decoding error: ${problems.join(', ')}`)
  if (validation === 'Warn') for (const problem of problems) warn(problem)
  return value as ApiObject
}

function checkKind(resource: Resource, apiVersion: string, kind: string, name: string): void {
  const isSameVersion = apiVersion === '' || apiVersion === resource.apiVersion
  if (isSameVersion && (kind === '' || kind === resource.kind)) return
  if (resource.isCustom) {
    if (!isSameVersion) {
      throw badRequest(
        `the API version in the data (${apiVersion}) does not match the expected API version (${resource.apiVersion})`,
      )
    }
    throw invalid({ group: resource.group, kind }, name, [invalidValue('kind', kind, `must be ${resource.kind}`)])
  }
  const version = apiVersion.slice(apiVersion.indexOf('/') + 1)
  const goPackage = version
  const isKnown = kind === '' || findTypeName(apiVersion === '' ? resource.apiVersion : apiVersion, kind) !== undefined
  const why =
    isSameVersion && isKnown
      ? `converting (${goPackage}.${kind}) to (${resource.group === '' ? 'core' : (resource.group.split('.')[0] ?? '')}.${resource.kind}): unknown conversion`
      : `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)} in scheme "pkg/runtime/scheme.go:111"`
  throw badRequest(
    `${kind} in version ${JSON.stringify(version === '' ? resource.version : version)} cannot be handled as a ${resource.kind}: ${why}`,
  )
}

const metadataFields = new Set([
  'name',
  'generateName',
  'namespace',
  'selfLink',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'ownerReferences',
  'finalizers',
  'managedFields',
])

/** Drops unknown fields in place; returns their paths. */
export function pruneObject(value: Json, resource: Resource): string[] {
  const unknown: string[] = []
  const metadata = value['metadata']
  if (isRecord(metadata)) {
    for (const key of Object.keys(metadata)) {
      if (metadataFields.has(key)) {
        if (metadata[key] === null) delete metadata[key]
      } else {
        unknown.push(`metadata.${key}`)
        delete metadata[key]
      }
    }
  }
  const compiled = resource.compiled()
  if (compiled !== undefined) unknown.push(...compiled.prune(value))
  return unknown
}

/** Go's error for the first value of a wrong type in the metadata. */
function explainMetadataTypes(value: Json, resource: Resource): string | undefined {
  const metadata = value['metadata']
  if (metadata === undefined || metadata === null) return undefined
  if (!isRecord(metadata)) {
    return `json: cannot unmarshal ${goType(metadata)} into Go struct field ${resource.kind}.metadata of type v1.ObjectMeta`
  }
  return explainMetadata(metadata)
}

function explainMetadata(metadata: Json): string | undefined {
  for (const key of ['name', 'generateName', 'namespace', 'uid', 'resourceVersion']) {
    const found = metadata[key]
    if (found !== undefined && found !== null && typeof found !== 'string')
      return mismatch(found, `ObjectMeta.metadata.${key}`, 'string')
  }
  for (const key of ['labels', 'annotations']) {
    const found = metadata[key]
    if (found === undefined || found === null) continue
    if (!isRecord(found)) return mismatch(found, `ObjectMeta.metadata.${key}`, 'map[string]string')
    for (const name of Object.keys(found)) {
      const item = found[name]
      if (item === null) found[name] = ''
      else if (typeof item !== 'string') return mismatch(item, `ObjectMeta.metadata.${key}`, 'string')
    }
  }
  for (const key of ['finalizers', 'ownerReferences', 'managedFields']) {
    const found = metadata[key]
    if (found === undefined || found === null) continue
    const element =
      key === 'finalizers' ? 'string' : key === 'ownerReferences' ? 'v1.OwnerReference' : 'v1.ManagedFieldsEntry'
    if (!Array.isArray(found)) return mismatch(found, `ObjectMeta.metadata.${key}`, `[]${element}`)
    const invalidItem: unknown = found.find((item: unknown) =>
      key === 'finalizers' ? typeof item !== 'string' : !isRecord(item),
    )
    if (invalidItem !== undefined) return mismatch(invalidItem, `ObjectMeta.metadata.${key}`, element)
  }
  for (const key of ['creationTimestamp', 'deletionTimestamp']) {
    const found = metadata[key]
    if (found === undefined || found === null) continue
    if (typeof found !== 'string') return mismatch(found, `ObjectMeta.metadata.${key}`, 'string')
    const problem = explainTime(found)
    if (problem !== undefined) return problem
  }
  for (const key of ['generation', 'deletionGracePeriodSeconds']) {
    const found = metadata[key]
    if (found !== undefined && found !== null && !Number.isInteger(found))
      return mismatch(found, `ObjectMeta.metadata.${key}`, 'int64')
  }
  return undefined
}

function mismatch(value: unknown, field: string, type: string): string {
  const found =
    typeof value === 'number' && !Number.isInteger(value) && type.startsWith('int') ? `number ${value}` : goType(value)
  return `json: cannot unmarshal ${found} into Go struct field ${field} of type ${type}`
}

/** Fields of type bytes are base64 on the wire (Secret.data, ConfigMap.binaryData). */
function checkBytes(value: Json, schema: Schema): void {
  for (const [key, property] of Object.entries(schema.properties ?? {})) {
    const { additionalProperties } = property
    if (typeof additionalProperties !== 'object' || additionalProperties.format !== 'byte') continue
    const found = value[key]
    for (const text of isRecord(found) ? Object.values(found) : []) {
      const problem = typeof text === 'string' ? explainBase64(text) : undefined
      if (problem !== undefined) throw new DecodeError(problem)
    }
  }
}

/** Position of the first invalid base64 byte, as Go reports it. */
function explainBase64(value: string): string | undefined {
  const text = value.replaceAll(/[\r\n]/g, '')
  const bad = /[^A-Za-z0-9+/]/.exec(text.replace(/={1,2}$/, ''))
  if (bad !== null) return `illegal base64 data at input byte ${bad.index}`
  return text.length % 4 === 0 ? undefined : `illegal base64 data at input byte ${text.length - (text.length % 4)}`
}
