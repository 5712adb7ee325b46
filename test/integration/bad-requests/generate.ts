/**
 * Requests that no client should send, by class; each with the codes a real kube-apiserver answers to its class. Some
 * look bad and are not (`__proto__` is a fine key of a ConfigMap): then the code says so.
 *
 * The world they are sent into: namespace `default`, ConfigMap `there`, and the CRD of `crd.ts`.
 */
import fc from 'fast-check'
import { crd, rope } from './crd.ts'

export interface BadRequest {
  readonly what: string
  readonly method: string
  /** Path and query, as sent. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly codes: readonly number[]
  /** Without the administrator's certificate. */
  readonly isAnonymous?: boolean
}

const maps = '/api/v1/namespaces/default/configmaps'
const ropes = '/apis/bad.test/v1/namespaces/default/ropes'
const json = { 'content-type': 'application/json' }
const merge = { 'content-type': 'application/merge-patch+json' }
const apply = { 'content-type': 'application/apply-patch+yaml' }
const limitBytes = 3 * 1024 * 1024

const configMap = (metadata: unknown, more: object = { data: { a: '1' } }) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, ...more })

/** Characters that may stand in a request line, percent signs aside. */
const pathText = (maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...'abcXYZ019-._~!$&()*+,;=:@'), minLength: 1, maxLength })

/** Values of every JSON type but one. */
const except = (type: 'object' | 'string') =>
  fc.oneof(fc.integer(), fc.boolean(), fc.array(fc.integer(), { minLength: 1, maxLength: 3 }), type === 'object' ? fc.string({ minLength: 1 }) : fc.constant({ a: 1 }))

const encoded = (text: string) => encodeURIComponent(text).replaceAll('%20', '+')

const create = (what: string, body: fc.Arbitrary<string>, codes: readonly number[], path = maps): fc.Arbitrary<BadRequest> =>
  body.map((text) => ({ what, method: 'POST', path, headers: json, body: text, codes }))

const list = (what: string, query: fc.Arbitrary<string>, codes: readonly number[]): fc.Arbitrary<BadRequest> =>
  query.map((text) => ({ what, method: 'GET', path: `${maps}?${text}`, headers: {}, codes }))

const change = (
  what: string,
  headers: Record<string, string>,
  body: fc.Arbitrary<string>,
  codes: readonly number[],
  path = `${maps}/there`,
): fc.Arbitrary<BadRequest> => body.map((text) => ({ what, method: 'PATCH', path, headers, body: text, codes }))

const isBadJson = (text: string) => {
  try {
    JSON.parse(text)
    return false
  } catch {
    return true
  }
}

const names = fc.oneof(
  fc.string({ unit: fc.constantFrom(...'AZ_é%!@ #/\\'), minLength: 1, maxLength: 20 }),
  fc.integer({ min: 254, max: 400 }).map((length) => 'a'.repeat(length)),
  fc.constantFrom('-a', 'a-', '.a', 'a..b', '__proto__', 'constructor.Name', '\0'),
)

const pollution = fc.constantFrom('__proto__', 'constructor', 'prototype', 'hasOwnProperty', 'toString')

