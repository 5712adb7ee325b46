/** Patches and server-side apply (B3.4, B3.5). */
import { expect } from 'vitest'
import { answers, applyPatch, area, type CaseContext, jsonPatch, merge, ok, strategic } from '../case.ts'
import type { Json, Reply } from '../client.ts'

const meta = (object: Json): Json => object['metadata'] as Json
const rejected = 'the server rejected our request due to an error in our request'

async function start(t: CaseContext): Promise<void> {
  await ok(t.client.request('POST', t.maps, { body: t.map('a', { data: { x: '1', y: '2' } }) }), 201)
}

const patched =
  (options: { type: string }, body: unknown, expected: object | undefined) =>
  async (t: CaseContext): Promise<void> => {
    await start(t)
    expect((await ok(t.client.request('PATCH', `${t.maps}/a`, { ...options, body })))['data']).toEqual(expected)
  }

async function apply(t: CaseContext, manager: string, data: object, query: object = {}): Promise<Reply> {
  return await t.client.request('PATCH', `${t.maps}/s`, {
    ...applyPatch,
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 's' }, data },
    query: { fieldManager: manager, ...query },
  })
}

async function applyWidget(t: CaseContext, manager: string, spec: object, query: object = {}): Promise<Reply> {
  return await t.client.request('PATCH', `${t.widgets}/w`, {
    ...applyPatch,
    body: t.widget('w', { spec }),
    query: { fieldManager: manager, ...query },
  })
}

const deployment = {
  metadata: { name: 'd' },
  spec: {
    selector: { matchLabels: { a: 'b' } },
    template: {
      metadata: { labels: { a: 'b' } },
      spec: {
        containers: [
          { name: 'c', image: 'x:1' },
          { name: 'd', image: 'y:1' },
        ],
      },
    },
  },
}
const containers = (object: Json): unknown =>
  ((((object['spec'] as Json)['template'] as Json)['spec'] as Json)['containers'] as unknown as Json[]).map(
    (one) => `${String(one['name'])}=${String(one['image'])}`,
  )
const patchPod = (spec: object): object => ({ spec: { template: { spec } } })

