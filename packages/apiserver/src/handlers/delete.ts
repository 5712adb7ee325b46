/**
 * Deletes one object or a collection. An object with finalizers is marked with a deletionTimestamp and remains until
 * the last finalizer is removed; other objects are removed immediately. Controllers delete dependents and the content
 * of namespaces.
 */
import { type Call, readView, warningHeaders } from './call.ts'
import { timestamp } from '../clock.ts'
import { decodeBody } from '../codec/decode.ts'
import { encodeList, encodeObject } from '../codec/encode.ts'
import { type ApiResponse, statusResponse } from '../exchange/exchange.ts'
import { invalidValue, unsupportedValue } from '../validation/metadata.ts'
import { builtinMediaTypes } from '../exchange/negotiate.ts'
import { type ApiObject, getPath, isRecord, type Json, withMetadata } from '../codec/object-shape.ts'
import { readListOptions } from './read.ts'
import { deletedStatus, keyFor } from '../resource/resource.ts'
import type { Cause } from '../schema/model.ts'
import { badRequest, conflict, invalid, notFound } from '../exchange/status.ts'
import { Stored } from '../store/stored-object.ts'

export interface DeleteOptions {
  readonly isDryRun: boolean
  readonly propagationPolicy: 'Background' | 'Foreground' | 'Orphan' | undefined
  readonly gracePeriodSeconds: number | undefined
  readonly uid: string | undefined
  readonly resourceVersion: string | undefined
}

async function readDeleteOptions(call: Call): Promise<DeleteOptions> {
  const { body, query, headers } = call.request
  let value: unknown = {}
  if (body.length > 0) {
    try {
      value = (await decodeBody(body, headers['content-type'], builtinMediaTypes)).value ?? {}
    } catch (error) {
      if (error instanceof SyntaxError)
        throw badRequest(`couldn't get version/kind; json parse error: ${error.message}`)
      throw error
    }
    if (!isRecord(value)) throw badRequest('expected DeleteOptions')
    checkOptionTypes(value)
    const kind = value['kind']
    if (kind !== undefined && kind !== 'DeleteOptions') {
      const version = JSON.stringify(value['apiVersion'] ?? '')
      throw badRequest(
        `no kind ${JSON.stringify(kind)} is registered for version ${version} in scheme "pkg/runtime/scheme.go:111"`,
      )
    }
  } else {
    const grace = query.get('gracePeriodSeconds')
    const orphan = query.get('orphanDependents')
    value = {
      ...(query.has('dryRun') ? { dryRun: query.getAll('dryRun') } : {}),
      ...(query.has('propagationPolicy') ? { propagationPolicy: query.get('propagationPolicy') } : {}),
      ...(grace !== null && { gracePeriodSeconds: Number(grace) }),
      ...(orphan !== null && { orphanDependents: orphan === 'true' }),
    }
  }
  return checkDeleteOptions(value)
}

/** Go's error for a value of the wrong type. */
function checkOptionTypes(value: Json): void {
  const types = { gracePeriodSeconds: 'number', orphanDependents: 'boolean', propagationPolicy: 'string' } as const
  const goTypes = { number: 'int64', boolean: 'bool', string: 'v1.DeletionPropagation' } as const
  for (const [key, type] of Object.entries(types)) {
    const found = value[key]
    if (found === undefined || found === null || typeof found === type) continue
    const name = Array.isArray(found) ? 'array' : typeof found === 'boolean' ? 'bool' : typeof found
    throw badRequest(
      `json: cannot unmarshal ${name} into Go struct field DeleteOptions.${key} of type ${goTypes[type]}`,
    )
  }
}

const policies = ['Foreground', 'Background', 'Orphan'] as const

function checkDeleteOptions(value: unknown): DeleteOptions {
  const policy = getPath(value, 'propagationPolicy') ?? undefined
  const orphan = getPath(value, 'orphanDependents') ?? undefined
  const dryRun = getPath(value, 'dryRun')
  const dryRuns = Array.isArray(dryRun) ? dryRun.filter((item) => item !== '') : []
  const grace = getPath(value, 'gracePeriodSeconds')
  const causes: Cause[] = []
  if (orphan !== undefined && policy !== undefined) {
    causes.push(
      invalidValue('propagationPolicy', policy, 'orphanDependents and deletionPropagation cannot be both set'),
    )
  }
  if (policy !== undefined && !policies.some((known) => known === policy)) {
    causes.push(unsupportedValue('propagationPolicy', policy, [...policies, 'nil']))
  }
  if (dryRuns.some((item) => item !== 'All')) causes.push(unsupportedValue('dryRun', dryRuns, ['All']))
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'DeleteOptions' }, '', causes)
  const uid = getPath(value, 'preconditions', 'uid')
  const resourceVersion = getPath(value, 'preconditions', 'resourceVersion')
  return {
    isDryRun: dryRuns.length > 0,
    propagationPolicy:
      policy === undefined
        ? orphan === true
          ? 'Orphan'
          : orphan === false
            ? 'Background'
            : undefined
        : (policy as 'Orphan'),
    gracePeriodSeconds: typeof grace === 'number' && Number.isFinite(grace) ? (grace < 0 ? 1 : grace) : undefined,
    uid: typeof uid === 'string' ? uid : undefined,
    resourceVersion: typeof resourceVersion === 'string' ? resourceVersion : undefined,
  }
}

const collectorFinalizers = ['foregroundDeletion', 'orphan'] as const

