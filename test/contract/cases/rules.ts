/** CEL and Kubernetes functions in rules: expressions that evaluate to true on kube-apiserver (rules.txt). */
import { readFileSync } from 'node:fs'
import { expect } from 'vitest'
import { type Case, type CaseContext, until } from '../case.ts'

const expressions = readFileSync(new URL('rules.txt', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))

const text = { type: 'string', maxLength: 40 }
const number = { type: 'integer' }
const properties = {
  text,
  note: text,
  number,
  double: { type: 'number' },
  list: { type: 'array', maxItems: 5, items: number },
  map: { type: 'object', maxProperties: 5, additionalProperties: number },
  when: { ...text, format: 'date-time' },
  for: { ...text, format: 'duration' },
  either: { 'x-kubernetes-int-or-string': true },
  embedded: {
    type: 'object',
    'x-kubernetes-embedded-resource': true,
    'x-kubernetes-preserve-unknown-fields': true,
  },
  if: text,
  namespace: text,
  'dash-ed': text,
  'dot.ted': text,
  under__score: text,
  enumed: { type: 'string', enum: ['red', 'green'] },
  set: { type: 'array', maxItems: 5, 'x-kubernetes-list-type': 'set', items: text },
  keyed: {
    type: 'array',
    maxItems: 5,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['k'],
    items: { type: 'object', required: ['k'], properties: { k: text, v: number } },
  },
  nullable: { ...text, nullable: true },
}
const value = {
  text: 'one-1-two-22-three-333',
  number: 5,
  double: 1.5,
  list: [1, 2, 3],
  map: { a: 1, b: 2 },
  when: '2020-01-01T00:00:00Z',
  for: '60s',
  either: 5,
  embedded: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' } },
  if: 'kw',
  namespace: 'n',
  'dash-ed': 'd',
  'dot.ted': 'd',
  under__score: 'u',
  enumed: 'red',
  set: ['a', 'b'],
  keyed: [{ k: 'x', v: 1 }],
  nullable: null,
}

/** Creates a definition with these rules and an object; a rejected object is the failure. */
async function expectAllTrue(t: CaseContext, name: string, rules: readonly string[]): Promise<void> {
  const validations = rules.map((rule) => ({ rule, message: `false: ${rule}` }))
  const spec = { type: 'object', properties, 'x-kubernetes-validations': validations }
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } }
  const created = await t.client.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    body: {
      metadata: { name: `${name}.rules.dev` },
      spec: {
        group: 'rules.dev',
        scope: 'Cluster',
        names: { plural: name, kind: `K${name}` },
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    },
  })
  expect(created.status, created.text).toBe(201)
  // A rule that cannot be evaluated is reported here, and would always hold.
  expect(created.headers.get('warning')).toBeUndefined()
  const path = `/apis/rules.dev/v1/${name}`
  await until(async () => (await t.client.request('GET', path)).status === 200, 'the resource is served')
  const body = { apiVersion: 'rules.dev/v1', kind: `K${name}`, metadata: { name: 'x' }, spec: value }
  const { status, json } = await t.client.request('POST', path, { body })
  expect(json['message']).toBeUndefined()
  expect(status).toBe(201)
}

const perDefinition = 60
export const rules: readonly Case[] = Array.from(
  { length: Math.ceil(expressions.length / perDefinition) },
  (_, index) => {
    const from = index * perDefinition
    const part = expressions.slice(from, from + perDefinition)
    return {
      name: `rules compute what they compute there, ${from + 1} to ${from + part.length}`,
      covers: 'B3.7 rules',
      run: async (t: CaseContext) => await expectAllTrue(t, `functions${index}`, part),
    }
  },
)
