/**
 * Conversion between versions of a CRD, through one hub version that can express all fields of the others.
 *
 * Place in the flow: server.ts passes a ConversionReview; a kind declares its spokes with `mgr.conversion`.
 *
 * Guarantees
 * - Lossless: fields that a spoke version cannot express are kept in an annotation of the converted object and restored
 *   on conversion to the hub, merged with edits made in between (three-way, as a JSON merge patch: lists as a whole).
 * - Only labels and annotations of the metadata change; the API server rejects other changes.
 * - Either all objects of a review are converted, or the response is one failure that names the object.
 */
import { isDeepStrictEqual } from 'node:util'
import { messageOf } from '../errors.ts'
import { apiVersionOf, keyOf, type Kind, type Obj } from '../object/object.ts'
import type { ConversionRequest } from './review.ts'

export interface Spoke<H extends Obj, S extends Obj = Obj> {
  /** Version of the kind's group, e.g. `v1beta1`. */
  version: string
  /** Pure; apiVersion and kind are set afterwards, metadata may be passed through unchanged. */
  toHub: (spoke: S) => H
  fromHub: (hub: H) => S
}

export interface Conversion {
  readonly hub: Kind
  readonly spokes: ReadonlyMap<string, Spoke<Obj>>
}

export interface ConversionResponse {
  uid: string
  result: { status: 'Success' } | { status: 'Failure'; message: string }
  convertedObjects: Obj[]
}

export function defineConversion<H extends Obj, S extends Obj>(
  hub: Kind<H>,
  spokes: readonly Spoke<H, S>[],
): Conversion {
  const byVersion = spokes.map((spoke): [string, Spoke<Obj>] => [
    hub.group === '' ? spoke.version : `${hub.group}/${spoke.version}`,
    spoke as unknown as Spoke<Obj>,
  ])
  return { hub, spokes: new Map(byVersion) }
}

/** An exception of a hook is a failure of the review, returned to the user who sent the object. */
export function convertReview(conversions: readonly Conversion[], request: ConversionRequest): ConversionResponse {
  const { uid, desiredAPIVersion, objects } = request
  const convertedObjects: Obj[] = []
  for (const object of objects) {
    try {
      convertedObjects.push(convert(conversions, object, desiredAPIVersion))
    } catch (error) {
      const message = `${object.kind} ${keyOf(object)} cannot be converted from ${object.apiVersion} to ${desiredAPIVersion}: ${messageOf(error)}`
      return { uid, result: { status: 'Failure', message }, convertedObjects: [] }
    }
  }
  return { uid, result: { status: 'Success' }, convertedObjects }
}

export function convert(conversions: readonly Conversion[], object: Obj, desired: string): Obj {
  const { apiVersion = '', kind } = object
  if (apiVersion === desired) return object
  const conversion = conversions.find(
    ({ hub }) => hub.kind === kind && groupOf(apiVersionOf(hub)) === groupOf(apiVersion),
  )
  if (conversion === undefined) throw new Error(`no conversion is known for kind ${kind}`)
  const hubVersion = apiVersionOf(conversion.hub)
  const hub = apiVersion === hubVersion ? object : toHub(conversion, object, apiVersion, hubVersion)
  return desired === hubVersion ? hub : fromHub(conversion, hub, desired)
}

function spokeOf({ spokes }: Conversion, version: string): Spoke<Obj> {
  const spoke = spokes.get(version)
  if (spoke === undefined)
    throw new Error(`version ${version} is not known; known are ${[...spokes.keys()].join(', ')}`)
  return spoke
}

/** Annotation with the hub object, without metadata, if a spoke cannot express all of it. */
const HUB_ANNOTATION = 'conversion.seamark.io/hub'

function fromHub(conversion: Conversion, hub: Obj, desired: string): Obj {
  const spoke = spokeOf(conversion, desired)
  const plain = finish(spoke.fromHub(structuredClone(hub)), hub, desired)
  const back = finish(spoke.toHub(structuredClone(plain)), plain, hub.apiVersion ?? '')
  if (isDeepStrictEqual(bodyOf(back), bodyOf(hub))) return plain
  const annotations = { ...plain.metadata.annotations, [HUB_ANNOTATION]: JSON.stringify(bodyOf(hub)) }
  return { ...plain, metadata: { ...plain.metadata, annotations } }
}

function toHub(conversion: Conversion, object: Obj, from: string, hubVersion: string): Obj {
  const spoke = spokeOf(conversion, from)
  const { [HUB_ANNOTATION]: kept, ...annotations } = object.metadata.annotations ?? {}
  if (kept === undefined) return finish(spoke.toHub(structuredClone(object)), object, hubVersion)
  const { annotations: _annotations, ...rest } = object.metadata
  const metadata = Object.keys(annotations).length === 0 ? rest : { ...rest, annotations }
  const bare = { ...object, metadata }
  const edited = finish(spoke.toHub(structuredClone(bare)), bare, hubVersion)
  const original = parseHubAnnotation(kept)
  if (original === undefined) return edited
  const before = {
    ...original,
    metadata,
    apiVersion: hubVersion,
    ...(object.kind !== undefined && { kind: object.kind }),
  }
  const shown = finish(spoke.toHub(spoke.fromHub(structuredClone(before))), bare, hubVersion)
  const body = mergePatch(bodyOf(before), mergeDiff(bodyOf(shown), bodyOf(edited))) as object
  return { ...edited, ...body, metadata: edited.metadata }
}

/** An invalid annotation is ignored; the object itself is still converted. */
function parseHubAnnotation(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isPlain(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Only labels and annotations of the metadata that a hook returns are used. */
function finish(converted: Obj, from: Obj, apiVersion: string): Obj {
  const { labels: _labels, annotations: _annotations, ...rest } = from.metadata
  const { labels, annotations } = converted.metadata
  const metadata = {
    ...rest,
    ...(labels !== undefined && { labels }),
    ...(annotations !== undefined && { annotations }),
  }
  return {
    ...(JSON.parse(JSON.stringify(converted)) as Obj),
    apiVersion,
    ...(from.kind !== undefined && { kind: from.kind }),
    metadata,
  }
}

type Plain = Record<string, unknown>

function bodyOf({ apiVersion: _version, kind: _kind, metadata: _metadata, ...body }: Obj): Plain {
  return body
}

function isPlain(value: unknown): value is Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** RFC 7386: the merge patch from `from` to `to`. */
function mergeDiff(from: Plain, to: Plain): Plain {
  const patch: Plain = {}
  for (const key of Object.keys(from)) if (!Object.hasOwn(to, key)) patch[key] = null
  for (const [key, value] of Object.entries(to)) {
    const old = Object.hasOwn(from, key) ? from[key] : undefined
    if (isDeepStrictEqual(old, value)) continue
    patch[key] = isPlain(old) && isPlain(value) ? mergeDiff(old, value) : value
  }
  return patch
}

function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isPlain(patch)) return patch
  const result: Plain = isPlain(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else result[key] = mergePatch(result[key], value)
  }
  return result
}

function groupOf(apiVersion: string): string {
  return apiVersion.slice(0, Math.max(0, apiVersion.indexOf('/')))
}