const bodies: fc.Arbitrary<BadRequest>[] = [
  create('text that is not JSON', fc.string({ minLength: 1, maxLength: 200 }).filter((text) => isBadJson(text) && text.trim() !== ''), [400]),
  create(
    'JSON cut short',
    fc.nat({ max: 60 }).map((cut) => configMap({ name: 'cut' }).slice(0, 1 + cut)),
    [400],
  ),
  create('a body that is no object', except('object').map((value) => JSON.stringify(value)), [400]),
  create('metadata of a wrong type', except('object').map((value) => configMap(value)), [400]),
  create('data of a wrong type', except('object').map((value) => configMap({ name: 'typed' }, { data: value })), [400]),
  create('a value of a wrong type', except('string').map((value) => configMap({ name: 'typed' }, { data: { a: value } })), [400]),
  create('labels of a wrong type', except('string').map((value) => configMap({ name: 'typed', labels: { a: value } })), [400]),
  create('a bad name', names.map((name) => configMap({ name })), [422]),
  create('no name', fc.constantFrom({}, { name: '' }, { generateName: '' }).map((metadata) => configMap(metadata)), [422]),
  create('a bad label', names.map((value) => configMap({ name: 'labelled', labels: { a: `${value} ` } })), [422]),
  create('a bad label key', names.map((key) => configMap({ name: 'labelled', labels: { [`/${key}`]: 'a' } })), [422]),
  create('a bad annotation key', names.map((key) => configMap({ name: 'annotated', annotations: { [`/${key}`]: 'a' } })), [422]),
  create('a bad data key', fc.constantFrom('a b', '', '/', '..', 'ä', 'k'.repeat(254)).map((key) => configMap({ name: 'keyed' }, { data: { [key]: '1' } })), [422]),
  create('a bad finalizer', names.map((name) => configMap({ name: 'held', finalizers: [`${name} `] })), [422]),
  create('a bad owner', pathText(8).map((name) => configMap({ name: 'owned', ownerReferences: [{ name }] })), [422]),
  create('another namespace', fc.constantFrom('kube-system', 'other').map((namespace) => configMap({ name: 'away', namespace })), [400]),
  create('another kind', fc.constantFrom('Secret', 'Pod', 'Nosuch').map((kind) => configMap({ name: 'kind' }, { kind })), [400]),
  create('another version', fc.constantFrom('v2', 'apps/v1', 'a/b/c', '//').map((apiVersion) => configMap({ name: 'version' }, { apiVersion })), [400]),
  create('a missing namespace', fc.constant(configMap({ name: 'lost' })), [404], '/api/v1/namespaces/nosuch/configmaps'),
  create('nesting without end', fc.integer({ min: 10_001, max: 20_000 }).map((depth) => `{"metadata":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`), [400]),
  create('an unknown field, strictly', pollution.map((key) => `{"metadata":{"name":"strict"},"${key}":{"polluted":true}}`), [400], `${maps}?fieldValidation=Strict`),
  create('the same field twice, strictly', fc.constantFrom('data', 'metadata').map((key) => `{"metadata":{"name":"twice"},"${key}":{},"${key}":{}}`), [400], `${maps}?fieldValidation=Strict`),
  create('a polluting label', pollution.filter((key) => key.startsWith('_')).map((key) => `{"metadata":{"name":"polluted","labels":{"${key}":"x"}}}`), [422]),
  create('an object above the limit', fc.integer({ min: 1, max: 50 }).map((over) => configMap({ name: 'big' }, { data: { a: 'x'.repeat(limitBytes + over) } })), [413]),
  create('a value above the limit of its kind', fc.integer({ min: 1, max: 50 }).map((over) => configMap({ name: 'big' }, { data: { a: 'x'.repeat(1024 * 1024 + over) } })), [422]),
]

const queries: fc.Arbitrary<BadRequest>[] = [
  list('a bad label selector', fc.constantFrom('a in b', 'a in (', '=b', 'a==b==c', 'a b', '!', 'a notin', ',,', 'a=b c', '~', 'a in (b c)').map((text) => `labelSelector=${encoded(text)}`), [400]),
  list('a label selector of noise', fc.string({ unit: fc.constantFrom(...'#^%$"\'{}[]'), minLength: 1, maxLength: 20 }).map((text) => `labelSelector=${encoded(text)}`), [400]),
  list('a bad field selector', fc.constantFrom('a', 'data.a=1', 'metadata.uid=1', 'spec=', 'metadata.name', '__proto__=1', 'constructor=1').map((text) => `fieldSelector=${encoded(text)}`), [400]),
  list('a bad limit', fc.constantFrom('x', '1.5', '1e3', '99999999999999999999').map((text) => `limit=${text}`), [400]),
  list('a bad continue', fc.string({ unit: fc.constantFrom(...'abcXYZ019-_.!'), minLength: 1, maxLength: 40 }).map((text) => `limit=1&continue=${text}`), [400]),
  list('a bad resourceVersion', fc.constantFrom('x', '-1', '1.5', '0x10', '1e3', '99999999999999999999').map((text) => `resourceVersion=${text}`), [400]),
  list('a bad match', fc.constantFrom('resourceVersionMatch=Exact', 'resourceVersion=1&resourceVersionMatch=Nearly', 'resourceVersion=0&resourceVersionMatch=Exact', 'sendInitialEvents=true'), [422]),
  list('a revision of the future', fc.integer({ min: 10 ** 8, max: 10 ** 9 }).map((version) => `resourceVersion=${version}&resourceVersionMatch=Exact`), [504]),
  fc.constantFrom('dryRun=Some', 'dryRun=all', 'fieldValidation=Perhaps', `fieldManager=${'m'.repeat(129)}`, 'fieldManager=%00').map((query) => ({
    what: 'a bad option', method: 'POST', path: `${maps}?${query}`, headers: json, body: configMap({ name: 'option' }), codes: [422],
  })),
]

