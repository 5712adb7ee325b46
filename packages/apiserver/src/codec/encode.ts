/**
 * Encodes stored objects into responses: JSON (the stored bytes, unchanged), YAML, Table or PartialObjectMetadata, in
 * the requested version.
 */
import type { WholeResponse } from '../exchange/exchange.ts'
import type { Representation } from '../exchange/negotiate.ts'
import type { ApiObject, Json } from './object-shape.ts'
import type { Resource } from '../resource/resource.ts'
import { mismatchedShape } from '../exchange/status.ts'
import type { Stored } from '../store/stored-object.ts'
import { columnDefinitions, type IncludeObject, partialMetadata, tableRow } from '../table/table.ts'
import type { WatchEventType } from '../store/watch-hub.ts'

/** The representation that a request selects. */
export interface View {
  readonly resource: Resource
  readonly representation: Representation
  readonly includeObject: IncludeObject
  readonly nowMs: number
}

export interface ListMetadata {
  readonly resourceVersion: string
  readonly continue?: string
  readonly remainingItemCount?: number
}

/** True when the stored bytes can be sent unchanged. */
function isVerbatim(resource: Resource, stored: Stored): boolean {
  return resource.converter === undefined || stored.apiVersion === resource.apiVersion
}

async function objectsIn(resource: Resource, items: readonly Stored[]): Promise<ApiObject[]> {
  const { converter, apiVersion, kind } = resource
  const otherVersions = converter === undefined ? [] : items.filter((stored) => !isVerbatim(resource, stored))
  const converted =
    converter === undefined || otherVersions.length === 0
      ? []
      : await converter.convert(
          otherVersions.map((stored) => stored.object),
          apiVersion,
        )
  const byStored = new Map(otherVersions.map((stored, index) => [stored, converted[index]]))
  return items.map((stored) => byStored.get(stored) ?? inVersion(stored.object, apiVersion, kind))
}

function inVersion(object: ApiObject, apiVersion: string, kind: string): ApiObject {
  return object.apiVersion === apiVersion ? object : { ...object, apiVersion, kind }
}

async function encodeValue(
  value: Json,
  representation: Representation,
  status: number,
  headers: Record<string, string | string[]>,
): Promise<WholeResponse> {
  if (representation.format === 'yaml') {
    const { writeYamlDocument } = await import('./yaml-text.ts')
    const text = writeYamlDocument(value)
    return {
      kind: 'whole',
      status,
      headers: { 'content-type': 'application/yaml', ...headers },
      body: [Buffer.from(text)],
    }
  }
  return {
    kind: 'whole',
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: [Buffer.from(JSON.stringify(value))],
  }
}

