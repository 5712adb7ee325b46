/** Stored objects are served according to the current schema, independent of the schema at the time of the write. */
import { expect } from 'vitest'
import { area, type Case, type CaseContext, merge, ok, until } from '../case.ts'
import type { Json } from '../client.ts'

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

function definition(plural: string, fields: object, root: object = {}): { metadata: object; spec: object } {
  const status = { type: 'object', default: { phase: 'New' }, properties: { phase: { type: 'string' } } }
  const spec = { type: 'object', properties: fields }
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec, status, extra: spec }, ...root } }
  return {
    metadata: { name: `${plural}.reread.dev` },
    spec: {
      group: 'reread.dev',
      scope: 'Namespaced',
      names: { plural, kind: `K${plural}` },
      versions: [{ name: 'v1', served: true, storage: true, subresources: { status: {} }, schema }],
    },
  }
}

/** Creates the definition and one object of it. */
async function start(t: CaseContext, plural: string): Promise<{ path: string; created: Json }> {
  const text = { type: 'string' }
  await ok(t.client.request('POST', definitions, { body: definition(plural, { kept: text, gone: text }) }), 201)
  const path = `/apis/reread.dev/v1/namespaces/${t.ns}/${plural}`
  await until(async () => (await t.client.request('GET', path)).status === 200, 'the resource is served')
  const spec = { kept: 'k', gone: 'g' }
  const body = { apiVersion: 'reread.dev/v1', kind: `K${plural}`, metadata: { name: 'x' }, spec }
  return { path: `${path}/x`, created: await ok(t.client.request('POST', `${path}?fieldManager=m`, { body }), 201) }
}

const revision = (object: Json): unknown => object['metadata']?.['resourceVersion']

export const reread: readonly Case[] = area('B3.7 defaulting on read', {
  'a default of the status is served before the first write of the status, and has no owner': async (t) => {
    const { path, created } = await start(t, 'newborns')
    expect(created['status']).toEqual({ phase: 'New' })
    const served = await ok(t.client.request('GET', path))
    expect(served['status']).toEqual({ phase: 'New' })
    const written = await ok(
      t.client.request('PATCH', `${path}/status?fieldManager=s`, { ...merge, body: { status: { phase: 'Old' } } }),
    )
    const entries = written['metadata']?.['managedFields'] as unknown as Json[] | undefined
    expect(entries?.map(({ manager, fieldsV1 }) => [manager, fieldsV1])).toEqual([
      ['m', { 'f:spec': { '.': {}, 'f:gone': {}, 'f:kept': {} } }],
      ['s', { 'f:status': { 'f:phase': {} } }],
    ])
  },
  'the first write of a served default is a change, the second is not': async (t) => {
    const { path, created } = await start(t, 'rewritten')
    const same = async (): Promise<Json> =>
      await ok(t.client.request('PATCH', path, { ...merge, body: { spec: { kept: 'k' } } }))
    const first = await same()
    expect(revision(first)).not.toBe(revision(created))
    expect(first['spec']).toEqual(created['spec'])
    expect(revision(await same())).toBe(revision(first))
  },
  'a field that the schema drops is absent, one that it defaults is present, at the same resourceVersion': async (
    t,
  ) => {
    const { path, created } = await start(t, 'reshaped')
    const old = await ok(t.client.request('GET', `${definitions}/reshaped.reread.dev`))
    const fields = { kept: { type: 'string' }, fresh: { type: 'string', default: 'f' } }
    const { spec } = definition('reshaped', fields)
    await ok(t.client.request('PUT', `${definitions}/reshaped.reread.dev`, { body: { ...old, spec } }))
    const read = async (): Promise<Json> => await ok(t.client.request('GET', path))
    await until(async () => String((await read())['spec']?.['fresh']) === 'f', 'the new schema is in use')
    const served = await read()
    expect(served['spec']).toEqual({ kept: 'k', fresh: 'f' })
    expect(revision(served)).toBe(revision(created))
    const list = await ok(t.client.request('GET', path.slice(0, -2)))
    expect((list['items'] as unknown as Json[]).map((item) => item['spec'])).toEqual([{ kept: 'k', fresh: 'f' }])
    // The field was not served, but still stored.
    const again = await ok(t.client.request('GET', `${definitions}/reshaped.reread.dev`))
    await ok(t.client.request('PUT', `${definitions}/reshaped.reread.dev`, { body: { ...again, spec: old['spec'] } }))
    await until(async () => String((await read())['spec']?.['gone']) === 'g', 'the first schema is in use again')
    expect((await read())['spec']).toEqual({ kept: 'k', gone: 'g' })
  },
  'a new storage version does not change stored objects': async (t) => {
    const { path } = await start(t, 'moved')
    const old = await ok(t.client.request('GET', `${definitions}/moved.reread.dev`))
    const fields = { kept: { type: 'string' }, fresh: { type: 'string', default: 'f' } }
    const [first] = (old['spec']?.['versions'] ?? []) as unknown as object[]
    const [second] = (definition('moved', fields).spec as { versions: object[] }).versions
    const versions = [
      { ...first, storage: false },
      { ...second, name: 'v2' },
    ]
    const body = { ...old, spec: { ...old['spec'], versions } }
    await ok(t.client.request('PUT', `${definitions}/moved.reread.dev`, { body }))
    const inSecond = path.replace('/v1/', '/v2/')
    await until(async () => (await t.client.request('GET', inSecond)).status === 200, 'the new version is served')
    expect((await ok(t.client.request('GET', path)))['spec']).toEqual({ kept: 'k', gone: 'g' })
  },
  'a stricter schema blocks neither status updates nor updates that keep existing violations': async (t) => {
    const { path } = await start(t, 'stricter')
    const name = `${definitions}/stricter.reread.dev`
    const put = async (fields: object, root?: object): Promise<void> => {
      const { spec } = definition('stricter', fields, root)
      const old = await ok(t.client.request('GET', name))
      await ok(t.client.request('PUT', name, { body: { ...old, spec } }))
    }
    const list = { type: 'array', items: { type: 'string' } }
    const patch = async (body: object, part = ''): ReturnType<typeof t.client.request> =>
      await t.client.request('PATCH', `${path}${part}`, { ...merge, body })
    await put({ kept: { type: 'string' }, list })
    await until(
      async () => String((await ok(patch({ spec: { list: ['a', 'a'] } })))['spec']?.['list']) === 'a,a',
      'the list is known',
    )
    await put(
      {
        kept: { type: 'string', minLength: 3 },
        list: { ...list, 'x-kubernetes-list-type': 'set' },
        fresh: { type: 'string', default: 'f' },
      },
      { required: ['extra'] },
    )
    const served = async (): Promise<Json> => await ok(t.client.request('GET', path))
    await until(async () => String((await served())['spec']?.['fresh']) === 'f', 'the new schema is in use')
    await ok(patch({ status: { phase: 'Old' } }, '/status'))
    const refused = await ok(patch({ status: { phase: 7 } }, '/status'), 422)
    expect(refused['details']?.['causes']).toEqual([
      {
        field: 'status.phase',
        message: 'Invalid value: "integer": phase in body must be of type string: "integer"',
        reason: 'FieldValueTypeInvalid',
      },
    ])
    await ok(patch({ spec: { list: ['b', 'b'] } }), 422)
    await ok(patch({ extra: {}, spec: { list: ['b', 'b'] } }))
    await ok(patch({ spec: { kept: 'z' } }), 422)
    await ok(patch({ spec: { list: ['b'] } }))
    await ok(patch({ spec: { list: ['b', 'b'] } }), 422)
  },
})
