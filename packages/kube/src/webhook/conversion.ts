/**
 * Conversion between versions of a CRD, through one hub version that can express all fields of the others.
 *
 * Place in the flow: server.ts passes a ConversionReview; a kind declares its spokes with `mgr.conversion`.
 *
 * Guarantees
 * - Lossless both ways: what the other version cannot express is kept in an annotation of the converted object and
 *   restored on the way back, merged with edits made in between (three-way, as a JSON merge patch: lists as a whole).
 *   Where the restored object would contradict an edit, the edit wins.
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

/** Annotation of a spoke object with the body of its hub object, if the spoke cannot express all of it. */
const HUB_ANNOTATION = 'conversion.seamark.io/hub'

/** Annotation of a hub object with the body of the spoke object it was made from, if the hub cannot express all of it. */
function spokeAnnotation(spoke: Spoke<Obj>): string {
  return `conversion.seamark.io/${spoke.version}`
}

function fromHub(conversion: Conversion, hub: Obj, desired: string): Obj {
  const spoke = spokeOf(conversion, desired)
  return translate(hub, {
    version: desired,
    forward: (object) => spoke.fromHub(object),
    back: (object) => spoke.toHub(object),
    restoredFrom: spokeAnnotation(spoke),
    keptIn: HUB_ANNOTATION,
  })
}

function toHub(conversion: Conversion, object: Obj, from: string, hubVersion: string): Obj {
  const spoke = spokeOf(conversion, from)
  return translate(object, {
    version: hubVersion,
    forward: (given) => spoke.toHub(given),
    back: (given) => spoke.fromHub(given),
    restoredFrom: HUB_ANNOTATION,
    keptIn: spokeAnnotation(spoke),
  })
}

interface Translation {
  /** apiVersion of the result. */
  readonly version: string
  readonly forward: (object: Obj) => Obj
  readonly back: (object: Obj) => Obj
  /** Annotation of the given object with an earlier body in the other version. */
  readonly restoredFrom: string
  /** Annotation of the result for the given body, when the result alone would not give it back. */
  readonly keptIn: string
}

function translate(object: Obj, { version, forward, back, restoredFrom, keptIn }: Translation): Obj {
  const { annotations: given, ...rest } = object.metadata
  const { [restoredFrom]: earlier, ...annotations } = given ?? {}
  const hasOthers = Object.keys(annotations).length > 0
  const bare = earlier === undefined ? object : { ...object, metadata: { ...rest, ...(hasOthers && { annotations }) } }
  const there = (from: Obj): Obj => finish(forward(structuredClone(from)), from, version)
  const andBack = (from: Obj): Obj => finish(back(structuredClone(from)), from, object.apiVersion ?? '')
  const plain = there(bare)
  const original = earlier === undefined ? undefined : parseKept(earlier)
  const converted = original === undefined ? plain : restore(original)
  if (isDeepStrictEqual(bodyOf(andBack(converted)), bodyOf(bare))) return converted
  const { metadata } = converted
  return {
    ...converted,
    metadata: { ...metadata, annotations: { ...metadata.annotations, [keptIn]: JSON.stringify(bodyOf(bare)) } },
  }

  /** The earlier body with the edits that were made since, unless it would contradict the object. */
  function restore(body: Plain): Obj {
    const before: Obj = { ...plain, ...body }
    for (const key of Object.keys(bodyOf(plain))) if (!Object.hasOwn(body, key)) delete (before as Plain & Obj)[key]
    const shown = there(andBack(before))
    const edited = mergePatch(body, mergeDiff(bodyOf(shown), bodyOf(plain))) as object
    const { apiVersion, kind, metadata } = plain
    const merged: Obj = {
      ...edited,
      ...(apiVersion !== undefined && { apiVersion }),
      ...(kind !== undefined && { kind }),
      metadata,
    }
    return isDeepStrictEqual(bodyOf(there(andBack(merged))), bodyOf(plain)) ? merged : plain
  }
}

/** An invalid annotation is ignored; the object itself is still converted. */
function parseKept(text: string): Plain | undefined {
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
