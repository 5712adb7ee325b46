/**
 * JSON patch and strategic merge patch against a real kube-apiserver, on existing objects: same result, or same error.
 * SEAMARK_DIFFERENTIAL_RUNS sets the number of random patches.
 */
import {
  applyBuiltinDefaults,
  applyJsonPatch,
  applyStrategicMergePatch,
  findBuiltinKind,
  type JsonObject,
  normalizeBuiltin,
  PatchError,
} from '@seamark/apiserver/testing'
import { ControlPlane } from '@seamark/kube/testing'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { needs } from '../kit/index.ts'

const runs = Number(process.env['SEAMARK_DIFFERENTIAL_RUNS'] ?? 20) * 3

const GENERIC = 'the server rejected our request due to an error in our request'

interface Answer {
  status: number
  message?: string | undefined
  object?: unknown
}

const DEPLOYMENT = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'subject', labels: { a: '1', b: '2' }, finalizers: ['x.io/a'] },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: 'x' } },
    template: {
      metadata: { labels: { app: 'x' } },
      spec: {
        containers: [
          {
            name: 'a',
            image: 'x/a:1',
            env: [
              { name: 'A', value: '1' },
              { name: 'B', value: '2' },
            ],
            ports: [{ containerPort: 80 }, { containerPort: 81 }],
            args: ['x', 'y'],
          },
          { name: 'b', image: 'x/b:1' },
          { name: 'c', image: 'x/c:1' },
        ],
        volumes: [
          { name: 'v', emptyDir: {} },
          { name: 'w', configMap: { name: 'w' } },
        ],
        tolerations: [{ key: 'k', operator: 'Exists' }],
        imagePullSecrets: [{ name: 's' }],
      },
    },
  },
}

