/** Deletes, finalizers, owners, namespaces (B3.6). */
import { expect } from 'vitest'
import { answers, area, type CaseContext, merge, names, ok, until } from '../case.ts'
import type { Json } from '../client.ts'

const meta = (object: Json): Json => object['metadata'] as Json

async function create(t: CaseContext, name: string, metadata: object = {}): Promise<Json> {
  return await ok(t.client.request('POST', t.maps, { body: t.map(name, { metadata: { name, ...metadata } }) }), 201)
}

async function isGone(t: CaseContext, path: string): Promise<boolean> {
  return (await t.client.request('GET', path)).status === 404
}

const ownedBy = (owner: Json, more: object = {}): object => ({
  ownerReferences: [
    { apiVersion: 'v1', kind: 'ConfigMap', name: meta(owner)['name'], uid: meta(owner)['uid'], ...more },
  ],
})

export const remove = [
  ...area('B3.6 delete', {
    'returns a Status with details': async (t) => {
      const created = await create(t, 'a')
      expect(await ok(t.client.request('DELETE', `${t.maps}/a`))).toEqual({
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Success',
        details: { name: 'a', kind: 'configmaps', uid: meta(created)['uid'] },
      })
    },
    'of a custom resource names its group': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget('a') }), 201)
      expect(await ok(t.client.request('DELETE', `${t.widgets}/a`))).toMatchObject({
        details: { group: t.group, kind: 'widgets' },
      })
    },
    'of a Service returns the Service': async (t) => {
      await ok(
        t.client.request('POST', t.services, { body: { metadata: { name: 's' }, spec: { ports: [{ port: 80 }] } } }),
        201,
      )
      expect(await ok(t.client.request('DELETE', `${t.services}/s`))).toMatchObject({
        kind: 'Service',
        metadata: { name: 's' },
      })
    },
    'with the right uid': async (t) => {
      const created = await create(t, 'a')
      await ok(t.client.request('DELETE', `${t.maps}/a`, { body: { preconditions: { uid: meta(created)['uid'] } } }))
    },
    'with the right resourceVersion': async (t) => {
      const created = await create(t, 'a')
      await ok(
        t.client.request('DELETE', `${t.maps}/a`, {
          body: { preconditions: { resourceVersion: meta(created)['resourceVersion'] } },
        }),
      )
    },
    'with another uid is a Conflict': async (t) => {
      const created = await create(t, 'a')
      const reply = await t.client.request('DELETE', `${t.maps}/a`, { body: { preconditions: { uid: 'x' } } })
      expect(reply.json).toMatchObject({
        code: 409,
        message: `Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (x) does not match the UID in record (${String(meta(created)['uid'])}). The object might have been deleted and then recreated`,
      })
    },
    'with another resourceVersion is a Conflict': async (t) => {
      await create(t, 'a')
      expect(
        (await t.client.request('DELETE', `${t.maps}/a`, { body: { preconditions: { resourceVersion: '1' } } })).status,
      ).toBe(409)
    },
    'dry run deletes nothing': async (t) => {
      await create(t, 'a')
      await ok(t.client.request('DELETE', `${t.maps}/a`, { body: { dryRun: ['All'] } }))
      await ok(t.client.request('GET', `${t.maps}/a`))
    },
    'accepts its options in the query': async (t) => {
      await create(t, 'a')
      await ok(t.client.request('DELETE', `${t.maps}/a`, { query: { dryRun: 'All' } }))
      await ok(t.client.request('GET', `${t.maps}/a`))
    },
    'of a collection accepts a selector and returns the list': async (t) => {
      await create(t, 'a', { labels: { on: 'yes' } })
      await create(t, 'b')
      const deleted = await ok(t.client.request('DELETE', t.maps, { query: { labelSelector: 'on=yes' } }))
      expect(names(deleted)).toEqual(['a'])
      expect(await isGone(t, `${t.maps}/a`)).toBe(true)
      expect(await isGone(t, `${t.maps}/b`)).toBe(false)
    },
  }),
  ...answers(
    'B3.6 delete refusals',
    {
      'of an absent object': ['DELETE', (t) => `${t.maps}/none`, () => ({}), 404, 'configmaps "none" not found'],
      'with an unknown policy': [
        'DELETE',
        (t) => `${t.maps}/a`,
        () => ({ body: { propagationPolicy: 'X' } }),
        422,
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "X": supported values: "Foreground", "Background", "Orphan", "nil"',
      ],
      'with two policies': [
        'DELETE',
        (t) => `${t.maps}/a`,
        () => ({ body: { propagationPolicy: 'Orphan', orphanDependents: true } }),
        422,
        /orphanDependents and deletionPropagation cannot be both set/,
      ],
      'of the namespace default': [
        'DELETE',
        () => '/api/v1/namespaces/default',
        () => ({}),
        403,
        'namespaces "default" is forbidden: this namespace may not be deleted',
      ],
      'of the namespace kube-system': [
        'DELETE',
        () => '/api/v1/namespaces/kube-system',
        () => ({}),
        403,
        'namespaces "kube-system" is forbidden: this namespace may not be deleted',
      ],
      'of all namespaces': [
        'DELETE',
        () => '/api/v1/namespaces',
        () => ({}),
        405,
        'the server does not allow this method on the requested resource',
      ],
    },
    async (t) => void (await create(t, 'a')),
  ),
  ...area('B3.6 finalizers', {
    'a delete only sets the deletionTimestamp': async (t) => {
      await ok(
        t.client.request('POST', t.widgets, {
          body: t.widget('a', { metadata: { name: 'a', finalizers: ['x.dev/f'] } }),
        }),
        201,
      )
      const marked = await ok(t.client.request('DELETE', `${t.widgets}/a`))
      expect(marked).toMatchObject({
        kind: 'Widget',
        metadata: { deletionGracePeriodSeconds: 0, generation: 2, finalizers: ['x.dev/f'] },
      })
      expect(meta(marked)['deletionTimestamp']).toBeDefined()
    },
    'a second delete keeps the first deletionTimestamp': async (t) => {
      await create(t, 'a', { finalizers: ['x.dev/f'] })
      const first = await ok(t.client.request('DELETE', `${t.maps}/a`))
      const second = await ok(t.client.request('DELETE', `${t.maps}/a`))
      expect(meta(second)['resourceVersion']).toBe(meta(first)['resourceVersion'])
    },
    'removal of the last one deletes the object': async (t) => {
      await create(t, 'a', { finalizers: ['x.dev/f'] })
      await ok(t.client.request('DELETE', `${t.maps}/a`))
      await ok(t.client.request('PATCH', `${t.maps}/a`, { ...merge, body: { metadata: { finalizers: null } } }))
      expect(await isGone(t, `${t.maps}/a`)).toBe(true)
    },
    'removal of one of two keeps the object': async (t) => {
      await create(t, 'a', { finalizers: ['x.dev/f', 'x.dev/g'] })
      await ok(t.client.request('DELETE', `${t.maps}/a`))
      await ok(t.client.request('PATCH', `${t.maps}/a`, { ...merge, body: { metadata: { finalizers: ['x.dev/g'] } } }))
      expect(await isGone(t, `${t.maps}/a`)).toBe(false)
    },
    'none may be added while deleting': async (t) => {
      await create(t, 'a', { finalizers: ['x.dev/f'] })
      await ok(t.client.request('DELETE', `${t.maps}/a`))
      const reply = await t.client.request('PATCH', `${t.maps}/a`, {
        ...merge,
        body: { metadata: { finalizers: ['x.dev/f', 'x.dev/new'] } },
      })
      expect(reply.json['message']).toBe(
        'ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"x.dev/new"}',
      )
    },
    'an update cannot remove the deletionTimestamp': async (t) => {
      await create(t, 'a', { finalizers: ['x.dev/f'] })
      await ok(t.client.request('DELETE', `${t.maps}/a`))
      const updated = await ok(
        t.client.request('PATCH', `${t.maps}/a`, {
          ...merge,
          body: { metadata: { deletionTimestamp: null, labels: { a: 'b' } } },
        }),
      )
      expect(meta(updated)['deletionTimestamp']).toBeDefined()
    },
    'Foreground adds its finalizer': async (t) => {
      await create(t, 'a', { finalizers: ['x.dev/f'] })
      const marked = await ok(t.client.request('DELETE', `${t.maps}/a`, { body: { propagationPolicy: 'Foreground' } }))
      expect(meta(marked)['finalizers']).toEqual(['x.dev/f', 'foregroundDeletion'])
    },
    'Orphan adds its finalizer': async (t) => {
      await create(t, 'a', { finalizers: ['x.dev/f'] })
      const marked = await ok(t.client.request('DELETE', `${t.maps}/a`, { body: { propagationPolicy: 'Orphan' } }))
      expect(meta(marked)['finalizers']).toEqual(['x.dev/f', 'orphan'])
    },
  }),
  ...area(
    'B3.6 garbage collection',
    {
      'a dependent is deleted after its owner': async (t) => {
        const owner = await create(t, 'owner')
        await create(t, 'child', ownedBy(owner))
        await ok(t.client.request('DELETE', `${t.maps}/owner`, { body: { propagationPolicy: 'Background' } }))
        await until(async () => await isGone(t, `${t.maps}/child`), 'the child goes')
      },
      'a dependent of two owners is kept while one exists': async (t) => {
        const [one, two] = [await create(t, 'one'), await create(t, 'two')]
        const refs = [one, two].map((owner) => ({
          apiVersion: 'v1',
          kind: 'ConfigMap',
          name: meta(owner)['name'],
          uid: meta(owner)['uid'],
        }))
        await create(t, 'child', { ownerReferences: refs })
        await ok(t.client.request('DELETE', `${t.maps}/one`))
        await until(
          async () =>
            ((meta(await ok(t.client.request('GET', `${t.maps}/child`)))['ownerReferences'] ?? []) as unknown as Json[])
              .length === 1,
          'the reference goes',
        )
        await ok(t.client.request('DELETE', `${t.maps}/two`))
        await until(async () => await isGone(t, `${t.maps}/child`), 'the child goes')
      },
      'Foreground waits for a blocking dependent': async (t) => {
        const owner = await create(t, 'owner')
        await create(t, 'child', { ...ownedBy(owner, { blockOwnerDeletion: true }), finalizers: ['x.dev/hold'] })
        await ok(t.client.request('DELETE', `${t.maps}/owner`, { body: { propagationPolicy: 'Foreground' } }))
        await until(
          async () => meta(await ok(t.client.request('GET', `${t.maps}/child`)))['deletionTimestamp'] !== undefined,
          'the child is marked',
        )
        expect(await isGone(t, `${t.maps}/owner`)).toBe(false)
        await ok(t.client.request('PATCH', `${t.maps}/child`, { ...merge, body: { metadata: { finalizers: null } } }))
        await until(async () => await isGone(t, `${t.maps}/owner`), 'the owner goes')
      },
      'Orphan removes the owner references of dependents': async (t) => {
        const owner = await create(t, 'owner')
        await create(t, 'child', ownedBy(owner))
        await ok(t.client.request('DELETE', `${t.maps}/owner`, { body: { propagationPolicy: 'Orphan' } }))
        await until(async () => await isGone(t, `${t.maps}/owner`), 'the owner goes')
        expect(meta(await ok(t.client.request('GET', `${t.maps}/child`)))).not.toHaveProperty('ownerReferences')
      },
      'an object whose owner never existed is deleted': async (t) => {
        await create(t, 'child', {
          ownerReferences: [
            { apiVersion: 'v1', kind: 'ConfigMap', name: 'never', uid: '00000000-0000-0000-0000-000000000000' },
          ],
        })
        await until(async () => await isGone(t, `${t.maps}/child`), 'the child goes')
      },
      'an object whose owner is of an unknown kind is kept': async (t) => {
        await create(t, 'child', {
          ownerReferences: [
            { apiVersion: 'nosuch.dev/v1', kind: 'Nosuch', name: 'x', uid: '00000000-0000-0000-0000-000000000000' },
          ],
        })
        const marker = await create(t, 'marker')
        await create(t, 'swept', ownedBy(marker))
        await ok(t.client.request('DELETE', `${t.maps}/marker`))
        await until(async () => await isGone(t, `${t.maps}/swept`), 'the collector has run')
        expect(await isGone(t, `${t.maps}/child`)).toBe(false)
      },
    },
    { needsControllers: true },
  ),
  ...area('B3.6 namespaces', {
    'are labelled with their name and Active': async (t) => {
      expect(await ok(t.client.request('GET', `/api/v1/namespaces/${t.ns}`))).toMatchObject({
        metadata: { labels: { 'kubernetes.io/metadata.name': t.ns } },
        spec: { finalizers: ['kubernetes'] },
        status: { phase: 'Active' },
      })
    },
    'the four system namespaces exist': async (t) => {
      for (const name of ['default', 'kube-system', 'kube-public', 'kube-node-lease'])
        await ok(t.client.request('GET', `/api/v1/namespaces/${name}`))
    },
    'a name must be a label': async (t) => {
      const reply = await t.client.request('POST', '/api/v1/namespaces', { body: { metadata: { name: 'a.b' } } })
      expect(reply.json['message']).toBe(
        'Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots',
      )
    },
    'a deleted one is Terminating and rejects new objects': async (t) => {
      const name = `${t.ns}-gone`
      await ok(
        t.client.request('POST', '/api/v1/namespaces', { body: { metadata: { name, finalizers: ['x.dev/hold'] } } }),
        201,
      )
      expect(await ok(t.client.request('DELETE', `/api/v1/namespaces/${name}`))).toMatchObject({
        status: { phase: 'Terminating' },
      })
      const reply = await t.client.request('POST', `/api/v1/namespaces/${name}/configmaps`, { body: t.map('late') })
      expect(reply.json).toMatchObject({
        code: 403,
        message: `configmaps "late" is forbidden: unable to create new content in namespace ${name} because it is being terminated`,
        details: {
          causes: [
            {
              reason: 'NamespaceTerminating',
              message: `namespace ${name} is being terminated`,
              field: 'metadata.namespace',
            },
          ],
        },
      })
      await t.client.request('PATCH', `/api/v1/namespaces/${name}`, {
        ...merge,
        body: { metadata: { finalizers: null } },
      })
    },
  }),
  ...area(
    'B3.6 namespace removal',
    {
      'deletes its content': async (t) => {
        const name = `${t.ns}-full`
        await ok(t.client.request('POST', '/api/v1/namespaces', { body: { metadata: { name } } }), 201)
        await ok(t.client.request('POST', `/api/v1/namespaces/${name}/configmaps`, { body: t.map('a') }), 201)
        await ok(
          t.client.request('POST', `/apis/${t.group}/v1/namespaces/${name}/widgets`, { body: t.widget('w') }),
          201,
        )
        await ok(t.client.request('DELETE', `/api/v1/namespaces/${name}`))
        await until(async () => await isGone(t, `/api/v1/namespaces/${name}`), 'the namespace goes')
        expect(await isGone(t, `/api/v1/namespaces/${name}/configmaps/a`)).toBe(true)
      },
      'waits for objects with finalizers, and reports them': async (t) => {
        const name = `${t.ns}-held`
        await ok(t.client.request('POST', '/api/v1/namespaces', { body: { metadata: { name } } }), 201)
        const maps = `/api/v1/namespaces/${name}/configmaps`
        await ok(
          t.client.request('POST', maps, { body: t.map('a', { metadata: { name: 'a', finalizers: ['x.dev/hold'] } }) }),
          201,
        )
        await ok(t.client.request('DELETE', `/api/v1/namespaces/${name}`))
        await until(
          async () =>
            JSON.stringify((await ok(t.client.request('GET', `/api/v1/namespaces/${name}`)))['status']).includes(
              'SomeFinalizersRemain',
            ),
          'the condition appears',
        )
        await ok(t.client.request('PATCH', `${maps}/a`, { ...merge, body: { metadata: { finalizers: null } } }))
        await until(async () => await isGone(t, `/api/v1/namespaces/${name}`), 'the namespace goes')
      },
      'a new namespace gets a default ServiceAccount': async (t) => {
        await until(
          async () =>
            (await t.client.request('GET', `/api/v1/namespaces/${t.ns}/serviceaccounts/default`)).status === 200,
          'the account appears',
        )
      },
      'a new namespace gets kube-root-ca.crt': async (t) => {
        await until(
          async () => (await t.client.request('GET', `${t.maps}/kube-root-ca.crt`)).status === 200,
          'the map appears',
        )
      },
    },
    { needsControllers: true },
  ),
]
