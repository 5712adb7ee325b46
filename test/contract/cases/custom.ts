/** CustomResourceDefinitions and their objects (B3.7). */
import { expect } from 'vitest'
import { answers, applyPatch, area, type CaseContext, merge, ok, until } from '../case.ts'
import type { Json } from '../client.ts'

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const meta = (object: Json): Json => object['metadata'] as Json
const plain = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }

function definition(
  t: CaseContext,
  plural: string,
  changes: object = {},
  versions: object[] = [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: plain } }],
): object {
  const group = `${t.ns}.dev`
  const kind = plural[0]?.toUpperCase() + plural.slice(1, -1)
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: { group, scope: 'Namespaced', names: { plural, kind }, versions, ...changes },
  }
}

async function isEstablished(t: CaseContext, name: string): Promise<boolean> {
  const conditions = ((await ok(t.client.request('GET', `${definitions}/${name}`)))['status'] as Json)[
    'conditions'
  ] as unknown as Json[] | null
  return (conditions ?? []).some((one) => String(one['type']) === 'Established' && String(one['status']) === 'True')
}

const bad =
  (spec: object): ((t: CaseContext) => object) =>
  (t) => ({ body: t.widget('bad', { spec }) })
const invalid = (why: string): RegExp =>
  new RegExp(`^Widget\\.\\S+ "bad" is invalid: ${why.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`)

