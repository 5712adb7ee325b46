/** Bodies that are not what they should be: ConfigMaps, custom resources and their definitions. */
import fc from 'fast-check'
import {
  configMap,
  create,
  createText,
  definitions,
  except,
  isBadJson,
  maps,
  pathText,
  ropes,
  textOf,
  type Class,
} from './bad-request.ts'
import { crd, rope } from './crd.ts'

const mebibyte = 1024 * 1024

const names = fc.oneof(
  textOf('AZ_é%!@ #/\\'),
  fc.integer({ min: 254, max: 400 }).map((length) => 'a'.repeat(length)),
  fc.constantFrom('-a', 'a-', '.a', 'a..b', '__proto__', 'constructor.Name', '\0'),
)
const dataKeys = fc.constantFrom('a b', '', '/', '..', 'ä', 'k'.repeat(254))
const pollution = fc.constantFrom('__proto__', 'constructor', 'prototype', 'hasOwnProperty', 'toString')
const over = fc.integer({ min: 1, max: 50 })
const strict = `${maps}?fieldValidation=Strict`

const configMaps: Class[] = [
  createText(
    'text that is not JSON',
    fc.string({ minLength: 1 }).filter((text) => isBadJson(text) && text.trim() !== ''),
    400,
  ),
  create('JSON cut short', fc.nat({ max: 60 }), 400, (cut) => configMap({ name: 'cut' }).slice(0, 1 + cut)),
  create('a body that is no object', except('object'), 400, (value) => JSON.stringify(value)),
  create('metadata of a wrong type', except('object'), 400, (value) => configMap(value)),
  create('data of a wrong type', except('object'), 400, (data) => configMap({ name: 'typed' }, { data })),
  create('a value of a wrong type', except('string'), 400, (a) => configMap({ name: 'typed' }, { data: { a } })),
  create('a label of a wrong type', except('string'), 400, (a) => configMap({ name: 'typed', labels: { a } })),
  create('another namespace', fc.constantFrom('kube-system', 'other'), 400, (namespace) =>
    configMap({ name: 'away', namespace }),
  ),
  create('another kind', fc.constantFrom('Secret', 'Pod', 'Nosuch'), 400, (kind) =>
    configMap({ name: 'kind' }, { kind }),
  ),
  create('another version', fc.constantFrom('v2', 'apps/v1', 'a/b/c', '//'), 400, (apiVersion) =>
    configMap({ name: 'version' }, { apiVersion }),
  ),
  create('no name', fc.constantFrom({}, { name: '' }, { generateName: '' }), 422, (metadata) => configMap(metadata)),
  create('a bad name', names, 422, (name) => configMap({ name })),
  create('a bad label', names, 422, (value) => configMap({ name: 'labelled', labels: { a: `${value} ` } })),
  create('a bad label key', names, 422, (key) => configMap({ name: 'labelled', labels: { [`/${key}`]: 'a' } })),
  create('a bad annotation key', names, 422, (key) => configMap({ name: 'noted', annotations: { [`/${key}`]: 'a' } })),
  create('a bad data key', dataKeys, 422, (key) => configMap({ name: 'keyed' }, { data: { [key]: '1' } })),
  create('a bad finalizer', names, 422, (name) => configMap({ name: 'held', finalizers: [`${name} `] })),
  create('a bad owner', pathText, 422, (name) => configMap({ name: 'owned', ownerReferences: [{ name }] })),
  create(
    'a polluting label',
    fc.constant('__proto__'),
    422,
    (key) => `{"metadata":{"name":"p","labels":{"${key}":"x"}}}`,
  ),
  createText(
    'a missing namespace',
    fc.constant(configMap({ name: 'lost' })),
    404,
    '/api/v1/namespaces/nosuch/configmaps',
  ),
  createText(
    'an unknown field, strictly',
    pollution.map((key) => `{"metadata":{"name":"strict"},"${key}":{"polluted":true}}`),
    400,
    strict,
  ),
  createText(
    'the same field twice, strictly',
    fc.constantFrom('data', 'metadata').map((key) => `{"metadata":{"name":"twice"},"${key}":{},"${key}":{}}`),
    400,
    strict,
  ),
]

const customResources: Class[] = [
  createText(
    'a string that makes patterns run away',
    fc
      .tuple(fc.constantFrom('plus', 'or', 'star'), fc.integer({ min: 30, max: 2_000 }))
      .map(([field, length]) => rope({ [field]: `${'a'.repeat(length)}!` })),
    422,
    ropes,
  ),
  createText(
    'a spec of a wrong type',
    except('object').map((spec) => rope(spec)),
    422,
    ropes,
  ),
  createText(
    'a number out of range',
    fc.constantFrom(-1, 1001, 1.5, 2 ** 60).map((length) => rope({ length })),
    422,
    ropes,
  ),
  createText(
    'a number beyond numbers',
    fc.constantFrom('1e999', '-1e999').map((text) => rope({ length: 0 }).replace('"length":0', `"length":${text}`)),
    400,
    ropes,
  ),
  createText(
    'a list with an item twice',
    fc.string().map((item) => rope({ knots: [item, item] })),
    422,
    ropes,
  ),
  createText(
    'a rule that is broken',
    over.map((length) => rope({ length, spare: length + 1 })),
    422,
    ropes,
  ),
  createText(
    'a pattern that is none',
    fc.constantFrom('(', '[z-a]', 'a**', '(?=a)', '\\').map((text) => JSON.stringify(crd('no.bad.test', text))),
    422,
    definitions,
  ),
  createText(
    'a definition of a wrong type',
    except('object').map((spec) => JSON.stringify({ ...crd('no.bad.test', 'a'), spec })),
    400,
    definitions,
  ),
]

export const objectClasses: readonly Class[] = [...configMaps, ...customResources]

/** Megabytes, which take time to make and to read. */
export const hugeClasses: readonly Class[] = [
  create('an object above the limit', over, 413, (bytes) =>
    configMap({ name: 'big' }, { data: { a: 'x'.repeat(3 * mebibyte + bytes) } }),
  ),
  create('data above the limit of its kind', over, 422, (bytes) =>
    configMap({ name: 'big' }, { data: { a: 'x'.repeat(mebibyte + bytes) } }),
  ),
  create(
    'nesting without end',
    fc.integer({ min: 10_001, max: 20_000 }),
    400,
    (depth) => `{"metadata":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`,
  ),
]
