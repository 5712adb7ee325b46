/**
 * Creates and updates. Every change of an object goes through `createObject` or `updateObject`: requests, the scale and
 * status subresources, server-side apply, and the built-in controllers.
 *
 * Flow: decode → defaults → field ownership → mutating admission → strategy → validation → validating admission →
 * store.
 * Guarantees: nothing else is stored at a key between reading the stored object and storing its successor; when
 * admission waits for a webhook, the stored object is compared again and the whole step repeated on a change. An update
 * without changes is not stored and causes no event.
 */
import type { Call, WriteOptions } from './call.ts'
import { timestamp } from '../clock.ts'
import { invalidValue, validateMetadata, validateMetadataUpdate } from '../validation/metadata.ts'
import { generateName } from '../validation/names.ts'
import { type ApiObject, isSameJson, type Json, withMetadata } from '../codec/object-shape.ts'
import { keyFor, type Resource, type StrategyContext } from '../resource/resource.ts'
import { ownFields, setManagedFields } from './field-ownership.ts'
import { inRequestVersion, inStorageVersion } from './object-version.ts'
import { checkScale } from './scale-paths.ts'
import type { Cause, Schema } from '../schema/model.ts'
import { zeroValue } from '../schema/zero.ts'
import {
  alreadyExists,
  badRequest,
  conflict,
  forbidden,
  generateNameConflict,
  invalid,
  MODIFIED,
  notFound,
  unclassified,
} from '../exchange/status.ts'
import { Stored } from '../store/stored-object.ts'

const generateAttempts = 8

const unversioned: Cause = {
  reason: 'FieldValueInvalid',
  message: 'Invalid value: 0: must be specified for an update',
  field: 'metadata.resourceVersion',
}

function contextOf(call: Call, options: WriteOptions): StrategyContext {
  return {
    nowMs: call.backend.clock.now(),
    isDryRun: options.isDryRun,
    subresource: call.info.subresource,
    warn: (message) => call.warnings.push(message),
  }
}

/** The namespace of the request must exist and not be terminating. */
function checkNamespace(call: Call, name: string): void {
  const { resource, info, backend } = call
  if (!resource.namespaced) return
  const namespace = backend.store.collection('namespaces').get(info.namespace)
  if (namespace === undefined) throw notFound({ group: '', plural: 'namespaces' }, info.namespace)
  // Runs at every create: searches the text instead of parsing the object.
  if (!namespace.body.includes('"deletionTimestamp"') || namespace.object.metadata.deletionTimestamp === undefined)
    return
  const why = `unable to create new content in namespace ${info.namespace} because it is being terminated`
  throw forbidden(resource, name, why, [
    {
      reason: 'NamespaceTerminating',
      message: `namespace ${info.namespace} is being terminated`,
      field: 'metadata.namespace',
    },
  ])
}

/** The body may omit its namespace, but not name a different one. */
function adoptNamespace(call: Call, object: ApiObject): ApiObject {
  const { resource, info } = call
  const desired = resource.namespaced ? info.namespace : ''
  const given = object.metadata.namespace ?? ''
  if (given === desired) return object
  if (given !== '')
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  return withMetadata(object, { namespace: desired })
}

/** All validation errors of an object. */
function validate(call: Call, object: ApiObject, old: ApiObject | undefined, context: StrategyContext): Cause[] {
  const { resource } = call
  const { strategy, namespaced } = resource
  const compiled = resource.isCustom ? resource.compiled() : undefined
  if (compiled !== undefined) for (const warning of compiled.warnings) context.warn(warning)
  // kube-apiserver validates the metadata of an update twice, and reports its errors twice.
  const updated = old === undefined ? [] : validateMetadataUpdate(object.metadata, old.metadata)
  return [
    ...(old === undefined
      ? validateMetadata(object.metadata, namespaced, strategy.checkName)
      : [...updated, ...updated]),
    ...(compiled?.validate(object, old, context.subresource === 'status' ? 'status' : 'whole') ?? []),
    ...(strategy.validate?.(object, old, context) ?? []),
    ...checkScale(resource, object, context.subresource),
  ]
}

function hasStatus(call: Call): boolean {
  return call.resource.subresources.includes('status')
}

/** The initial status of a built-in kind. */
function zeroStatus(schema: Schema | undefined): unknown {
  const status = schema?.properties?.['status']
  return status?.zero === undefined ? undefined : structuredClone(zeroValue(status))
}

function withoutStatus(object: ApiObject): ApiObject {
  const { status: _status, ...rest } = object
  return rest
}

/** Stores a new object. `isTracked`: managedFields are already set (server-side apply). */
export async function createObject(
  call: Call,
  body: ApiObject,
  options: WriteOptions,
  isTracked = false,
): Promise<Stored> {
  const { resource, backend } = call
  const base = body.metadata.generateName ?? ''
  const isGenerated = (body.metadata.name ?? '') === '' && base !== ''
  for (let attempt = 1; ; attempt += 1) {
    const named = isGenerated ? withMetadata(body, { name: generateName(base, backend.random) }) : body
    const key = keyFor(resource, call.info.namespace, named.metadata.name ?? '')
    const stored = await createOnce(call, key, named, options, isTracked)
    if (stored !== undefined) return stored
    const name = named.metadata.name ?? ''
    if (!isGenerated) throw alreadyExists(resource, name)
    if (attempt === generateAttempts) throw generateNameConflict(resource, name)
  }
}