const paths: fc.Arbitrary<BadRequest>[] = [
  pathText(12).map((text) => ({ what: 'no such path', method: 'GET', path: `/${text}/x`, headers: {}, codes: [404] })),
  pathText(12).map((text) => ({ what: 'no such group', method: 'GET', path: `/apis/${text}.test/v1/things`, headers: {}, codes: [404] })),
  pathText(12).filter((text) => !/^\.+$/.test(text)).map((text) => ({ what: 'no such resource', method: 'GET', path: `/api/v1/no-${text}`, headers: {}, codes: [404] })),
  pathText(12).map((text) => ({ what: 'no such object', method: 'GET', path: `${maps}/no-${text}`, headers: {}, codes: [404] })),
  fc.constantFrom('/nosuch', '/status/x', '/scale').map((text) => ({ what: 'no such subresource', method: 'GET', path: `${maps}/there${text}`, headers: {}, codes: [404] })),
  fc.constantFrom('PUT', 'PATCH').map((method) => ({ what: 'a method that collections lack', method, path: maps, headers: json, body: '{}', codes: [405] })),
  fc.constant({ what: 'a method that objects lack', method: 'POST', path: `${maps}/there`, headers: json, body: '{}', codes: [405] }),
  fc.constantFrom('%zz', '%', '%1').map((text) => ({ what: 'a path that is not encoded', method: 'GET', path: `${maps}/${text}`, headers: {}, codes: [400] })),
]

const headers: fc.Arbitrary<BadRequest>[] = [
  fc.constantFrom('text/csv', 'application/xml', 'application/cbor-x', 'nonsense', 'a/b/c').map((type) => ({
    what: 'a body of an unknown type', method: 'POST', path: maps, headers: { 'content-type': type }, body: configMap({ name: 'typed' }), codes: [415],
  })),
  fc.constantFrom('text/html', 'image/png', 'application/json;as=Nonsense;v=v1;g=meta.k8s.io').map((accept) => ({
    what: 'an answer of an unknown type', method: 'GET', path: `${maps}/there`, headers: { accept }, codes: [406],
  })),
  fc.constantFrom('application/json', 'text/plain', 'application/octet-stream').map((type) => ({
    what: 'a patch of an unknown type', method: 'PATCH', path: `${maps}/there`, headers: { 'content-type': type }, body: '{}', codes: [415],
  })),
  fc.string({ unit: fc.constantFrom(...'abcXYZ019-_.=+/'), minLength: 1, maxLength: 60 }).map((token) => ({
    what: 'a token of nobody', method: 'GET', path: maps, headers: { authorization: `Bearer ${token}` }, codes: [401], isAnonymous: true,
  })),
  pathText(10).map((user) => ({
    what: 'a user without rights', method: 'GET', path: maps, headers: { 'impersonate-user': user }, codes: [403],
  })),
]

const operations = fc.constantFrom(
  [{ op: 'remove', path: '/data/none' }],
  [{ op: 'test', path: '/data/a', value: 'other' }],
  [{ op: 'replace', path: '/none/of/these', value: 1 }],
  [{ op: 'move', from: '/none', path: '/data/b' }],
  [{ op: 'sing', path: '/data' }],
  [{ op: 'add', path: '/data/x', value: 7 }],
)

