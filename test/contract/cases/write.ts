/** Creates and updates (B3.4). */
import { expect } from 'vitest'
import { answers, area, merge, ok } from '../case.ts'
import type { Json } from '../client.ts'

const meta = (object: Json): Json => object['metadata'] as Json
const invalidMap = (name: string, why: string): string => `ConfigMap "${name}" is invalid: ${why}`
const subdomain = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
const qualified = `must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`
const unrecognized = (why: string, body: string): string =>
  `the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: ${why} (${body})`

export const write = [
  ...area('B3.4 create', {
    'returns 201 with uid, creationTimestamp and resourceVersion': async (t) => {
      const created = await ok(t.client.request('POST', t.maps, { body: t.map('a') }), 201)
      expect(String(meta(created)['uid'])).toMatch(/^[0-9a-f-]{36}$/)
      expect(String(meta(created)['creationTimestamp'])).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
      expect(String(meta(created)['resourceVersion'])).toMatch(/^\d+$/)
    },
    'takes the namespace from the path': async (t) => {
      const created = await ok(t.client.request('POST', t.maps, { body: t.map('a') }), 201)
      expect(meta(created)['namespace']).toBe(t.ns)
    },
    'resourceVersions increase across kinds': async (t) => {
      const a = await ok(t.client.request('POST', t.maps, { body: t.map('a') }), 201)
      const b = await ok(t.client.request('POST', t.widgets, { body: t.widget('b') }), 201)
      expect(Number(meta(b)['resourceVersion'])).toBeGreaterThan(Number(meta(a)['resourceVersion']))
    },
    'of a custom resource starts at generation 1': async (t) => {
      expect(meta(await ok(t.client.request('POST', t.widgets, { body: t.widget('a') }), 201))['generation']).toBe(1)
    },
    'drops the status where it is a subresource': async (t) => {
      expect(
        await ok(t.client.request('POST', t.widgets, { body: t.widget('a', { status: { ok: true } }) }), 201),
      ).not.toHaveProperty('status')
    },
    'ignores uid, creationTimestamp and deletionTimestamp of the body': async (t) => {
      const created = await ok(
        t.client.request('POST', t.maps, {
          body: t.map('a', {
            metadata: {
              name: 'a',
              uid: 'x',
              creationTimestamp: '2001-01-01T00:00:00Z',
              deletionTimestamp: '2001-01-01T00:00:00Z',
            },
          }),
        }),
        201,
      )
      expect(meta(created)['uid']).not.toBe('x')
      expect(meta(created)['creationTimestamp']).not.toBe('2001-01-01T00:00:00Z')
      expect(meta(created)).not.toHaveProperty('deletionTimestamp')
    },
    'generateName adds five letters': async (t) => {
      const created = await ok(t.client.request('POST', t.maps, { body: { metadata: { generateName: 'gen-' } } }), 201)
      expect(String(meta(created)['name'])).toMatch(/^gen-[bcdfghjklmnpqrstvwxz2456789]{5}$/)
    },
    'a name takes precedence over generateName': async (t) => {
      const created = await ok(
        t.client.request('POST', t.maps, { body: { metadata: { name: 'a', generateName: 'gen-' } } }),
        201,
      )
      expect(meta(created)['name']).toBe('a')
    },
    'generateName is truncated': async (t) => {
      const created = await ok(
        t.client.request('POST', t.maps, { body: { metadata: { generateName: `${'a'.repeat(70)}-` } } }),
        201,
      )
      expect(String(meta(created)['name'])).toHaveLength(63)
    },
    'of an existing name is AlreadyExists': async (t) => {
      await ok(t.client.request('POST', t.maps, { body: t.map('a') }), 201)
      const reply = await t.client.request('POST', t.maps, { body: t.map('a') })
      expect(reply.json).toMatchObject({
        code: 409,
        reason: 'AlreadyExists',
        message: 'configmaps "a" already exists',
        details: { name: 'a', kind: 'configmaps' },
      })
    },
    'dry run returns 201 and stores nothing': async (t) => {
      const created = await ok(t.client.request('POST', t.maps, { body: t.map('a'), query: { dryRun: 'All' } }), 201)
      expect(meta(created)['uid']).toBeDefined()
      expect((await t.client.request('GET', `${t.maps}/a`)).status).toBe(404)
    },
    'the manager is the program of the User-Agent': async (t) => {
      const created = await ok(
        t.client.request('POST', t.maps, {
          body: t.map('a', { data: { k: 'v' } }),
          headers: { 'user-agent': 'prog/v1 (x)' },
        }),
        201,
      )
      expect(meta(created)['managedFields']).toMatchObject([
        {
          manager: 'prog',
          operation: 'Update',
          apiVersion: 'v1',
          fieldsType: 'FieldsV1',
          fieldsV1: { 'f:data': { '.': {}, 'f:k': {} } },
        },
      ])
    },
    'fieldManager names the manager': async (t) => {
      const created = await ok(
        t.client.request('POST', t.maps, { body: t.map('a', { data: { k: 'v' } }), query: { fieldManager: 'mine' } }),
        201,
      )
      expect(meta(created)['managedFields']).toMatchObject([{ manager: 'mine' }])
    },
    'unknown fields are dropped with a warning': async (t) => {
      const reply = await t.client.request('POST', t.maps, { body: t.map('a', { nosuch: 1 }) })
      expect(reply.status).toBe(201)
      expect(reply.warnings).toEqual(['299 - "unknown field \\"nosuch\\""'])
      expect(reply.json).not.toHaveProperty('nosuch')
    },
    'fieldValidation=Ignore does not warn': async (t) => {
      const reply = await t.client.request('POST', t.maps, {
        body: t.map('a', { nosuch: 1 }),
        query: { fieldValidation: 'Ignore' },
      })
      expect(reply.warnings).toEqual([])
    },
    'a key called __proto__ is ordinary data': async (t) => {
      const body = `{"metadata":{"name":"p"},"data":{"__proto__":"x","constructor":"y"}}`
      const created = await t.client.request('POST', t.maps, { body })
      expect(created.status).toBe(201)
      expect(created.text.replaceAll(' ', '')).toContain('"__proto__":"x"')
      expect(({} as Record<string, unknown>)['x']).toBeUndefined()
    },
  }),
  ...answers('B3.4 create refusals', {
    'no name': [
      'POST',
      (t) => t.maps,
      () => ({ body: {} }),
      422,
      invalidMap('', 'metadata.name: Required value: name or generateName is required'),
    ],
    'a name that is not a subdomain': [
      'POST',
      (t) => t.maps,
      () => ({ body: { metadata: { name: 'Bad_Name' } } }),
      422,
      invalidMap('Bad_Name', `metadata.name: Invalid value: "Bad_Name": ${subdomain}`),
    ],
    'a name that is too long': [
      'POST',
      (t) => t.maps,
      () => ({ body: { metadata: { name: 'x'.repeat(254) } } }),
      422,
      /must be no more than 253 characters/,
    ],
    'a label key with a space': [
      'POST',
      (t) => t.maps,
      () => ({ body: { metadata: { name: 'a', labels: { 'a b': 'c' } } } }),
      422,
      invalidMap('a', `metadata.labels: Invalid value: "a b": name part ${qualified}`),
    ],
    'a label value that ends in a dash': [
      'POST',
      (t) => t.maps,
      () => ({ body: { metadata: { name: 'a', labels: { a: 'b-' } } } }),
      422,
      /metadata\.labels: Invalid value: "b-": a valid label must be an empty string/,
    ],
    'a label value that is too long': [
      'POST',
      (t) => t.maps,
      () => ({ body: { metadata: { name: 'a', labels: { a: 'v'.repeat(64) } } } }),
      422,
      /must be no more than 63 bytes/,
    ],
    'an annotation key with two slashes': [
      'POST',
      (t) => t.maps,
      () => ({ body: { metadata: { name: 'a', annotations: { 'a/b/c': '' } } } }),
      422,
      /metadata\.annotations: Invalid value: "a\/b\/c": a valid label key/,
    ],
    'annotations that are too large': [
      'POST',
      (t) => t.maps,
      () => ({ body: { metadata: { name: 'a', annotations: { a: 'x'.repeat(270_000) } } } }),
      422,
      invalidMap('a', 'metadata.annotations: Too long: may not be more than 262144 bytes'),
    ],
    'a finalizer without a domain': [
      'POST',
      (t) => t.maps,
      () => ({ body: { metadata: { name: 'a', finalizers: ['bad'] } } }),
      422,
      invalidMap(
        'a',
        'metadata.finalizers[0]: Invalid value: "bad": name is neither a standard finalizer name nor is it fully qualified',
      ),
    ],
    'two controllers': [
      'POST',
      (t) => t.maps,
      () => ({
        body: {
          metadata: {
            name: 'a',
            ownerReferences: [1, 2].map((n) => ({
              apiVersion: 'v1',
              kind: 'A',
              name: `a${n}`,
              uid: String(n),
              controller: true,
            })),
          },
        },
      }),
      422,
      /Only one reference can have Controller set to true\. Found "true" in references for A\/a1 and A\/a2/,
    ],
    'an owner without a uid': [
      'POST',
      (t) => t.maps,
      () => ({ body: { metadata: { name: 'a', ownerReferences: [{ apiVersion: 'v1', kind: 'A', name: 'a' }] } } }),
      422,
      invalidMap('a', 'metadata.ownerReferences.uid: Invalid value: "": must not be empty'),
    ],
    'another namespace': [
      'POST',
      (t) => t.maps,
      () => ({ body: { metadata: { name: 'a', namespace: 'other' } } }),
      400,
      'the namespace of the provided object does not match the namespace sent on the request',
    ],
    'a namespace that does not exist': [
      'POST',
      () => '/api/v1/namespaces/nosuch/configmaps',
      (t) => ({ body: t.map('a') }),
      404,
      'namespaces "nosuch" not found',
    ],
    'a resourceVersion': [
      'POST',
      (t) => t.maps,
      () => ({ body: { metadata: { name: 'a', resourceVersion: '5' } } }),
      500,
      'resourceVersion should not be set on objects to be created',
    ],
    'text that is not JSON': [
      'POST',
      (t) => t.maps,
      () => ({ body: '{bad' }),
      400,
      unrecognized("invalid character 'b' looking for beginning of object key string", '{bad'),
    ],
    'an empty body': [
      'POST',
      (t) => t.maps,
      () => ({ body: '' }),
      400,
      unrecognized('unexpected end of JSON input', '<empty>'),
    ],
    'an array': ['POST', (t) => t.maps, () => ({ body: '[]' }), 400, /cannot unmarshal array into Go value/],
    'another kind': [
      'POST',
      (t) => t.maps,
      () => ({ body: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' } } }),
      400,
      'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion',
    ],
    'an unknown kind': [
      'POST',
      (t) => t.maps,
      () => ({ body: { apiVersion: 'v1', kind: 'Foo', metadata: { name: 'a' } } }),
      400,
      /^Foo in version "v1" cannot be handled as a ConfigMap: no kind "Foo" is registered for version "v1" in scheme/,
    ],
    'a number instead of a string': [
      'POST',
      (t) => t.maps,
      () => ({ body: { metadata: { name: 'a' }, data: { a: 1 } } }),
      400,
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string',
    ],
    'metadata that is text': [
      'POST',
      (t) => t.maps,
      () => ({ body: { metadata: 'x' } }),
      400,
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal string into Go struct field ConfigMap.metadata of type v1.ObjectMeta',
    ],
    'strict: an unknown field': [
      'POST',
      (t) => t.maps,
      () => ({ body: { metadata: { name: 'a' }, nosuch: 1 }, query: { fieldValidation: 'Strict' } }),
      400,
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "nosuch"',
    ],
    'strict: a duplicate field': [
      'POST',
      (t) => t.maps,
      () => ({ body: '{"metadata":{"name":"a"},"data":{"k":"1","k":"2"}}', query: { fieldValidation: 'Strict' } }),
      400,
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "data.k"',
    ],
    'strict: an unknown metadata field': [
      'POST',
      (t) => t.maps,
      () => ({ body: { metadata: { name: 'a', nosuch: 1 } }, query: { fieldValidation: 'Strict' } }),
      400,
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "metadata.nosuch"',
    ],
    'an unknown dryRun': [
      'POST',
      (t) => t.maps,
      (t) => ({ body: t.map('a'), query: { dryRun: 'Some' } }),
      422,
      'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"',
    ],
    'an unknown fieldValidation': [
      'POST',
      (t) => t.maps,
      (t) => ({ body: t.map('a'), query: { fieldValidation: 'Foo' } }),
      422,
      'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Foo": supported values: "", "Ignore", "Strict", "Warn"',
    ],
    'a field manager that is too long': [
      'POST',
      (t) => t.maps,
      (t) => ({ body: t.map('a'), query: { fieldManager: 'm'.repeat(129) } }),
      422,
      'CreateOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes',
    ],
    'a body that is too large': [
      'POST',
      (t) => t.maps,
      () => ({ body: { metadata: { name: 'a' }, data: { a: 'x'.repeat(3_200_000) } } }),
      413,
    ],
  }),
  ...area('B3.4 update', {
    'replaces the object': async (t) => {
      await ok(t.client.request('POST', t.maps, { body: t.map('a', { data: { a: '1' } }) }), 201)
      expect(
        (await ok(t.client.request('PUT', `${t.maps}/a`, { body: t.map('a', { data: { b: '2' } }) })))['data'],
      ).toEqual({ b: '2' })
    },
    'keeps uid and creationTimestamp': async (t) => {
      const created = await ok(t.client.request('POST', t.maps, { body: t.map('a') }), 201)
      const updated = await ok(t.client.request('PUT', `${t.maps}/a`, { body: t.map('a', { data: { x: '1' } }) }))
      expect([meta(updated)['uid'], meta(updated)['creationTimestamp']]).toEqual([
        meta(created)['uid'],
        meta(created)['creationTimestamp'],
      ])
    },
    'that changes nothing keeps the resourceVersion': async (t) => {
      const created = await ok(t.client.request('POST', t.maps, { body: t.map('a', { data: { a: '1' } }) }), 201)
      const updated = await ok(t.client.request('PUT', `${t.maps}/a`, { body: created }))
      expect(meta(updated)['resourceVersion']).toBe(meta(created)['resourceVersion'])
    },
    'with an old resourceVersion is a Conflict': async (t) => {
      const created = await ok(t.client.request('POST', t.widgets, { body: t.widget('a') }), 201)
      await ok(t.client.request('PATCH', `${t.widgets}/a`, { ...merge, body: { spec: { size: 9 } } }))
      const reply = await t.client.request('PUT', `${t.widgets}/a`, { body: created })
      expect(reply.json).toMatchObject({
        code: 409,
        reason: 'Conflict',
        message: `Operation cannot be fulfilled on widgets.${t.group} "a": the object has been modified; please apply your changes to the latest version and try again`,
        details: { name: 'a', group: t.group, kind: 'widgets' },
      })
    },
    'of a spec increments the generation': async (t) => {
      const created = await ok(t.client.request('POST', t.widgets, { body: t.widget('a', { spec: { size: 1 } }) }), 201)
      const updated = await ok(t.client.request('PUT', `${t.widgets}/a`, { body: { ...created, spec: { size: 2 } } }))
      expect(meta(updated)['generation']).toBe(2)
    },
    'of labels does not increment the generation': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget('a') }), 201)
      const updated = await ok(
        t.client.request('PATCH', `${t.widgets}/a`, { ...merge, body: { metadata: { labels: { a: 'b' } } } }),
      )
      expect(meta(updated)['generation']).toBe(1)
    },
    'of the main endpoint does not change the status': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget('a') }), 201)
      await ok(t.client.request('PATCH', `${t.widgets}/a/status`, { ...merge, body: { status: { ok: true } } }))
      const updated = await ok(
        t.client.request('PATCH', `${t.widgets}/a`, { ...merge, body: { status: { ok: false }, spec: { size: 7 } } }),
      )
      expect(updated).toMatchObject({ status: { ok: true }, spec: { size: 7 } })
    },
    'of the status changes nothing else': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget('a', { spec: { size: 1 } }) }), 201)
      const updated = await ok(
        t.client.request('PATCH', `${t.widgets}/a/status`, {
          ...merge,
          body: { status: { ok: true }, spec: { size: 9 }, metadata: { labels: { a: 'b' } } },
        }),
      )
      expect(updated).toMatchObject({ status: { ok: true }, spec: { size: 1 } })
      expect(meta(updated)).not.toHaveProperty('labels')
      expect(meta(updated)['generation']).toBe(1)
    },
    'of the status is tracked with its subresource': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget('a') }), 201)
      const updated = await ok(
        t.client.request('PATCH', `${t.widgets}/a/status`, { ...merge, body: { status: { ok: true } } }),
      )
      expect(meta(updated)['managedFields']).toMatchObject([
        {},
        {
          manager: 'contract',
          operation: 'Update',
          subresource: 'status',
          fieldsV1: { 'f:status': { '.': {}, 'f:ok': {} } },
        },
      ])
    },
    'PUT to status stores the status of the body': async (t) => {
      const created = await ok(t.client.request('POST', t.widgets, { body: t.widget('a') }), 201)
      expect(
        await ok(t.client.request('PUT', `${t.widgets}/a/status`, { body: { ...created, status: { size: 5 } } })),
      ).toMatchObject({ status: { size: 5 } })
    },
    'GET of status returns the object': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget('a') }), 201)
      expect(await ok(t.client.request('GET', `${t.widgets}/a/status`))).toMatchObject({ kind: 'Widget', spec: {} })
    },
    'dry run stores nothing': async (t) => {
      await ok(t.client.request('POST', t.maps, { body: t.map('a', { data: { a: '1' } }) }), 201)
      expect(
        (
          await ok(
            t.client.request('PUT', `${t.maps}/a`, {
              body: t.map('a', { data: { a: '2' } }),
              query: { dryRun: 'All' },
            }),
          )
        )['data'],
      ).toEqual({ a: '2' })
      expect((await ok(t.client.request('GET', `${t.maps}/a`)))['data']).toEqual({ a: '1' })
    },
    'PUT of an absent Lease creates it': async (t) => {
      const path = `/apis/coordination.k8s.io/v1/namespaces/${t.ns}/leases`
      await ok(
        t.client.request('PUT', `${path}/l`, { body: { metadata: { name: 'l' }, spec: { holderIdentity: 'me' } } }),
        201,
      )
    },
  }),
  ...answers(
    'B3.4 update refusals',
    {
      'PUT of an absent object': [
        'PUT',
        (t) => `${t.maps}/none`,
        (t) => ({ body: t.map('none') }),
        404,
        'configmaps "none" not found',
      ],
      'PUT with another name': [
        'PUT',
        (t) => `${t.maps}/a`,
        (t) => ({ body: t.map('b') }),
        400,
        'the name of the object (b) does not match the name on the URL (a)',
      ],
      'PUT without a name': [
        'PUT',
        (t) => `${t.maps}/a`,
        () => ({ body: { metadata: {} } }),
        400,
        'the name of the object (a based on URL) was undeterminable: name must be provided',
      ],
      'PUT with another uid': [
        'PUT',
        (t) => `${t.maps}/a`,
        () => ({ body: { metadata: { name: 'a', uid: 'x' } } }),
        409,
        /^Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, .* Precondition failed: UID in precondition: x, UID in object meta: /,
      ],
      'PUT of a custom resource without a version': [
        'PUT',
        (t) => `${t.widgets}/a`,
        (t) => ({ body: t.widget('a') }),
        422,
        /^widgets\.\S+ "a" is invalid: metadata\.resourceVersion: Invalid value: 0: must be specified for an update$/,
      ],
      'PUT with a version that is not a number': [
        'PUT',
        (t) => `${t.maps}/a`,
        () => ({ body: { metadata: { name: 'a', resourceVersion: 'x' } } }),
        500,
        'strconv.ParseUint: parsing "x": invalid syntax',
      ],
    },
    async (t) => {
      await ok(t.client.request('POST', t.maps, { body: t.map('a') }), 201)
      await ok(t.client.request('POST', t.widgets, { body: t.widget('a') }), 201)
    },
  ),
]