async function createOnce(
  call: Call,
  key: string,
  named: ApiObject,
  options: WriteOptions,
  isTracked: boolean,
): Promise<Stored | undefined> {
  const { resource, backend } = call
  const { strategy, collection } = resource
  const context = contextOf(call, options)
  backend.confirmGrant(call, named, undefined)
  checkNamespace(call, named.metadata.name ?? '')
  if ((named.metadata.resourceVersion ?? '') !== '' && named.metadata.resourceVersion !== '0') {
    throw unclassified('resourceVersion should not be set on objects to be created')
  }
  const given: Json = { ...named.metadata }
  for (const key of ['deletionTimestamp', 'deletionGracePeriodSeconds', 'resourceVersion', 'selfLink'])
    delete given[key]
  let object = adoptNamespace(call, {
    ...(hasStatus(call) ? withoutStatus(named) : named),
    metadata: { ...given, uid: backend.newUid(), creationTimestamp: timestamp(context.nowMs) },
  })
  if (!isTracked) object = setManagedFields(object, ownFields(call, options, object, undefined))
  const emptyStatus = hasStatus(call) ? zeroStatus(resource.schema) : undefined
  if (emptyStatus !== undefined) object['status'] = emptyStatus
  if (backend.admission.hasMatch(call, 'CREATE')) {
    object = await backend.admission.mutate(call, 'CREATE', object, undefined, options.isDryRun)
  }
  // Defaults of the dropped status reappear when the object is read.
  const isStale = resource.isCustom && hasStatus(call) && addStatusDefault(resource, object)
  if (strategy.hasGeneration === true) object = withMetadata(object, { generation: 1 })
  if (strategy.prepareForCreate !== undefined) {
    object = { ...object, metadata: { ...object.metadata } }
    strategy.prepareForCreate(object, context)
  }
  await strategy.prepare?.(object)
  const causes = validate(call, object, undefined, context)
  if (causes.length > 0) throw invalid(strategy.namedAs ?? resource, object.metadata.name ?? '', causes)
  if (backend.admission.hasMatch(call, 'CREATE'))
    await backend.admission.validate(call, 'CREATE', object, undefined, options.isDryRun)
  const successor = await inStorageVersion(call, object)
  if (collection.get(key) !== undefined) return undefined
  return options.isDryRun ? new Stored(key, 0, successor) : collection.put(key, successor, isStale)
}

/** Returns whether a default exists. */
function addStatusDefault(resource: Resource, object: ApiObject): boolean {
  resource.compiled()?.applyDefaults(object)
  return object['status'] !== undefined
}

export interface UpdateRequest {
  /** Computes the desired object from the stored one. Called again when the stored one changed concurrently. */
  build(old: ApiObject): Promise<ApiObject> | ApiObject
  /** `build` already sets managedFields. */
  readonly isTracked?: boolean
  /** True when a concurrent change is a conflict instead of a retry. */
  readonly failsOnRace?: boolean
}

/** Replaces a stored object. Throws NotFound when it does not exist. */
export async function updateObject(call: Call, request: UpdateRequest, options: WriteOptions): Promise<Stored> {
  const { resource, info } = call
  const key = keyFor(resource, info.namespace, info.name)
  for (;;) {
    const current = resource.collection.get(key)
    if (current === undefined) throw notFound(resource, info.name)
    const result = await updateOnce(call, key, current, request, options)
    if (result !== undefined) return result
  }
}

async function updateOnce(
  call: Call,
  key: string,
  current: Stored,
  request: UpdateRequest,
  options: WriteOptions,
): Promise<Stored | undefined> {
  const { resource, backend, info } = call
  const { strategy, collection } = resource
  const context = contextOf(call, options)
  const old = await inRequestVersion(call, current)
  const desired = await request.build(old)
  const checkedOut = checkPreconditions(call, desired, old)
  let object = restrict(call, checkedOut, old)
  backend.confirmGrant(call, object, old)
  if (request.isTracked !== true) object = setManagedFields(object, ownFields(call, options, object, old))
  if (backend.admission.hasMatch(call, 'UPDATE')) {
    object = await backend.admission.mutate(call, 'UPDATE', object, old, options.isDryRun)
    object = restrict(call, object, old)
  }
  if (strategy.prepareForUpdate !== undefined) {
    object = { ...object, metadata: { ...object.metadata } }
    strategy.prepareForUpdate(object, old, context)
  }
  if (strategy.hasGeneration === true) {
    const generation = old.metadata.generation ?? 0
    object = withMetadata(object, {
      generation: info.subresource !== 'status' && isSpecChanged(call, object, old) ? generation + 1 : generation,
    })
  }
  if ((object.metadata.resourceVersion ?? '') === '' && strategy.allowsUnconditionalUpdate !== true) {
    throw invalid({ group: resource.group, kind: resource.plural }, info.name, [unversioned])
  }
  await strategy.prepare?.(object)
  const causes = validate(call, object, old, context)
  if (causes.length > 0) throw invalid(strategy.namedAs ?? resource, info.name, causes)
  if (backend.admission.hasMatch(call, 'UPDATE'))
    await backend.admission.validate(call, 'UPDATE', object, old, options.isDryRun)
  const successor = await inStorageVersion(call, object)
  if (backend.faults.forcesConflict(call)) throw conflict(resource, info.name, MODIFIED)
  if (collection.get(key) !== current) {
    if (request.failsOnRace === true) throw conflict(resource, info.name, MODIFIED)
    return undefined
  }
  return commit(call, key, current, successor, options)
}

