/** The two Event APIs: core/v1 is the storage version, events.k8s.io/v1 is the same object with other field names. */
import { type ApiObject, type Json } from '../codec/object-shape.ts'
import type { Converter } from './resource.ts'

/** core/v1 name → events.k8s.io/v1 name. */
const renamed: readonly (readonly [string, string])[] = [
  ['involvedObject', 'regarding'],
  ['message', 'note'],
  ['source', 'deprecatedSource'],
  ['firstTimestamp', 'deprecatedFirstTimestamp'],
  ['lastTimestamp', 'deprecatedLastTimestamp'],
  ['count', 'deprecatedCount'],
  ['reportingComponent', 'reportingController'],
]

function rename(object: ApiObject, apiVersion: string): ApiObject {
  const names = new Map(renamed.map(([core, modern]) => (apiVersion === 'v1' ? [modern, core] : [core, modern])))
  const result: Json = {}
  for (const key of Object.keys(object)) result[names.get(key) ?? key] = object[key]
  // Always written in one API, omitted when empty in the other.
  for (const key of ['reportingController', 'reportingInstance'])
    if (apiVersion !== 'v1' && result[key] === '') delete result[key]
  return { ...result, apiVersion, kind: 'Event', metadata: object.metadata }
}

export const eventConverter: Converter = {
  convert: (objects, apiVersion) =>
    objects.map((object) => (object.apiVersion === apiVersion ? object : rename(object, apiVersion))),
}
