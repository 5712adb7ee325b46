/** JSON merge patch (RFC 7386). Pure: neither argument is changed; untouched parts are shared with the document. */
import { getOwn, isJsonObject, setOwn } from '../codec/json-object.ts'
import type { JsonObject } from '../codec/json-object.ts'

export function applyMergePatch(document: unknown, patch: unknown): unknown {
  if (!isJsonObject(patch)) return patch
  const result: JsonObject = isJsonObject(document) ? { ...document } : {}
  for (const key of Object.keys(patch)) {
    const value = getOwn(patch, key)
    if (value === null) delete result[key]
    else setOwn(result, key, applyMergePatch(getOwn(result, key), value))
  }
  return result
}
