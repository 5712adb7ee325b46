/** The scale subresource: a Scale object that reads and sets the number of replicas of another object. */
import { type Call, readView, readWriteOptions, warningHeaders } from './call.ts'
import { decodeBody } from '../codec/decode.ts'
import { type ApiResponse, jsonResponse } from '../exchange/exchange.ts'
import { invalidValue } from '../validation/metadata.ts'
import { bodyMediaType, builtinMediaTypes } from '../exchange/negotiate.ts'
import { type ApiObject, cloneJson, getPath, isRecord, type Json } from '../codec/object-shape.ts'
import { applyJsonPatch } from '../patch/json-patch.ts'
import { applyMergePatch } from '../patch/merge-patch.ts'
import { findStored } from './read.ts'
import type { ScalePaths } from '../resource/resource.ts'
import { keysOf } from './scale-paths.ts'
import { badRequest, internal, invalid, notFound, unsupportedMediaType } from '../exchange/status.ts'
import { updateObject } from './write.ts'

function readNumber(object: ApiObject, path: string): number {
  const value = getPath(object, ...keysOf(path))
  return typeof value === 'number' ? value : 0
}

function selectorText(object: ApiObject, paths: ScalePaths): string {
  const atPath = paths.labelSelectorPath === undefined ? undefined : getPath(object, ...keysOf(paths.labelSelectorPath))
  if (typeof atPath === 'string') return atPath
  const labels = getPath(object, 'spec', 'selector', 'matchLabels')
  if (!isRecord(labels)) return ''
  return Object.keys(labels)
    .sort()
    .map((key) => `${key}=${String(labels[key])}`)
    .join(',')
}

function scaleOf(object: ApiObject, paths: ScalePaths): Json {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata
  const selector = selectorText(object, paths)
  const replicas = readNumber(object, paths.specReplicasPath)
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: replicas === 0 ? {} : { replicas },
    status: { replicas: readNumber(object, paths.statusReplicasPath), ...(selector !== '' && { selector }) },
  }
}

function withReplicas(object: ApiObject, path: string, replicas: number): ApiObject {
  const copy = cloneJson(object)
  const keys = keysOf(path)
  let target: Json = copy
  for (const key of keys.slice(0, -1)) {
    if (!isRecord(target[key])) target[key] = {}
    target = target[key] as Json
  }
  target[keys.at(-1) ?? ''] = replicas
  return copy
}

/** The desired Scale of a request, computed from the current one. */
async function readDesired(call: Call, present: Json): Promise<unknown> {
  const { method, body, headers } = call.request
  if (method === 'PUT') return (await decodeBody(body, headers['content-type'], builtinMediaTypes)).value
  const media = bodyMediaType(headers['content-type'])
  const { value: patch } = await decodeBody(body, 'application/json', ['application/json'])
  if (media === 'application/json-patch+json') return applyJsonPatch(present, patch)
  if (
    media === 'application/merge-patch+json' ||
    media === 'application/strategic-merge-patch+json' ||
    media === 'application/apply-patch+yaml'
  ) {
    return applyMergePatch(present, patch)
  }
  throw unsupportedMediaType([
    'application/json-patch+json',
    'application/merge-patch+json',
    'application/apply-patch+yaml',
  ])
}

export async function serveScale(call: Call): Promise<ApiResponse> {
  const { resource, info } = call
  const paths = resource.scale as ScalePaths
  if (info.verb === 'get') {
    readView(call)
    const stored = findStored(call)
    if (stored === undefined) throw notFound(resource, info.name)
    if (resource.isCustom && getPath(stored.object, ...keysOf(paths.specReplicasPath)) === undefined) {
      throw internal(`the spec replicas field ${JSON.stringify(paths.specReplicasPath)} does not exist`)
    }
    return jsonResponse(200, scaleOf(stored.object, paths), warningHeaders(call))
  }
  const options = readWriteOptions(call, info.verb === 'patch' ? 'patch' : 'update')
  const stored = await updateObject(
    call,
    {
      async build(old) {
        const desired = await readDesired(call, scaleOf(old, paths)).catch((error: unknown) => {
          throw error instanceof SyntaxError ? badRequest(`error decoding patch: ${error.message}`) : error
        })
        const replicas = getPath(desired, 'spec', 'replicas') ?? 0
        if (typeof replicas !== 'number' || !Number.isInteger(replicas))
          throw badRequest('spec.replicas must be an integer')
        if (replicas < 0 && !resource.isCustom) {
          throw invalid({ group: 'autoscaling', kind: 'Scale' }, info.name, [
            invalidValue('spec.replicas', replicas, 'must be greater than or equal to 0'),
          ])
        }
        const version = getPath(desired, 'metadata', 'resourceVersion')
        const next = withReplicas(old, paths.specReplicasPath, replicas)
        if (resource.isCustom) resource.compiled()?.prune(next)
        return typeof version === 'string' && version !== ''
          ? { ...next, metadata: { ...next.metadata, resourceVersion: version } }
          : next
      },
    },
    options,
  )
  return jsonResponse(200, scaleOf(stored.object, paths), warningHeaders(call))
}