/** Stores, removes or keeps the object, synchronously with the comparison above. */
function commit(call: Call, key: string, current: Stored, object: ApiObject, options: WriteOptions): Stored {
  const { collection, strategy } = call.resource
  if (!current.isStale && isUnchanged(object, current.object)) return current
  if (options.isDryRun)
    return new Stored(
      key,
      current.resourceVersion,
      withMetadata(object, { resourceVersion: String(current.resourceVersion) }),
    )
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers } = object.metadata
  const isReleased =
    deletionTimestamp !== undefined &&
    (finalizers ?? []).length === 0 &&
    (deletionGracePeriodSeconds ?? 0) === 0 &&
    strategy.hasOtherFinalizers?.(object) !== true
  if (!isReleased) return collection.put(key, object)
  collection.remove(key, object)
  // The response contains the last state of the object, at its version before the removal.
  return new Stored(
    key,
    current.resourceVersion,
    withMetadata(object, { resourceVersion: String(current.resourceVersion) }),
  )
}

/** Same content and same owners; the times of managedFields are ignored. */
function isUnchanged(object: ApiObject, old: ApiObject): boolean {
  const strip = (value: ApiObject): ApiObject =>
    withMetadata(value, {
      resourceVersion: undefined as never,
      managedFields: (value.metadata.managedFields ?? []).map(({ time: _time, ...entry }) => entry),
    })
  return isSameJson(strip(object), strip(old))
}

function checkPreconditions(call: Call, desired: ApiObject, old: ApiObject): ApiObject {
  const { resource, info } = call
  const { name = '', uid = '', resourceVersion = '' } = desired.metadata
  if (name === '')
    throw badRequest(`the name of the object (${info.name} based on URL) was undeterminable: name must be provided`)
  if (name !== info.name)
    throw badRequest(`the name of the object (${name}) does not match the name on the URL (${info.name})`)
  const object = adoptNamespace(call, desired)
  if (uid !== '' && uid !== old.metadata.uid) {
    if (info.verb === 'patch') throw invalid(resource, name, [invalidValue('metadata.uid', uid, 'field is immutable')])
    const path = `/registry/${resource.group === '' ? '' : `${resource.group}/`}${resource.plural}/${keyFor(resource, info.namespace, info.name)}`
    throw conflict(
      resource,
      info.name,
      `StorageError: invalid object, Code: 4, Key: ${path}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid ?? ''}`,
    )
  }
  if (!/^\d*$/.test(resourceVersion)) {
    throw unclassified(`strconv.ParseUint: parsing ${JSON.stringify(resourceVersion)}: invalid syntax`)
  }
  if (resourceVersion !== '' && resourceVersion !== '0' && resourceVersion !== old.metadata.resourceVersion) {
    throw conflict(resource, info.name, MODIFIED)
  }
  return object
}

/**
 * Restricts a request to the fields it may change: on the main endpoint everything but status and system metadata, on a
 * subresource only its part.
 */
function restrict(call: Call, object: ApiObject, old: ApiObject): ApiObject {
  const { subresource } = call.info
  if (subresource === 'status') {
    const { managedFields } = object.metadata
    const metadata = { ...old.metadata, resourceVersion: object.metadata.resourceVersion as string }
    if (managedFields === undefined) delete metadata.managedFields
    else metadata.managedFields = managedFields
    const next: ApiObject = { ...old, metadata }
    if (object['status'] === undefined) delete next['status']
    else next['status'] = object['status']
    return next
  }
  const { generation, uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds } = old.metadata
  const system = { generation, uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds } as Partial<
    ApiObject['metadata']
  >
  const next = withMetadata(object, system)
  if (!hasStatus(call)) return next
  if (old['status'] === undefined) delete next['status']
  else next['status'] = old['status']
  return next
}

function isSpecChanged(call: Call, object: ApiObject, old: ApiObject): boolean {
  const relevant = (value: ApiObject): unknown => {
    const { metadata: _metadata, apiVersion: _apiVersion, ...rest } = hasStatus(call) ? withoutStatus(value) : value
    return rest
  }
  if (!call.resource.isCustom && old['spec'] !== undefined) return !isSameJson(object['spec'], old['spec'])
  return !isSameJson(relevant(object), relevant(old))
}
