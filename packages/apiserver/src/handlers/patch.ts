/**
 * Patches: JSON patch, merge patch, strategic merge patch (built-in kinds) and server-side apply.
 * Each computes the desired object from the stored one; the rest is a normal update (or, for apply, possibly a create).
 */
import { normalizeBuiltin } from '../builtin/normalize.ts'
import { ApplyError, conflictCauses, conflictMessage, serverSideApply } from '../apply/apply.ts'
import { type Call, readView, readWriteOptions, warningHeaders, type WriteOptions } from './call.ts'
import { timestamp } from '../clock.ts'
import { checkObject, parseJson, parseYaml, pruneObject } from '../codec/decode.ts'
import { encodeObject } from '../codec/encode.ts'
import type { ApiResponse } from '../exchange/exchange.ts'
import { goText } from '../codec/go-text.ts'
import { findDuplicateFields, hasDuplicateFields } from '../codec/json-text.ts'
import { forbiddenValue, invalidValue, requiredValue } from '../validation/metadata.ts'
import { bodyMediaType } from '../exchange/negotiate.ts'
import {
  type ApiObject,
  cloneJson,
  getPath,
  isDeeperThan,
  isRecord,
  type Json,
  MAX_OBJECT_DEPTH,
  withMetadata,
} from '../codec/object-shape.ts'
import { applyJsonPatch } from '../patch/json-patch.ts'
import { applyMergePatch } from '../patch/merge-patch.ts'
import { PatchError } from '../patch/patch-error.ts'
import { applyStrategicMergePatch } from '../patch/strategic-merge.ts'
import { keyFor } from '../resource/resource.ts'
import {
  ApiError,
  applyConflict,
  badRequest,
  conflict,
  invalid,
  MODIFIED,
  statusError,
  unclassified,
  unprocessable,
  unsupportedMediaType,
} from '../exchange/status.ts'
import { createObject, updateObject } from './write.ts'

const applyType = 'application/apply-patch+yaml'
const jsonType = 'application/json-patch+json'
const mergeType = 'application/merge-patch+json'
const strategicType = 'application/strategic-merge-patch+json'

const rejected = 'the server rejected our request due to an error in our request'

/** A patch as a function of the document; the body is parsed once, the function may run again after a conflict. */
function readPatch(call: Call, media: string): (document: unknown) => unknown {
  const { resource, request } = call
  const text = request.body.toString()
  const patch = parsePatch(text, media)
  const { schema } = resource
  return (document) => {
    try {
      if (media === jsonType) return applyJsonPatch(document, patch)
      if (media === mergeType) return applyMergePatch(document, patch)
      return applyStrategicMergePatch(document, patch, schema ?? {})
    } catch (error) {
      if (!(error instanceof PatchError)) throw error
      if (error.status === 422) throw unprocessable(rejected)
      if (error.status === 500) throw unclassified(error.message)
      throw error.status === 413 ? statusError(413, 'RequestEntityTooLarge', error.message) : badRequest(error.message)
    }
  }
}

function parsePatch(text: string, media: string): unknown {
  let patch: unknown
  try {
    patch = parseJson(text)
  } catch (error) {
    if (error instanceof SyntaxError) throw badRequest(`error decoding patch: ${error.message}`)
    throw error
  }
  const isValid = media === jsonType ? Array.isArray(patch) : isRecord(patch)
  if (isValid || patch === null) return patch ?? (media === jsonType ? [] : {})
  const found = Array.isArray(patch) ? 'array' : typeof patch === 'boolean' ? 'bool' : typeof patch
  const expectedType = media === jsonType ? '[]handlers.jsonPatchOp' : 'map[string]interface {}'
  throw badRequest(`error decoding patch: json: cannot unmarshal ${found} into Go value of type ${expectedType}`)
}

function acceptedPatches(call: Call): string[] {
  return call.resource.isCustom ? [jsonType, mergeType, applyType] : [jsonType, mergeType, strategicType, applyType]
}