const patches: fc.Arbitrary<BadRequest>[] = [
  change('a JSON patch that does not apply', { 'content-type': 'application/json-patch+json' }, operations.map((value) => JSON.stringify(value)), [422]),
  change('a JSON patch that is no list', { 'content-type': 'application/json-patch+json' }, except('object').filter((value) => !Array.isArray(value)).map((value) => JSON.stringify(value)), [400]),
  change('a merge patch that is no object', merge, except('object').map((value) => JSON.stringify(value)), [400]),
  change('a merge patch that is not JSON', merge, fc.string({ unit: fc.constantFrom(...'{}[]":,a'), minLength: 1 }).filter(isBadJson), [400]),
  change('a merge patch to another name', merge, fc.constantFrom('other', 'no').map((name) => JSON.stringify({ metadata: { name } })), [400]),
  change('a merge patch of an old revision', merge, fc.integer({ min: 1, max: 9 }).map((version) => JSON.stringify({ metadata: { resourceVersion: `${version}` } })), [409]),
  change('a merge patch with a wrong type', merge, fc.integer().map((value) => JSON.stringify({ data: { a: value } })), [422]),
  change('a strategic patch of a custom resource', { 'content-type': 'application/strategic-merge-patch+json' }, fc.constant('{}'), [415], `${ropes}/there`),
  change('an apply without manager', apply, fc.constant(configMap({ name: 'there' })), [422]),
  change('an apply that is not YAML', apply, fc.constantFrom('a: [', '\t', '{', '- a\nb', 'a: *b').map((text) => text), [400], `${maps}/there?fieldManager=m`),
  change('an apply of another kind', apply, fc.constantFrom('Secret', 'Nosuch').map((kind) => configMap({ name: 'there' }, { kind })), [400], `${maps}/there?fieldManager=m`),
  change('an apply with managers', apply, fc.constant(configMap({ name: 'there', managedFields: [{ manager: 'x' }] })), [400], `${maps}/there?fieldManager=m`),
  change('a patch of nothing', merge, fc.constant('{}'), [404], `${maps}/none`),
]

const removals: fc.Arbitrary<BadRequest>[] = [
  fc.uuid().map((uid) => ({ what: 'a delete of another object', method: 'DELETE', path: `${maps}/there`, headers: json, body: JSON.stringify({ preconditions: { uid } }), codes: [409] })),
  fc.constantFrom('Sideways', 'background').map((propagationPolicy) => ({ what: 'a delete by an unknown policy', method: 'DELETE', path: `${maps}/there`, headers: json, body: JSON.stringify({ propagationPolicy }), codes: [422] })),
  fc.string({ unit: fc.constantFrom(...'{}[]":,a'), minLength: 1 }).filter(isBadJson).map((body) => ({ what: 'a delete that is not JSON', method: 'DELETE', path: `${maps}/there`, headers: json, body, codes: [400] })),
]

const custom: fc.Arbitrary<BadRequest>[] = [
  create('a string that makes patterns run away', fc.tuple(fc.constantFrom('plus', 'or', 'star'), fc.integer({ min: 30, max: 2_000 })).map(([field, length]) => rope({ [field]: `${'a'.repeat(length)}!` })), [422], ropes),
  create('a spec of a wrong type', except('object').map((spec) => rope(spec)), [422], ropes),
  create('a number out of range', fc.constantFrom(-1, 1001, 1.5, 2 ** 60).map((length) => rope({ length })), [422], ropes),
  create('a number beyond numbers', fc.constantFrom('1e999', '-1e999').map((text) => rope({ length: 0 }).replace('"length":0', `"length":${text}`)), [400], ropes),
  create('a list with an item twice', fc.constantFrom(['a', 'a']).map((knots) => rope({ knots })), [422], ropes),
  create('a rule that is broken', fc.integer({ min: 1, max: 9 }).map((length) => rope({ length, spare: length + 1 })), [422], ropes),
  create('a pattern that is none', fc.constantFrom('(', '[z-a]', 'a**', '(?=a)', '\\').map((pattern) => JSON.stringify(crd('no.bad.test', pattern))), [422], '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'),
  create('a definition of a wrong type', except('object').map((spec) => JSON.stringify({ ...crd('no.bad.test', 'a'), spec })), [400], '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'),
]

const classes = [...bodies, ...queries, ...paths, ...headers, ...patches, ...removals, ...custom]

/** Megabytes take time to make and to read: one in a hundred is enough of those. */
export const badRequest: fc.Arbitrary<BadRequest> = fc.oneof(
  ...classes.map((arbitrary, index) => ({ arbitrary, weight: [19, 23, 24].includes(index) ? 1 : 100 })),
)

/** A few of every class, for servers that are too slow for ten thousand. */
export function samples(perClass: number, seed: number): BadRequest[] {
  return classes.flatMap((arbitrary) => fc.sample(arbitrary, { numRuns: perClass, seed }))
}
