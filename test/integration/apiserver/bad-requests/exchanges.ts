/** Paths, queries, headers, patches and deletes that cannot be. */
import fc from 'fast-check'
import {
  brokenJson,
  configMap,
  except,
  get,
  json,
  list,
  maps,
  patch,
  pathText,
  remove,
  ropes,
  textOf,
  type Class,
} from './bad-request.ts'

const encoded = (text: string) => encodeURIComponent(text).replaceAll('%20', '+')

const labelSelectors = fc.oneof(
  fc.constantFrom('a in b', 'a in (', '=b', 'a==b==c', 'a b', '!', 'a notin', ',,', 'a=b c', '~', 'a in (b c)'),
  textOf('#^%$"\'{}[]'),
)
const fieldSelectors = fc.constantFrom('a', 'data.a=1', 'metadata.uid=1', 'spec=', 'metadata.name', '__proto__=1')
const revisions = fc.constantFrom('x', '-1', '1.5', '0x10', '1e3', '99999999999999999999')
const matches = fc.constantFrom(
  'resourceVersionMatch=Exact',
  'resourceVersion=1&resourceVersionMatch=Nearly',
  'resourceVersion=0&resourceVersionMatch=Exact',
  'sendInitialEvents=true',
)
const writeOptions = fc.constantFrom(
  'dryRun=Some',
  'dryRun=all',
  'fieldValidation=Perhaps',
  `fieldManager=${'m'.repeat(129)}`,
  'fieldManager=%00',
)

const queries: Class[] = [
  list(
    'a bad label selector',
    labelSelectors.map((text) => `labelSelector=${encoded(text)}`),
    400,
  ),
  list(
    'a bad field selector',
    fieldSelectors.map((text) => `fieldSelector=${encoded(text)}`),
    400,
  ),
  list(
    'a bad limit',
    fc.constantFrom('x', '1.5', '1e3', '99999999999999999999').map((text) => `limit=${text}`),
    400,
  ),
  list(
    'a bad continue',
    textOf('abcXYZ019-_.!', 40).map((text) => `limit=1&continue=${text}`),
    400,
  ),
  list(
    'a bad resourceVersion',
    revisions.map((text) => `resourceVersion=${text}`),
    400,
  ),
  list('a bad match', matches, 422),
  list(
    'a revision of the future',
    fc.integer({ min: 10 ** 8, max: 10 ** 9 }).map((text) => `resourceVersion=${text}&resourceVersionMatch=Exact`),
    504,
  ),
  writeOptions.map((query) => ({
    what: 'a bad option of a write',
    method: 'POST',
    path: `${maps}?${query}`,
    headers: json,
    body: configMap({ name: 'option' }),
    codes: [422],
  })),
]

const paths: Class[] = [
  get(
    'no such path',
    pathText.map((text) => `/${text}/x`),
    404,
  ),
  get(
    'no such group',
    pathText.map((text) => `/apis/${text}.test/v1/things`),
    404,
  ),
  get(
    'no such resource',
    pathText.map((text) => `/api/v1/no-${text}`),
    404,
  ),
  get(
    'no such object',
    pathText.map((text) => `${maps}/no-${text}`),
    404,
  ),
  get(
    'no such subresource',
    fc.constantFrom('nosuch', 'status/x', 'scale').map((text) => `${maps}/there/${text}`),
    404,
  ),
  get(
    'a path that is not encoded',
    fc.constantFrom('%zz', '%', '%1').map((text) => `${maps}/${text}`),
    400,
  ),
  fc.constantFrom(['PUT', maps], ['PATCH', maps], ['POST', `${maps}/there`]).map(([method = '', path = '']) => ({
    what: 'a method that is not for this',
    method,
    path,
    headers: json,
    body: '{}',
    codes: [405],
  })),
]

