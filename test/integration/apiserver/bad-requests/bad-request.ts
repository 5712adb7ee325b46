/**
 * A request that no client should send, with the codes a real kube-apiserver answers to its class, and short ways to
 * write classes down.
 *
 * The environment they are sent into: namespace `default`, ConfigMap `there`, and the CRD of crd.ts with a Rope `there`.
 */
import fc from 'fast-check'

export interface BadRequest {
  readonly what: string
  readonly method: string
  /** Path and query, as sent. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly codes: readonly number[]
  /** Without the administrator's credentials. */
  readonly isAnonymous?: boolean
}

export type Class = fc.Arbitrary<BadRequest>

export const maps = '/api/v1/namespaces/default/configmaps'
export const ropes = '/apis/bad.test/v1/namespaces/default/ropes'
export const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
export const json = { 'content-type': 'application/json' }

/** A ConfigMap as JSON text. */
export function configMap(metadata: unknown, more: object = { data: { a: '1' } }): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, ...more })
}

/** Strings of these characters. */
export function textOf(characters: string, maxLength = 20): fc.Arbitrary<string> {
  return fc.string({ unit: fc.constantFrom(...characters.split('')), minLength: 1, maxLength })
}

/** Characters that are allowed in a request line, percent signs aside. */
export const pathText = textOf('abcXYZ019-._~!$&()*+,;=:@', 12)

/** Values of every JSON type but one. */
export function except(type: 'object' | 'string'): fc.Arbitrary<unknown> {
  const other = type === 'object' ? fc.string({ minLength: 1 }) : fc.constant({ a: 1 })
  return fc.oneof(fc.integer(), fc.boolean(), fc.array(fc.integer(), { minLength: 1, maxLength: 3 }), other)
}

export function isBadJson(text: string): boolean {
  try {
    JSON.parse(text)
    return false
  } catch {
    return true
  }
}

/** Text in the characters of JSON that is none. */
export const brokenJson = textOf('{}[]":,a').filter(isBadJson)

/** Any text to create something from. */
export function createText(what: string, body: fc.Arbitrary<string>, code: number, path = maps): Class {
  return body.map((text) => ({ what, method: 'POST', path, headers: json, body: text, codes: [code] }))
}

/** A ConfigMap made of each value. */
export function create<T>(what: string, values: fc.Arbitrary<T>, code: number, bodyOf: (value: T) => string): Class {
  return createText(what, values.map(bodyOf), code)
}

export function list(what: string, query: fc.Arbitrary<string>, code: number): Class {
  return query.map((text) => ({ what, method: 'GET', path: `${maps}?${text}`, headers: {}, codes: [code] }))
}

export function get(what: string, path: fc.Arbitrary<string>, code: number): Class {
  return path.map((text) => ({ what, method: 'GET', path: text, headers: {}, codes: [code] }))
}

const patchTypes = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
}

export function patch(
  what: string,
  type: keyof typeof patchTypes,
  body: fc.Arbitrary<string>,
  code: number,
  path = `${maps}/there`,
): Class {
  const headers = { 'content-type': patchTypes[type] }
  return body.map((text) => ({ what, method: 'PATCH', path, headers, body: text, codes: [code] }))
}

export function remove(what: string, body: fc.Arbitrary<string>, code: number): Class {
  return body.map((text) => ({
    what,
    method: 'DELETE',
    path: `${maps}/there`,
    headers: json,
    body: text,
    codes: [code],
  }))
}
