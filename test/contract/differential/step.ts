/** One request of the differential script, and functions to create it. */
import type { RawAnswer, RawRequest } from './raw-client.ts'

/** Previous responses, by the name (`as`) of their step. */
export type Seen = (name: string) => { metadata: { resourceVersion: string; uid: string; continue: string } }

export interface Step extends Omit<RawRequest, 'body' | 'path'> {
  path: string | ((seen: Seen) => string)
  body?: unknown
  /** Computes the body from previous responses. */
  bodyFrom?: (seen: Seen) => unknown
  /** Name of the response for `seen`. */
  as?: string
  /** Repeats the request until this returns true: for results that the server produces with a delay. */
  until?: (answer: RawAnswer) => boolean
}

const json = { 'content-type': 'application/json' }
const accepts = (type: string) => ({ headers: { accept: type } })

type More = Partial<Step>

export const get = (path: Step['path'], more: More = {}): Step => ({ method: 'GET', path, ...more })

export const post = (path: string, body: unknown, more: More = {}): Step => ({
  method: 'POST',
  path,
  body,
  headers: json,
  ...more,
})

export const put = (path: string, bodyFrom: (seen: Seen) => unknown, more: More = {}): Step => ({
  method: 'PUT',
  path,
  bodyFrom,
  headers: json,
  ...more,
})

export const remove = (path: string, body?: unknown, more: More = {}): Step => ({
  method: 'DELETE',
  path,
  ...(body !== undefined && { body, headers: json }),
  ...more,
})

export const patchTypes = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
}

export const patch = (type: keyof typeof patchTypes, path: string, body: unknown, more: More = {}): Step => ({
  method: 'PATCH',
  path,
  body,
  headers: { 'content-type': patchTypes[type] },
  ...more,
})

export const watch = (path: Step['path'], lines: number, more: More = {}): Step => ({
  method: 'GET',
  path,
  lines,
  ...more,
})

export const asTable = accepts('application/json;as=Table;v=v1;g=meta.k8s.io')
export const asMetadata = accepts('application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io')
export const asMetadataList = accepts('application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io')
export const asYaml = accepts('application/yaml')