export const custom = [
  ...area('B3.7 definitions', {
    'become Established with accepted names': async (t) => {
      const name = `things.${t.ns}.dev`
      const created = await ok(t.client.request('POST', definitions, { body: definition(t, 'things') }), 201)
      expect(created).toMatchObject({
        spec: { names: { singular: 'thing', listKind: 'ThingList' }, conversion: { strategy: 'None' } },
      })
      await until(async () => await isEstablished(t, name), 'established')
      const status = (await ok(t.client.request('GET', `${definitions}/${name}`)))['status'] as Json
      expect(status).toMatchObject({
        acceptedNames: { plural: 'things', kind: 'Thing', singular: 'thing', listKind: 'ThingList' },
        storedVersions: ['v1'],
      })
      const conditions = status['conditions'] as unknown as Json[]
      expect(conditions.map((one) => [one['type'], one['status'], one['reason'], one['message']])).toEqual([
        ['NamesAccepted', 'True', 'NoConflicts', 'no conflicts found'],
        ['Established', 'True', 'InitialNamesAccepted', 'the initial names have been accepted'],
      ])
      await ok(t.client.request('DELETE', `${definitions}/${name}`))
    },
    'are applied without the null lists of their schemas': async (t) => {
      const name = `nulls.${t.ns}.dev`
      const nothing = { anyOf: null, allOf: null, oneOf: null, enum: null, required: null, properties: null, not: null }
      const size = { type: 'string', nullable: true, enum: ['s', null] }
      const openAPIV3Schema = { ...plain, properties: { port: { type: 'string', ...nothing }, size } }
      const body = definition(t, 'nulls', {}, [
        { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } },
      ])
      const options = { ...applyPatch, query: { fieldManager: 'one' }, body }
      const schemaOf = (reply: Json) => ((reply['spec'] as Json)['versions'] as unknown as Json[])[0]?.['schema']
      const port = { type: 'string' }
      const created = await ok(t.client.request('PATCH', `${definitions}/${name}`, options), 201)
      expect(schemaOf(created)).toEqual({ openAPIV3Schema: { ...plain, properties: { port, size } } })
      const again = await ok(t.client.request('PATCH', `${definitions}/${name}`, options))
      expect(schemaOf(again)).toEqual(schemaOf(created))
      await ok(t.client.request('DELETE', `${definitions}/${name}`))
    },
    'serve their resource and remove its objects with them': async (t) => {
      const name = `boxes.${t.ns}.dev`
      const path = `/apis/${t.ns}.dev/v1/namespaces/${t.ns}/boxes`
      await ok(t.client.request('POST', definitions, { body: definition(t, 'boxes') }), 201)
      await until(async () => (await t.client.request('GET', path)).status === 200, 'served')
      await ok(
        t.client.request('POST', path, {
          body: { apiVersion: `${t.ns}.dev/v1`, kind: 'Boxe', metadata: { name: 'a' } },
        }),
        201,
      )
      await ok(t.client.request('DELETE', `${definitions}/${name}`))
      await until(async () => (await t.client.request('GET', `${definitions}/${name}`)).status === 404, 'removed')
      await until(async () => (await t.client.request('GET', path)).status === 404, 'no longer served')
    },
    'cluster-scoped resources have no namespace': async (t) => {
      const name = `globes.${t.ns}.dev`
      const path = `/apis/${t.ns}.dev/v1/globes`
      await ok(t.client.request('POST', definitions, { body: definition(t, 'globes', { scope: 'Cluster' }) }), 201)
      await until(async () => (await t.client.request('GET', path)).status === 200, 'served')
      const created = await ok(
        t.client.request('POST', path, {
          body: { apiVersion: `${t.ns}.dev/v1`, kind: 'Globe', metadata: { name: 'a' } },
        }),
        201,
      )
      expect(meta(created)).not.toHaveProperty('namespace')
      await ok(t.client.request('DELETE', `${definitions}/${name}`))
    },
  }),
  ...answers('B3.7 definition refusals', {
    'a name that is not plural.group': [
      'POST',
      () => definitions,
      (t) => ({ body: { ...definition(t, 'things'), metadata: { name: 'wrong.dev' } } }),
      422,
      'CustomResourceDefinition.apiextensions.k8s.io "wrong.dev" is invalid: metadata.name: Invalid value: "wrong.dev": must be spec.names.plural+"."+spec.group',
    ],
    'no schema': [
      'POST',
      () => definitions,
      (t) => ({ body: definition(t, 'things', {}, [{ name: 'v1', served: true, storage: true }]) }),
      422,
      /spec\.versions\[0\]\.schema\.openAPIV3Schema: Required value/,
    ],
    'an unknown scope': [
      'POST',
      () => definitions,
      (t) => ({ body: definition(t, 'things', { scope: 'Galaxy' }) }),
      422,
      /spec\.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"/,
    ],
    'a schema that is not structural': [
      'POST',
      () => definitions,
      (t) => ({
        body: definition(t, 'things', {}, [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: 'object', properties: { a: {} } } },
          },
        ]),
      }),
      422,
      /properties\[a\]\.type: Required value: must not be empty for specified object fields/,
    ],
  }),
  ...area('B3.7 objects', {
    'unknown fields are pruned': async (t) => {
      const reply = await t.client.request('POST', t.widgets, { body: t.widget('a', { spec: { size: 1, nosuch: 1 } }) })
      expect(reply.json['spec']).toEqual({ size: 1, color: 'red' })
      expect(reply.warnings).toEqual(['299 - "unknown field \\"spec.nosuch\\""'])
    },
    'unknown fields are kept with x-kubernetes-preserve-unknown-fields': async (t) => {
      const created = await ok(
        t.client.request('POST', t.widgets, {
          body: t.widget('a', { spec: { size: 1, free: { any: [1, { x: null }] } } }),
        }),
        201,
      )
      expect((created['spec'] as Json)['free']).toEqual({ any: [1, { x: null }] })
    },
    'defaults are applied on create': async (t) => {
      expect((await ok(t.client.request('POST', t.widgets, { body: t.widget('a') }), 201))['spec']).toMatchObject({
        color: 'red',
      })
    },
    'defaults are applied on update': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget('a', { spec: { size: 1, color: 'blue' } }) }), 201)
      expect(
        (await ok(t.client.request('PATCH', `${t.widgets}/a`, { ...merge, body: { spec: { color: null } } })))['spec'],
      ).toMatchObject({ color: 'red' })
    },
    'a null of a field that is not nullable is defaulted': async (t) => {
      expect(
        (
          await ok(
            t.client.request('POST', t.widgets, { body: t.widget('a', { spec: { size: 1, color: null } }) }),
            201,
          )
        )['spec'],
      ).toMatchObject({ color: 'red' })
    },
    'an int-or-string accepts both': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget('a', { spec: { size: 1, port: 80 } }) }), 201)
      await ok(t.client.request('POST', t.widgets, { body: t.widget('b', { spec: { size: 1, port: 'http' } }) }), 201)
    },
    'are written in another served version': async (t) => {
      const body = { ...t.widget('a'), apiVersion: `${t.group}/v1beta1` }
      const created = await ok(
        t.client.request('POST', `/apis/${t.group}/v1beta1/namespaces/${t.ns}/widgets`, { body }),
        201,
      )
      expect(created['apiVersion']).toBe(`${t.group}/v1beta1`)
      expect((await ok(t.client.request('GET', `${t.widgets}/a`)))['apiVersion']).toBe(`${t.group}/v1`)
    },
    'scale returns replicas and selector': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget('a', { spec: { size: 3 } }) }), 201)
      await ok(
        t.client.request('PATCH', `${t.widgets}/a/status`, {
          ...merge,
          body: { status: { size: 2, selector: 'a=b' } },
        }),
      )
      expect(await ok(t.client.request('GET', `${t.widgets}/a/scale`))).toMatchObject({
        kind: 'Scale',
        apiVersion: 'autoscaling/v1',
        spec: { replicas: 3 },
        status: { replicas: 2, selector: 'a=b' },
      })
    },
    'scale sets the replicas': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget('a', { spec: { size: 3 } }) }), 201)
      await ok(t.client.request('PATCH', `${t.widgets}/a/scale`, { ...merge, body: { spec: { replicas: 5 } } }))
      expect(await ok(t.client.request('GET', `${t.widgets}/a`))).toMatchObject({
        spec: { size: 5 },
        metadata: { generation: 2 },
      })
    },
    'a CEL rule that is true accepts the object': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget('a', { spec: { size: 4, limit: 5 } }) }), 201)
    },
    'a transition rule reads the old value': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget('a', { spec: { size: 1, fixed: 'x' } }) }), 201)
      const reply = await t.client.request('PATCH', `${t.widgets}/a`, { ...merge, body: { spec: { fixed: 'y' } } })
      expect(reply.json['message']).toBe(
        `Widget.${t.group} "a" is invalid: spec.fixed: Invalid value: "y": fixed cannot change`,
      )
    },
  }),
  ...answers('B3.7 validation', {
    'a required field': [
      'POST',
      (t) => t.widgets,
      bad({ color: 'red' }),
      422,
      invalid(
        '[spec.size: Required value, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]',
      ),
    ],
    'a maximum': [
      'POST',
      (t) => t.widgets,
      bad({ size: 11 }),
      422,
      invalid('spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10'),
    ],
    'a minimum': [
      'POST',
      (t) => t.widgets,
      bad({ size: -1 }),
      422,
      /spec\.size: Invalid value: -1: spec\.size in body should be greater than or equal to 0/,
    ],
    'an enum': [
      'POST',
      (t) => t.widgets,
      bad({ size: 1, color: 'green' }),
      422,
      /spec\.color: Unsupported value: "green": supported values: "red", "blue"/,
    ],
    'a pattern': [
      'POST',
      (t) => t.widgets,
      bad({ size: 1, code: 'abc' }),
      422,
      invalid('spec.code: Invalid value: "abc": spec.code in body should match \'^[A-Z]+$\''),
    ],
    'a length': [
      'POST',
      (t) => t.widgets,
      bad({ size: 1, code: 'ABCDE' }),
      422,
      /spec\.code: Too long: may not be more than 4 bytes/,
    ],
    'a type': [
      'POST',
      (t) => t.widgets,
      bad({ size: 'x' }),
      422,
      /spec\.size: Invalid value: "string": spec\.size in body must be of type integer: "string"/,
    ],
    'a set with a duplicate': [
      'POST',
      (t) => t.widgets,
      bad({ size: 1, tags: ['a', 'a'] }),
      422,
      invalid('spec.tags[1]: Duplicate value: "a"'),
    ],
    'a list map with a duplicate key': [
      'POST',
      (t) => t.widgets,
      bad({ size: 1, parts: [{ name: 'a' }, { name: 'a' }] }),
      422,
      invalid('spec.parts[1]: Duplicate value: {"name":"a"}'),
    ],
    'a CEL rule that fails': [
      'POST',
      (t) => t.widgets,
      bad({ size: 9, limit: 5 }),
      422,
      invalid('spec: Invalid value: size must not exceed limit'),
    ],
    "a kind that is not the resource's": [
      'POST',
      (t) => t.widgets,
      (t) => ({ body: { ...t.widget('bad'), kind: 'Foo' } }),
      422,
      /^Foo\.\S+ "bad" is invalid: kind: Invalid value: "Foo": must be Widget$/,
    ],
    'a body without a kind': [
      'POST',
      (t) => t.widgets,
      (t) => ({ body: { apiVersion: `${t.group}/v1`, metadata: { name: 'a' } } }),
      400,
      /^the object provided is unrecognized \(must be of type Widget\): Object 'Kind' is missing in/,
    ],
    'another version in the body': [
      'POST',
      (t) => t.widgets,
      (t) => ({ body: { ...t.widget('a'), apiVersion: `${t.group}/v2` } }),
      400,
      /^the API version in the data \(\S+\/v2\) does not match the expected API version \(\S+\/v1\)$/,
    ],
    'strict: an unknown field of a custom resource': [
      'POST',
      (t) => t.widgets,
      (t) => ({ body: t.widget('a', { spec: { size: 1, nosuch: 1 } }), query: { fieldValidation: 'Strict' } }),
      400,
      'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.nosuch"',
    ],
  }),
]