function table(view: View, objects: readonly ApiObject[], metadata: Json, isFirst = true): Json {
  const { resource, includeObject, representation, nowMs } = view
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${representation.version}`,
    metadata,
    columnDefinitions: isFirst ? columnDefinitions(resource.columns) : null,
    rows: objects.map((object) => tableRow(object, resource.columns, includeObject, representation.version, nowMs)),
  }
}

/** A response with one object. */
export async function encodeObject(
  view: View,
  stored: Stored,
  status = 200,
  headers: Record<string, string | string[]> = {},
): Promise<WholeResponse> {
  const { resource, representation } = view
  if (representation.as === undefined && representation.format === 'json' && isVerbatim(resource, stored)) {
    return {
      kind: 'whole',
      status,
      headers: { 'content-type': 'application/json', ...headers },
      body: [resource.prefix, stored.body],
    }
  }
  const object = (await objectsIn(resource, [stored]))[0] as ApiObject
  return await encodeValue(shape(view, object), representation, status, headers)
}

function shape(view: View, object: ApiObject): Json {
  switch (view.representation.as) {
    case undefined:
      return object
    case 'Table':
      return table(view, [object], { resourceVersion: object.metadata.resourceVersion })
    case 'PartialObjectMetadata':
      return partialMetadata(object, view.representation.version)
    case 'PartialObjectMetadataList':
      throw mismatchedShape('PartialObjectMetadataList', `is not a list (*${goName(view.resource)})`)
  }
}

/** Go type of the resource in kube-apiserver's messages. */
function goName(resource: Resource, suffix = ''): string {
  if (resource.isCustom) return `unstructured.Unstructured${suffix}`
  return `${resource.group === '' ? 'core' : (resource.group.split('.')[0] ?? '')}.${resource.kind}${suffix}`
}

const comma = Buffer.from(',')
const open = Buffer.from('{')
const close = Buffer.from(']}')

/** A response with one page of a list. */
export async function encodeList(
  view: View,
  items: readonly Stored[],
  metadata: ListMetadata,
  headers: Record<string, string | string[]> = {},
): Promise<WholeResponse> {
  const { resource, representation } = view
  const { listKind, apiVersion } = resource
  if (
    representation.as === undefined &&
    representation.format === 'json' &&
    items.every((stored) => isVerbatim(resource, stored))
  ) {
    // Items of typed lists have no kind, as in kube-apiserver; dynamic clients of custom resources need it.
    const prefix = resource.isCustom ? resource.prefix : open
    const head = `{"kind":${JSON.stringify(listKind)},"apiVersion":${JSON.stringify(apiVersion)},"metadata":${JSON.stringify(metadata)},"items":[`
    const body: Buffer[] = [Buffer.from(head)]
    for (const [index, stored] of items.entries()) {
      if (index > 0) body.push(comma)
      body.push(prefix, stored.body)
    }
    body.push(close)
    return { kind: 'whole', status: 200, headers: { 'content-type': 'application/json', ...headers }, body }
  }
  const objects = await objectsIn(resource, items)
  const { continue: token, ...others } = metadata
  const listMetadata = token === '' && representation.as !== undefined ? others : metadata
  return await encodeValue(shapeList(view, objects, { ...listMetadata }), representation, 200, headers)
}

function shapeList(view: View, objects: readonly ApiObject[], metadata: Json): Json {
  const { resource, representation } = view
  switch (representation.as) {
    case undefined:
      return {
        kind: resource.listKind,
        apiVersion: resource.apiVersion,
        metadata,
        items: resource.isCustom ? objects : objects.map(({ kind: _kind, apiVersion: _version, ...rest }) => rest),
      }
    case 'Table':
      return table(view, objects, metadata)
    case 'PartialObjectMetadata':
      throw mismatchedShape('PartialObjectMetadata', `is a list (*${goName(resource, 'List')})`)
    case 'PartialObjectMetadataList':
      return {
        kind: 'PartialObjectMetadataList',
        apiVersion: `meta.k8s.io/${representation.version}`,
        metadata,
        items: objects.map((object) => partialMetadata(object, representation.version)),
      }
  }
}

const frameEnd = Buffer.from('}\n')
const frameHeads = new Map<string, Buffer>()

function frameHead(type: string): Buffer {
  let head = frameHeads.get(type)
  if (head === undefined) {
    head = Buffer.from(`{"type":${JSON.stringify(type)},"object":`)
    frameHeads.set(type, head)
  }
  return head
}

/** One line of a watch. `isFirst` adds the column definitions of a Table. */
export function encodeEvent(
  view: View,
  type: WatchEventType,
  stored: Stored,
  isFirst = false,
): Buffer | Promise<Buffer> {
  const { resource, representation } = view
  if (representation.as === undefined && isVerbatim(resource, stored)) {
    return Buffer.concat([frameHead(type), resource.prefix, stored.body, frameEnd])
  }
  if (!isVerbatim(resource, stored)) {
    return objectsIn(resource, [stored]).then(([object]) =>
      encodeFrame(type, shapeEvent(view, object as ApiObject, isFirst)),
    )
  }
  return encodeFrame(type, shapeEvent(view, inVersion(stored.object, resource.apiVersion, resource.kind), isFirst))
}

function shapeEvent(view: View, object: ApiObject, isFirst: boolean): Json {
  if (view.representation.as === 'PartialObjectMetadataList')
    return partialMetadata(object, view.representation.version)
  if (view.representation.as !== 'Table') return shape(view, object)
  return table(view, [object], { resourceVersion: object.metadata.resourceVersion }, isFirst)
}

export function encodeFrame(type: string, object: unknown): Buffer {
  return Buffer.from(`{"type":${JSON.stringify(type)},"object":${JSON.stringify(object)}}\n`)
}

export function encodeBookmark(view: View, resourceVersion: number, isInitialEventsEnd: boolean): Buffer {
  const { resource, representation } = view
  const metadata = {
    resourceVersion: String(resourceVersion),
    ...(isInitialEventsEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}),
  }
  const object: ApiObject = { kind: resource.kind, apiVersion: resource.apiVersion, metadata }
  switch (representation.as) {
    case undefined:
      return encodeFrame('BOOKMARK', object)
    case 'Table':
      return encodeFrame('BOOKMARK', table(view, [object], { resourceVersion: metadata.resourceVersion }, false))
    case 'PartialObjectMetadata':
    case 'PartialObjectMetadataList':
      return encodeFrame('BOOKMARK', partialMetadata(object, representation.version))
  }
}