/** The propagation policy is stored as a finalizer until the garbage collector has processed it. */
function finalizersFor(object: ApiObject, policy: DeleteOptions['propagationPolicy']): string[] {
  const present = object.metadata.finalizers ?? []
  if (policy === undefined) return present
  const others = present.filter((name) => !collectorFinalizers.some((known) => known === name))
  if (policy === 'Foreground') return [...others, 'foregroundDeletion']
  return policy === 'Orphan' ? [...others, 'orphan'] : others
}

export interface Deletion {
  readonly stored: Stored
  /** True when the object was removed; false when finalizers or a grace period delay it. */
  readonly isGone: boolean
}

/** Deletes the object of the call, or marks it for deletion. */
export async function deleteStored(call: Call, key: string, options: DeleteOptions): Promise<Deletion> {
  const { resource, backend } = call
  const { collection, strategy } = resource
  for (;;) {
    const current = collection.get(key)
    if (current === undefined) throw notFound(resource, call.info.name)
    const object = current.object
    checkPreconditions(call, current, options)
    strategy.beforeDelete?.(object)
    if (backend.admission.hasMatch(call, 'DELETE')) {
      await backend.admission.validate(call, 'DELETE', undefined, object, options.isDryRun)
      if (collection.get(key) !== current) continue
    }
    return removeOrMark(call, current, options)
  }
}

function checkPreconditions(call: Call, current: Stored, options: DeleteOptions): void {
  const { uid, resourceVersion } = current.object.metadata
  if (options.uid !== undefined && options.uid !== uid) {
    throw conflict(
      { group: call.resource.group, plural: call.resource.kind },
      current.name,
      `the UID in the precondition (${options.uid}) does not match the UID in record (${uid ?? ''}). The object might have been deleted and then recreated`,
    )
  }
  if (options.resourceVersion !== undefined && options.resourceVersion !== resourceVersion) {
    throw conflict(
      { group: call.resource.group, plural: call.resource.kind },
      current.name,
      `the ResourceVersion in the precondition (${options.resourceVersion}) does not match the ResourceVersion in record (${resourceVersion ?? ''}). The object might have been modified`,
    )
  }
}

function removeOrMark(call: Call, current: Stored, options: DeleteOptions): Deletion {
  const { resource, backend } = call
  const { collection, strategy } = resource
  const object = current.object
  const isMarked = object.metadata.deletionTimestamp !== undefined
  const kept = finalizersFor(object, options.propagationPolicy)
  const finalizers = isMarked ? kept : [...new Set([...kept, ...(strategy.finalizersOnDelete ?? [])])]
  const grace = strategy.gracePeriod?.(object, options.gracePeriodSeconds) ?? 0
  const isDelayed = finalizers.length > 0 || strategy.hasOtherFinalizers?.(object) === true || grace > 0
  if (!isDelayed) {
    if (options.isDryRun) return { stored: current, isGone: true }
    return { stored: collection.remove(current.key) as Stored, isGone: true }
  }
  const isSame = finalizers.join('\n') === (object.metadata.finalizers ?? []).join('\n')
  if (isMarked && isSame) return { stored: current, isGone: false }
  const generation = object.metadata.generation
  const marked = withMetadata(object, {
    ...(finalizers.length > 0 ? { finalizers } : { finalizers: undefined as never }),
    ...(isMarked
      ? {}
      : {
          deletionTimestamp: timestamp(backend.clock.now() + grace * 1000),
          ...(strategy.whenMarked === undefined && { deletionGracePeriodSeconds: grace }),
          ...(generation !== undefined && strategy.whenMarked === undefined && { generation: generation + 1 }),
        }),
  })
  if (options.isDryRun) return { stored: new Stored(current.key, current.resourceVersion, marked), isGone: false }
  return { stored: collection.put(current.key, strategy.whenMarked?.(marked) ?? marked), isGone: false }
}

export async function deleteObject(call: Call): Promise<ApiResponse> {
  const { resource, info } = call
  const view = readView(call)
  const options = await readDeleteOptions(call)
  const { stored, isGone } = await deleteStored(call, keyFor(resource, info.namespace, info.name), options)
  if (isGone && resource.strategy.returnsDeletedObject !== true)
    return statusResponse(deletedStatus(resource, stored), warningHeaders(call))
  return await encodeObject(view, stored, 200, warningHeaders(call))
}

export async function deleteCollection(call: Call): Promise<ApiResponse> {
  const { resource, info, backend } = call
  const view = readView(call)
  const list = readListOptions(call, false)
  const options = await readDeleteOptions(call)
  const { items } = resource.collection.range({
    namespace: resource.namespaced ? info.namespace : '',
    limit: 0,
    matches: (stored) => list.labels.matches(stored.labels) && list.fields.matches(stored),
  })
  const removed: Stored[] = []
  for (const stored of items) {
    const one: Call = { ...call, info: { ...info, verb: 'delete', namespace: stored.namespace, name: stored.name } }
    try {
      const deletion = await deleteStored(one, stored.key, options)
      removed.push(deletion.isGone ? stored : deletion.stored)
    } catch (error) {
      // An object deleted concurrently is not an error.
      if (resource.collection.get(stored.key) !== undefined) throw error
    }
  }
  return await encodeList(
    view,
    removed,
    { ...(resource.isCustom && { continue: '' }), resourceVersion: String(backend.store.revision) },
    warningHeaders(call),
  )
}