/** Patches the representation that a subresource serves; the main endpoint and status serve the object itself. */
export async function patchObject(call: Call): Promise<ApiResponse> {
  const { request } = call
  const media = bodyMediaType(request.headers['content-type'])
  if (!acceptedPatches(call).includes(media)) {
    throw call.resource.isCustom
      ? unsupportedMediaType(acceptedPatches(call))
      : statusError(415, 'UnsupportedMediaType', '415: Unsupported Media Type')
  }
  const view = readView(call)
  const isApply = media === applyType
  const hasForce = request.query.get('force') !== null
  const options = readWriteOptions(call, 'patch', [
    ...(isApply && (request.query.get('fieldManager') ?? '') === ''
      ? [requiredValue('fieldManager', 'is required for apply patch')]
      : []),
    ...(!isApply && hasForce ? [forbiddenValue('force', 'may not be specified for non-apply patch')] : []),
  ])
  if (isApply) return await applyObject(call, options)
  const patch = readPatch(call, media)
  const isUnconditional = !hasVersion(request.body)
  const stored = await updateObject(
    call,
    {
      failsOnRace: !isUnconditional,
      build: (old) => {
        const result = patch(old)
        if (!isRecord(result) || isDeeperThan(result, MAX_OBJECT_DEPTH)) throw unprocessable(rejected)
        const patched = cloneJson(result)
        const next = decodePatched(call, patched, options, media === strategicType ? request.body : undefined)
        return isUnconditional ? withMetadata(next, { resourceVersion: old.metadata.resourceVersion as string }) : next
      },
    },
    options,
  )
  return await encodeObject(view, stored, 200, warningHeaders(call))
}

/** A patch with a resourceVersion must fail on a conflict instead of being retried. */
function hasVersion(body: Buffer): boolean {
  return body.includes('resourceVersion')
}

/**
 * `strategic` is the text of a strategic merge patch: kube-apiserver then reports the patch, not the patched object.
 */
function decodePatched(call: Call, patched: Json, options: WriteOptions, strategic: Buffer | undefined): ApiObject {
  const text = strategic === undefined ? sortedText(patched) : goText(JSON.parse(strategic.toString()))
  try {
    const object = checkObject(patched, call.resource, options.fieldValidation, [], (message) =>
      call.warnings.push(message),
    )
    applyDefaults(call, object)
    return object
  } catch (error) {
    if (!(error instanceof ApiError) || error.status.code !== 400 || call.resource.isCustom) throw error
    // A patched document that cannot be decoded is an error of the patch; the message contains the whole document.
    const decoding = error.message.replace(/^.* cannot be handled as a \w+: /, '')
    const why =
      strategic === undefined
        ? decoding
        : decoding.replace(/^json: cannot unmarshal (\w+) into Go struct field \S+ of type (\S+)$/, restoreText)
    throw invalid({ group: '', kind: '' }, '', [invalidValue('patch', text, why)])
  }
}

/** The error of the converter that kube-apiserver uses for strategic merge patches. */
function restoreText(_whole: string, found: string, expected: string): string {
  const from = { number: 'int64', object: 'map', array: 'slice' }[found] ?? found
  const to = expected.startsWith('map') ? 'map' : expected.startsWith('[]') ? 'slice' : expected
  return to === 'map' || to === 'slice' ? `cannot restore ${to} from ${from}` : `cannot convert ${from} to ${to}`
}

function sortedText(value: Json): string {
  return JSON.stringify(Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))))
}

export function applyDefaults(call: Call, object: ApiObject): void {
  call.resource.strategy.applyDefaults?.(object)
  if (call.resource.isCustom) call.resource.compiled()?.applyDefaults(object)
}