describe.skipIf(!needs('kube-apiserver', 'etcd'))('patches', () => {
  const path = '/apis/apps/v1/namespaces/default/deployments/subject'
  const { schema } = findBuiltinKind('apps', 'v1', 'Deployment')!
  let plane: ControlPlane
  let stored: JsonObject

  beforeAll(async () => {
    plane = await ControlPlane.start()
    stored = (await plane.request('POST', '/apis/apps/v1/namespaces/default/deployments', DEPLOYMENT))
      .body as JsonObject
  })

  afterAll(async () => {
    await plane?.stop()
  })

  function ours(patch: (document: unknown) => unknown): Answer {
    try {
      const object = structuredClone(patch(stored)) as JsonObject
      normalizeBuiltin(schema, object)
      applyBuiltinDefaults(schema, object)
      return { status: 200, object: comparable(object) }
    } catch (error) {
      // The server does not return the reason of a 422.
      if (error instanceof PatchError)
        return { status: error.status, message: error.status === 422 ? GENERIC : error.message }
      throw error
    }
  }

  async function theirs(type: string, patch: unknown): Promise<Answer> {
    const { status, body } = await plane.request('PATCH', `${path}?dryRun=All`, patch, { type: `application/${type}` })
    if (status === 200) return { status, object: comparable(body as JsonObject) }
    return { status, message: (body as { message?: string }).message }
  }

  it.each<[string, unknown]>([
    ['a value is added', [{ op: 'add', path: '/metadata/labels/c', value: '3' }]],
    ['a missing parent', [{ op: 'add', path: '/spec/nope/x', value: 1 }]],
    ['the whole document added', [{ op: 'add', path: '', value: {} }]],
    ['a missing key removed', [{ op: 'remove', path: '/metadata/labels/z' }]],
    ['a missing path removed', [{ op: 'remove', path: '/metadata/nope/z' }]],
    ['a missing key replaced', [{ op: 'replace', path: '/metadata/labels/z', value: '1' }]],
    ['a missing path replaced', [{ op: 'replace', path: '/nope/z', value: '1' }]],
    ['an index out of range', [{ op: 'replace', path: '/spec/template/spec/containers/9', value: {} }]],
    ['an index that is none', [{ op: 'add', path: '/spec/template/spec/containers/x', value: {} }]],
    ['an index out of range, removed', [{ op: 'remove', path: '/spec/template/spec/containers/7' }]],
    ['an index beyond the end, added', [{ op: 'add', path: '/spec/template/spec/containers/7', value: {} }]],
    ['a negative index', [{ op: 'remove', path: '/spec/template/spec/containers/-1' }]],
    [
      'an item appended',
      [{ op: 'add', path: '/spec/template/spec/containers/-', value: { name: 'd', image: 'x/d:1' } }],
    ],
    [
      'an item inserted',
      [{ op: 'add', path: '/spec/template/spec/containers/1', value: { name: 'd', image: 'x/d:1' } }],
    ],
    ['a test that fails', [{ op: 'test', path: '/spec/replicas', value: 2 }]],
    [
      'a test that holds',
      [
        { op: 'test', path: '/spec/replicas', value: 1 },
        { op: 'replace', path: '/spec/replicas', value: 2 },
      ],
    ],
    ['a test of a missing path', [{ op: 'test', path: '/nope/x', value: 2 }]],
    ['a test of a missing key for null', [{ op: 'test', path: '/metadata/labels/z', value: null }]],
    ['a move', [{ op: 'move', from: '/metadata/labels/a', path: '/metadata/labels/z' }]],
    ['a move from nowhere', [{ op: 'move', from: '/nope/a', path: '/metadata/labels/z' }]],
    ['a move of a missing key', [{ op: 'move', from: '/metadata/labels/q', path: '/metadata/labels/z' }]],
    ['a copy', [{ op: 'copy', from: '/metadata/labels/a', path: '/metadata/labels/z' }]],
    ['a copy from nowhere', [{ op: 'copy', from: '/nope/a', path: '/metadata/labels/z' }]],
    ['an unknown operation', [{ op: 'frob', path: '/x' }]],
    ['no operation', [{ path: '/x' }]],
    ['no path', [{ op: 'add', value: 1 }]],
    ['no path to remove', [{ op: 'remove' }]],
    ['no path to replace', [{ op: 'replace', value: 1 }]],
    ['no path to test', [{ op: 'test', value: 1 }]],
    ['no from', [{ op: 'move', path: '/x' }]],
    [
      'an escaped key',
      [
        { op: 'add', path: '/metadata/annotations', value: {} },
        { op: 'add', path: '/metadata/annotations/a.io~1b', value: 'x' },
      ],
    ],
    ['an object for a patch', { op: 'add' }],
    ['words for operations', ['add']],
    ['lists for operations', [[]]],
  ])('JSON patch: %s', async (_, patch) => {
    expect(ours((document) => applyJsonPatch(document, patch))).toEqual(await theirs('json-patch+json', patch))
  })

  const spec = (content: unknown): unknown => ({ spec: { template: { spec: content } } })
  it.each<[string, unknown]>([
    ['containers merge by name', spec({ containers: [{ name: 'b', image: 'x/b:2' }] })],
    ['new containers come first', spec({ containers: [{ name: 'n', image: 'x/n:2' }] })],
    [
      'two new containers',
      spec({
        containers: [
          { name: 'n', image: 'x/n:2' },
          { name: 'm', image: 'x/m:2' },
          { name: 'a', image: 'x/a:2' },
        ],
      }),
    ],
    ['an item is deleted', spec({ containers: [{ name: 'b', $patch: 'delete' }] })],
    ['a list is replaced', spec({ containers: [{ $patch: 'replace' }, { name: 'z', image: 'x/z:1' }] })],
    ['a map is replaced', { metadata: { labels: { $patch: 'replace', z: '1' } } }],
    ['a map is deleted', { metadata: { labels: { $patch: 'delete' } } }],
    ['null deletes', { metadata: { labels: { a: null, z: null } } }],
    [
      'order is set',
      spec({
        '$setElementOrder/containers': [{ name: 'c' }, { name: 'b' }, { name: 'a' }],
        containers: [{ name: 'c', image: 'x/c:2' }],
      }),
    ],
    [
      'order with a new item',
      spec({
        '$setElementOrder/containers': [{ name: 'n' }, { name: 'a' }],
        containers: [{ name: 'n', image: 'x/n:2' }],
      }),
    ],
    ['order alone', spec({ '$setElementOrder/containers': [{ name: 'c' }, { name: 'a' }] })],
    [
      'order that does not match',
      spec({ '$setElementOrder/containers': [{ name: 'c' }], containers: [{ name: 'a', image: 'x/c:2' }] }),
    ],
    [
      'nested lists merge',
      spec({
        containers: [
          {
            name: 'a',
            env: [
              { name: 'B', value: '3' },
              { name: 'C', value: '4' },
            ],
          },
        ],
      }),
    ],
    ['ports merge by number', spec({ containers: [{ name: 'a', ports: [{ containerPort: 81, name: 'web' }] }] })],
    ['plain lists are replaced', spec({ containers: [{ name: 'a', args: ['z'] }], tolerations: [] })],
    ['sets of words merge', { metadata: { finalizers: ['x.io/b', 'x.io/a'] } }],
    ['words are deleted from a list', { metadata: { '$deleteFromPrimitiveList/finalizers': ['x.io/a'] } }],
    ['retained keys', spec({ volumes: [{ name: 'v', $retainKeys: ['name', 'secret'], secret: { secretName: 's' } }] })],
    [
      'retained keys that do not match',
      spec({ volumes: [{ name: 'v', $retainKeys: ['name'], secret: { secretName: 's' } }] }),
    ],
    ['a strategy retains keys', { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } }],
    ['a merge key is missing', spec({ containers: [{ image: 'x' }] })],
    ['an unknown directive', { metadata: { labels: { $patch: 'frob' } } }],
    ['an unknown directive in a list', spec({ containers: [{ name: 'a', $patch: 'frob' }] })],
    ['words and lists', { metadata: { finalizers: [['x']] } }],
    ['a list of lists', { metadata: { finalizers: [{ $patch: 'replace' }] } }],
  ])('strategic merge patch: %s', async (_, patch) => {
    expect(ours((document) => applyStrategicMergePatch(document, patch, schema))).toEqual(
      await theirs('strategic-merge-patch+json', patch),
    )
  })

  it('random strategic merge patches give the same object', { timeout: 60_000 + runs * 100 }, async () => {
    const name = fc.constantFrom('a', 'b', 'c', 'n', 'm')
    const env = fc.uniqueArray(fc.record({ name: fc.constantFrom('A', 'B', 'C', 'D'), value: name }), {
      maxLength: 4,
      selector: (item) => item.name,
    })
    const item = fc.oneof(
      { weight: 4, arbitrary: fc.record({ name, image: name.map((word) => `x/${word}:2`), env }) },
      { weight: 1, arbitrary: name.map((word) => ({ name: word, $patch: 'delete' })) },
    )
    const containers = fc.uniqueArray(item, { minLength: 1, maxLength: 4, selector: (one) => one.name })
    await fc.assert(
      fc.asyncProperty(
        containers,
        fc.boolean(),
        fc.shuffledSubarray(['a', 'b', 'c'], { minLength: 1 }),
        async (list, isOrdered, order) => {
          const kept = list.filter((one) => !('$patch' in one)).map((one) => one.name)
          const names = [...new Set([...kept, ...order])].map((word) => ({ name: word }))
          const patch = spec(
            isOrdered ? { '$setElementOrder/containers': names, containers: list } : { containers: list },
          )
          const answer = await theirs('strategic-merge-patch+json', patch)
          // Deleting every container is rejected by validation, which this test does not model.
          fc.pre(answer.status !== 422)
          expect(ours((document) => applyStrategicMergePatch(document, patch, schema))).toEqual(answer)
        },
      ),
      { numRuns: runs, endOnFailure: runs > 100 },
    )
  })
})

function comparable(object: JsonObject): unknown {
  const { managedFields: _m, generation: _g, resourceVersion: _r, ...metadata } = object['metadata'] as JsonObject
  return { ...object, metadata }
}