const headers: Class[] = [
  fc.constantFrom('text/csv', 'application/xml', 'application/cbor-x', 'nonsense', 'a/b/c').map((type) => ({
    what: 'a body of an unknown type',
    method: 'POST',
    path: maps,
    headers: { 'content-type': type },
    body: configMap({ name: 'typed' }),
    codes: [415],
  })),
  fc.constantFrom('application/json', 'text/plain', 'application/octet-stream').map((type) => ({
    what: 'a patch of an unknown type',
    method: 'PATCH',
    path: `${maps}/there`,
    headers: { 'content-type': type },
    body: '{}',
    codes: [415],
  })),
  fc.constantFrom('text/html', 'image/png', 'application/json;as=Nonsense;v=v1;g=meta.k8s.io').map((accept) => ({
    what: 'an answer of an unknown type',
    method: 'GET',
    path: `${maps}/there`,
    headers: { accept },
    codes: [406],
  })),
  textOf('abcXYZ019-_.=+/', 60).map((token) => ({
    what: 'an unknown token',
    method: 'GET',
    path: maps,
    headers: { authorization: `Bearer ${token}` },
    codes: [401],
    isAnonymous: true,
  })),
  pathText.map((user) => ({
    what: 'a user without rights',
    method: 'GET',
    path: maps,
    headers: { 'impersonate-user': user },
    codes: [403],
  })),
]

const operations = fc.constantFrom(
  { op: 'remove', path: '/data/none' },
  { op: 'test', path: '/data/a', value: 'other' },
  { op: 'replace', path: '/none/of/these', value: 1 },
  { op: 'move', from: '/none', path: '/data/b' },
  { op: 'sing', path: '/data' },
  { op: 'add', path: '/data/x', value: 7 },
)
const notYaml = fc.constantFrom('a: [', '\t', '{', '- a\nb', 'a: *b')
const applied = `${maps}/there?fieldManager=m`
const text = (value: unknown) => JSON.stringify(value)

const patches: Class[] = [
  patch(
    'a JSON patch that does not apply',
    'json',
    operations.map((operation) => text([operation])),
    422,
  ),
  patch('a JSON patch that is no list', 'json', fc.oneof(fc.integer(), fc.string({ minLength: 1 })).map(text), 400),
  patch('a merge patch that is no object', 'merge', except('object').map(text), 400),
  patch('a merge patch that is not JSON', 'merge', brokenJson, 400),
  patch(
    'a patch to another name',
    'merge',
    pathText.map((name) => text({ metadata: { name } })),
    400,
  ),
  patch('a patch of an old revision', 'merge', fc.constant(text({ metadata: { resourceVersion: '1' } })), 409),
  patch(
    'a patch with a wrong type',
    'merge',
    fc.integer().map((a) => text({ data: { a } })),
    422,
  ),
  patch('a patch of nothing', 'merge', fc.constant('{}'), 404, `${maps}/none`),
  patch('a strategic patch of a custom resource', 'strategic', fc.constant('{}'), 415, `${ropes}/there`),
  patch('an apply without manager', 'apply', fc.constant(configMap({ name: 'there' })), 422),
  patch('an apply that is not YAML', 'apply', notYaml, 400, applied),
  patch(
    'an apply of another kind',
    'apply',
    fc.constant(configMap({ name: 'there' }, { kind: 'Secret' })),
    400,
    applied,
  ),
  patch(
    'an apply with managers',
    'apply',
    fc.constant(configMap({ name: 'there', managedFields: [{ manager: 'x' }] })),
    400,
    applied,
  ),
]

const removals: Class[] = [
  remove(
    'a delete of another object',
    fc.uuid().map((uid) => text({ preconditions: { uid } })),
    409,
  ),
  remove(
    'a delete by an unknown policy',
    pathText.map((propagationPolicy) => text({ propagationPolicy })),
    422,
  ),
  remove('a delete that is not JSON', brokenJson, 400),
]

export const exchangeClasses: readonly Class[] = [...queries, ...paths, ...headers, ...patches, ...removals]