export const patch = [
  ...area('B3.4 merge patch', {
    'sets and removes': patched(merge, { data: { x: null, z: '3' } }, { y: '2', z: '3' }),
    'an empty patch changes nothing': patched(merge, {}, { x: '1', y: '2' }),
    'null removes a whole field': patched(merge, { data: null }, undefined),
    'with the right resourceVersion': async (t) => {
      await start(t)
      const resourceVersion = meta(await ok(t.client.request('GET', `${t.maps}/a`)))['resourceVersion']
      await ok(
        t.client.request('PATCH', `${t.maps}/a`, {
          ...merge,
          body: { metadata: { resourceVersion }, data: { x: '9' } },
        }),
      )
    },
    'with an old resourceVersion is a Conflict': async (t) => {
      await start(t)
      const reply = await t.client.request('PATCH', `${t.maps}/a`, {
        ...merge,
        body: { metadata: { resourceVersion: '1' }, data: { x: '9' } },
      })
      expect(reply.json).toMatchObject({ code: 409, reason: 'Conflict' })
    },
    'tracks the manager of the patch': async (t) => {
      await start(t)
      const updated = await ok(
        t.client.request('PATCH', `${t.maps}/a`, {
          ...merge,
          body: { data: { z: '1' } },
          query: { fieldManager: 'patcher' },
        }),
      )
      expect(meta(updated)['managedFields']).toMatchObject([
        { manager: 'contract' },
        { manager: 'patcher', operation: 'Update', fieldsV1: { 'f:data': { 'f:z': {} } } },
      ])
    },
    'of a custom resource is validated': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget('w') }), 201)
      expect(
        (await t.client.request('PATCH', `${t.widgets}/w`, { ...merge, body: { spec: { size: 99 } } })).status,
      ).toBe(422)
    },
  }),
  ...area('B3.4 JSON patch', {
    add: patched(jsonPatch, [{ op: 'add', path: '/data/z', value: '3' }], { x: '1', y: '2', z: '3' }),
    remove: patched(jsonPatch, [{ op: 'remove', path: '/data/x' }], { y: '2' }),
    replace: patched(jsonPatch, [{ op: 'replace', path: '/data/x', value: '9' }], { x: '9', y: '2' }),
    move: patched(jsonPatch, [{ op: 'move', from: '/data/x', path: '/data/z' }], { y: '2', z: '1' }),
    copy: patched(jsonPatch, [{ op: 'copy', from: '/data/x', path: '/data/z' }], { x: '1', y: '2', z: '1' }),
    'test that holds': patched(
      jsonPatch,
      [
        { op: 'test', path: '/data/x', value: '1' },
        { op: 'remove', path: '/data/x' },
      ],
      { y: '2' },
    ),
    'escapes ~1 and ~0': async (t) => {
      await start(t)
      const updated = await ok(
        t.client.request('PATCH', `${t.maps}/a`, {
          ...jsonPatch,
          body: [
            { op: 'add', path: '/metadata/annotations', value: { 'a/b': '1' } },
            { op: 'replace', path: '/metadata/annotations/a~1b', value: '2' },
          ],
        }),
      )
      expect(meta(updated)['annotations']).toEqual({ 'a/b': '2' })
    },
  }),
  ...area('B3.4 strategic merge patch', {
    'merges containers by name': async (t) => {
      await ok(t.client.request('POST', t.deployments, { body: deployment }), 201)
      const updated = await ok(
        t.client.request('PATCH', `${t.deployments}/d`, {
          ...strategic,
          body: patchPod({ containers: [{ name: 'd', image: 'y:2' }] }),
        }),
      )
      expect(containers(updated)).toEqual(['c=x:1', 'd=y:2'])
    },
    '$patch: delete removes one': async (t) => {
      await ok(t.client.request('POST', t.deployments, { body: deployment }), 201)
      const updated = await ok(
        t.client.request('PATCH', `${t.deployments}/d`, {
          ...strategic,
          body: patchPod({ containers: [{ name: 'c', $patch: 'delete' }] }),
        }),
      )
      expect(containers(updated)).toEqual(['d=y:1'])
    },
    '$setElementOrder orders': async (t) => {
      await ok(t.client.request('POST', t.deployments, { body: deployment }), 201)
      const body = patchPod({
        '$setElementOrder/containers': [{ name: 'd' }, { name: 'c' }],
        containers: [{ name: 'c', image: 'x:2' }],
      })
      expect(containers(await ok(t.client.request('PATCH', `${t.deployments}/d`, { ...strategic, body })))).toEqual([
        'd=y:1',
        'c=x:2',
      ])
    },
    'maps merge, null removes': patched(strategic, { data: { x: null, z: '3' } }, { y: '2', z: '3' }),
    '$patch: replace replaces a map': patched(strategic, { data: { $patch: 'replace', only: '1' } }, { only: '1' }),
    'finalizers of $deleteFromPrimitiveList': async (t) => {
      await ok(
        t.client.request('POST', t.maps, {
          body: t.map('f', { metadata: { name: 'f', finalizers: ['a.dev/x', 'a.dev/y'] } }),
        }),
        201,
      )
      const updated = await ok(
        t.client.request('PATCH', `${t.maps}/f`, {
          ...strategic,
          body: { metadata: { '$deleteFromPrimitiveList/finalizers': ['a.dev/x'] } },
        }),
      )
      expect(meta(updated)['finalizers']).toEqual(['a.dev/y'])
    },
  }),
  ...answers(
    'B3.4 patch refusals',
    {
      'a failed test': [
        'PATCH',
        (t) => `${t.maps}/a`,
        () => ({ ...jsonPatch, body: [{ op: 'test', path: '/data/x', value: 'no' }] }),
        422,
        rejected,
      ],
      'removal of an absent field': [
        'PATCH',
        (t) => `${t.maps}/a`,
        () => ({ ...jsonPatch, body: [{ op: 'remove', path: '/data/none' }] }),
        422,
        rejected,
      ],
      'an unknown operation': [
        'PATCH',
        (t) => `${t.maps}/a`,
        () => ({ ...jsonPatch, body: [{ op: 'foo', path: '/x' }] }),
        422,
        rejected,
      ],
      'a JSON patch that is an object': [
        'PATCH',
        (t) => `${t.maps}/a`,
        () => ({ ...jsonPatch, body: { op: 'x' } }),
        400,
        'error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp',
      ],
      'a merge patch that is an array': [
        'PATCH',
        (t) => `${t.maps}/a`,
        () => ({ ...merge, body: [] }),
        400,
        'error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}',
      ],
      'a merge patch that is not JSON': [
        'PATCH',
        (t) => `${t.maps}/a`,
        () => ({ ...merge, body: '{"x":' }),
        400,
        'error decoding patch: unexpected end of JSON input',
      ],
      'a patch of an unknown type': [
        'PATCH',
        (t) => `${t.maps}/a`,
        () => ({ type: 'application/json', body: {} }),
        415,
        '415: Unsupported Media Type',
      ],
      'a strategic patch of a custom resource': [
        'PATCH',
        (t) => `${t.widgets}/a`,
        () => ({ ...strategic, body: {} }),
        415,
        'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml',
      ],
      'a patch of an absent object': [
        'PATCH',
        (t) => `${t.maps}/none`,
        () => ({ ...merge, body: {} }),
        404,
        'configmaps "none" not found',
      ],
      'a patch that renames': [
        'PATCH',
        (t) => `${t.maps}/a`,
        () => ({ ...merge, body: { metadata: { name: 'b' } } }),
        400,
        'the name of the object (b) does not match the name on the URL (a)',
      ],
      'force on a merge patch': [
        'PATCH',
        (t) => `${t.maps}/a`,
        () => ({ ...merge, body: {}, query: { force: true } }),
        422,
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
      ],
      'apply without a manager': [
        'PATCH',
        (t) => `${t.maps}/a`,
        (t) => ({ ...applyPatch, body: { apiVersion: 'v1', kind: 'ConfigMap', ...t.map('a') } }),
        422,
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
      ],
      'apply of another kind': [
        'PATCH',
        (t) => `${t.maps}/a`,
        () => ({
          ...applyPatch,
          body: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' } },
          query: { fieldManager: 'm' },
        }),
        400,
        'invalid object type: /v1, Kind=Secret',
      ],
      'apply with managedFields': [
        'PATCH',
        (t) => `${t.maps}/a`,
        () => ({
          ...applyPatch,
          body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', managedFields: [] } },
          query: { fieldManager: 'm' },
        }),
        400,
        'metadata.managedFields must be nil',
      ],
      'apply of an unknown field': [
        'PATCH',
        (t) => `${t.maps}/a`,
        () => ({
          ...applyPatch,
          body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, nosuch: 1 },
          query: { fieldManager: 'm' },
        }),
        500,
        'failed to create typed patch object (/a; /v1, Kind=ConfigMap): .nosuch: field not declared in schema',
      ],
    },
    start,
  ),
  ...area('B3.5 server-side apply', {
    'creates an absent object, 201': async (t) => expect((await apply(t, 'one', { a: '1' })).status).toBe(201),
    'owns the applied fields': async (t) => {
      const created = await ok(apply(t, 'one', { a: '1' }), 201)
      expect(meta(created)['managedFields']).toMatchObject([
        { manager: 'one', operation: 'Apply', fieldsV1: { 'f:data': { 'f:a': {} } } },
      ])
    },
    'of the same configuration changes nothing': async (t) => {
      const created = await ok(apply(t, 'one', { a: '1' }), 201)
      expect(meta(await ok(apply(t, 'one', { a: '1' })))['resourceVersion']).toBe(meta(created)['resourceVersion'])
    },
    'removes fields that are no longer applied': async (t) => {
      await ok(apply(t, 'one', { a: '1', b: '2' }), 201)
      expect((await ok(apply(t, 'one', { b: '2' })))['data']).toEqual({ b: '2' })
    },
    'keeps fields that another manager applied': async (t) => {
      await ok(apply(t, 'one', { a: '1' }), 201)
      await ok(apply(t, 'two', { b: '2' }))
      expect((await ok(apply(t, 'one', { c: '3' })))['data']).toEqual({ b: '2', c: '3' })
    },
    'keeps a field that two managers own': async (t) => {
      await ok(apply(t, 'one', { a: '1' }), 201)
      await ok(apply(t, 'two', { a: '1' }))
      expect((await ok(apply(t, 'one', {})))['data']).toEqual({ a: '1' })
    },
    'conflicts with another value': async (t) => {
      await ok(apply(t, 'one', { a: '1' }), 201)
      const reply = await apply(t, 'two', { a: '2' })
      expect(reply.json).toMatchObject({
        code: 409,
        reason: 'Conflict',
        message: 'Apply failed with 1 conflict: conflict with "one": .data.a',
        details: { causes: [{ reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.data.a' }] },
      })
    },
    'conflicts with an update contain its version': async (t) => {
      await ok(t.client.request('POST', t.maps, { body: t.map('s', { data: { a: '1' } }) }), 201)
      expect((await apply(t, 'two', { a: '2' })).json['message']).toBe(
        'Apply failed with 1 conflict: conflict with "contract" using v1: .data.a',
      )
    },
    'several conflicts are grouped': async (t) => {
      await ok(apply(t, 'one', { a: '1', b: '1' }), 201)
      expect((await apply(t, 'two', { a: '2', b: '2' })).json['message']).toBe(
        'Apply failed with 2 conflicts: conflicts with "one":\n- .data.a\n- .data.b',
      )
    },
    'force takes ownership': async (t) => {
      await ok(apply(t, 'one', { a: '1' }), 201)
      const forced = await ok(apply(t, 'two', { a: '2' }, { force: true }))
      expect(forced['data']).toEqual({ a: '2' })
      expect(meta(forced)['managedFields']).toMatchObject([{ manager: 'two' }])
    },
    'merges a list map by its key': async (t) => {
      await ok(applyWidget(t, 'one', { size: 1, parts: [{ name: 'a', value: '1' }] }), 201)
      const second = await ok(applyWidget(t, 'two', { parts: [{ name: 'b', value: '2' }] }))
      expect((second['spec'] as Json)['parts']).toEqual([
        { name: 'a', value: '1' },
        { name: 'b', value: '2' },
      ])
    },
    'removes one element of a list map': async (t) => {
      await ok(applyWidget(t, 'one', { size: 1, parts: [{ name: 'a' }, { name: 'b' }] }), 201)
      const second = await ok(applyWidget(t, 'one', { size: 1, parts: [{ name: 'b' }] }))
      expect((second['spec'] as Json)['parts']).toEqual([{ name: 'b' }])
    },
    'merges a set': async (t) => {
      await ok(applyWidget(t, 'one', { size: 1, tags: ['a'] }), 201)
      const second = await ok(applyWidget(t, 'two', { tags: ['b'] }))
      expect((second['spec'] as Json)['tags']).toEqual(['a', 'b'])
    },
    'replaces an atomic list': async (t) => {
      await ok(applyWidget(t, 'one', { size: 1, steps: ['a', 'b'] }), 201)
      const second = await ok(applyWidget(t, 'one', { size: 1, steps: ['c'] }))
      expect((second['spec'] as Json)['steps']).toEqual(['c'])
    },
    'writes keys of list maps and sets in managedFields': async (t) => {
      const created = await ok(applyWidget(t, 'one', { size: 1, parts: [{ name: 'a', value: '1' }], tags: ['x'] }), 201)
      expect(meta(created)['managedFields']).toMatchObject([
        {
          fieldsV1: {
            'f:spec': {
              'f:parts': { 'k:{"name":"a"}': { '.': {}, 'f:name': {}, 'f:value': {} } },
              'f:tags': { 'v:"x"': {} },
            },
          },
        },
      ])
    },
    'a defaulted field has no owner': async (t) => {
      const created = await ok(applyWidget(t, 'one', { size: 1 }), 201)
      expect((created['spec'] as Json)['color']).toBe('red')
      expect(JSON.stringify(meta(created)['managedFields'])).not.toContain('f:color')
    },
    'of the status has a separate entry': async (t) => {
      await ok(applyWidget(t, 'one', { size: 1 }), 201)
      const updated = await ok(
        t.client.request('PATCH', `${t.widgets}/w/status`, {
          ...applyPatch,
          body: { ...t.widget('w'), spec: undefined, status: { ok: true } },
          query: { fieldManager: 'one' },
        }),
      )
      expect(meta(updated)['managedFields']).toMatchObject([
        { manager: 'one' },
        { manager: 'one', operation: 'Apply', subresource: 'status', fieldsV1: { 'f:status': { 'f:ok': {} } } },
      ])
    },
    'accepts YAML': async (t) => {
      const body = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: s\ndata:\n  a: "1"\n`
      expect(
        (await t.client.request('PATCH', `${t.maps}/s`, { ...applyPatch, body, query: { fieldManager: 'one' } }))
          .status,
      ).toBe(201)
    },
    'dry run stores nothing': async (t) => {
      expect((await apply(t, 'one', { a: '1' }, { dryRun: 'All' })).status).toBe(201)
      expect((await t.client.request('GET', `${t.maps}/s`)).status).toBe(404)
    },
    'updates take ownership from an applier when they change the value': async (t) => {
      await ok(apply(t, 'one', { a: '1' }), 201)
      const updated = await ok(t.client.request('PATCH', `${t.maps}/s`, { ...merge, body: { data: { a: '2' } } }))
      expect(meta(updated)['managedFields']).toMatchObject([
        { manager: 'contract', operation: 'Update', fieldsV1: { 'f:data': { 'f:a': {} } } },
      ])
    },
  }),
]