async function readIntent(call: Call, options: WriteOptions): Promise<ApiObject> {
  const { resource, request, info } = call
  const text = request.body.toString()
  let value: unknown
  try {
    value = await parseYaml(text)
  } catch (error) {
    throw badRequest(
      `error decoding YAML: error converting YAML to JSON: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  value ??= {}
  if (!isRecord(value)) {
    const found = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value
    throw badRequest(
      `error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal ${found} into Go value of type map[string]interface {}`,
    )
  }
  const duplicates = text.startsWith('{') && hasDuplicateFields(text, value) ? findDuplicateFields(text) : []
  if (value['apiVersion'] !== resource.apiVersion || value['kind'] !== resource.kind) {
    throw badRequest(`invalid object type: ${typeName(value)}`)
  }
  if (Array.isArray(getPath(value, 'metadata', 'managedFields'))) throw badRequest('metadata.managedFields must be nil')
  const copy = cloneJson(value)
  const undeclared = pruneObject(cloneJson(value), resource)
  if (undeclared.length > 0) {
    const lines = undeclared.map((path) => `.${path}: field not declared in schema`)
    const why = lines.length === 1 ? lines[0] : `errors:\n${lines.map((line) => `  ${line}`).join('\n')}`
    const { namespace = '', name: given = '' } = (copy['metadata'] ?? {}) as ApiObject['metadata']
    throw unclassified(`failed to create typed patch object (${namespace}/${given}; ${typeName(value)}): ${why}`)
  }
  // Validated like any object, but applied unchanged: empty values in it are owned, too.
  checkObject(cloneJson(value), resource, options.fieldValidation, duplicates, (message) => call.warnings.push(message))
  if (!isRecord(copy['metadata'])) copy['metadata'] = {}
  const intent = copy as ApiObject
  const name = intent.metadata.name ?? info.name
  if (name !== info.name)
    throw badRequest(`the name of the object (${name}) does not match the name on the URL (${info.name})`)
  return withMetadata(intent, {
    name,
    ...(resource.namespaced && { namespace: intent.metadata.namespace ?? info.namespace }),
  })
}

/** `/v1, Kind=ConfigMap`, `apps/v1, Kind=Deployment`. */
function typeName(value: Json): string {
  const apiVersion = typeof value['apiVersion'] === 'string' ? value['apiVersion'] : ''
  const kind = typeof value['kind'] === 'string' ? value['kind'] : ''
  return `${apiVersion.includes('/') ? apiVersion : `/${apiVersion}`}, Kind=${kind}`
}

async function applyObject(call: Call, options: WriteOptions): Promise<ApiResponse> {
  const { resource, info, backend, request } = call
  const view = readView(call)
  const intent = await readIntent(call, options)
  const force = request.query.get('force') === 'true'
  const apply = (live: ApiObject | undefined): ApiObject => {
    const outcome = tryApply({
      live,
      intent,
      manager: options.fieldManager,
      force,
      schema: resource.schema,
      apiVersion: resource.apiVersion,
      now: timestamp(backend.clock.now()),
      resetFields: resetFieldsOf(call),
      ...(info.subresource !== '' && { subresource: info.subresource }),
    })
    if ('conflicts' in outcome)
      throw applyConflict(conflictMessage(outcome.conflicts), conflictCauses(outcome.conflicts))
    const merged = cloneJson(outcome.object) as ApiObject
    if (merged.metadata.managedFields?.length === 0) delete merged.metadata.managedFields
    // The applied null of a list is owned, and not stored: decoding into the type of Go drops it.
    if (!resource.isCustom && resource.schema !== undefined) normalizeBuiltin(resource.schema, merged)
    applyDefaults(call, merged)
    return merged
  }
  const key = keyFor(resource, info.namespace, info.name)
  for (;;) {
    if (resource.collection.get(key) === undefined) {
      if (info.subresource !== '') throw conflict(resource, info.name, MODIFIED)
      if ((intent.metadata.uid ?? '') !== '')
        throw conflict(
          resource,
          info.name,
          `uid mismatch: the provided object specified uid ${intent.metadata.uid ?? ''}, and no existing object was found`,
        )
      try {
        return await encodeObject(
          view,
          await createObject(
            call,
            withMetadata(apply(undefined), { resourceVersion: undefined as never }),
            options,
            true,
          ),
          201,
          warningHeaders(call),
        )
      } catch (error) {
        // Another request created it in the meantime: apply to that object.
        if (error instanceof ApiError && error.status.reason === 'AlreadyExists') continue
        throw error
      }
    }
    const stored = await updateObject(
      call,
      {
        isTracked: true,
        build: (old) => {
          const resourceVersion = intent.metadata.resourceVersion ?? ''
          if (resourceVersion !== '' && resourceVersion !== old.metadata.resourceVersion)
            throw conflict(resource, info.name, MODIFIED)
          return withMetadata(apply(old), { resourceVersion: old.metadata.resourceVersion as string })
        },
      },
      options,
    )
    return await encodeObject(view, stored, 200, warningHeaders(call))
  }
}

/** Top-level fields that this endpoint takes from the stored object: an apply that names them does not own them. */
function resetFieldsOf({ resource, info }: Call): readonly string[] {
  if (info.subresource === 'status') return resource.isCustom ? ['metadata', 'spec'] : ['spec']
  return info.subresource === '' && resource.subresources.includes('status') ? ['status'] : []
}

type Apply = typeof serverSideApply

function tryApply(input: Parameters<Apply>[0]): ReturnType<Apply> {
  try {
    return serverSideApply(input)
  } catch (error) {
    if (!(error instanceof ApplyError)) throw error
    throw error.status === 400 ? badRequest(error.message) : unclassified(error.message)
  }
}
