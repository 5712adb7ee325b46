/** Admission and conversion webhooks against a real HTTPS server. */
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createAuthority } from '@seamark/kube/certificates'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ApiServer, createApiServer } from '../index.ts'

type Json = Record<string, unknown>

/** The response of the webhook to a review. */
let answer: (path: string, request: Json) => Json = () => ({ allowed: true })
let reviews: { path: string; request: Json }[] = []
let https: Server
let url = ''
let caBundle = ''
let server: ApiServer

const maps = '/api/v1/namespaces/default/configmaps'
const encode = (patch: unknown): string => Buffer.from(JSON.stringify(patch)).toString('base64')

async function send(
  method: string,
  path: string,
  body: unknown,
  type = 'application/json',
): Promise<{ status: number; json: Json; warnings: string | null }> {
  const response = await server.fetch(path, { method, headers: { 'content-type': type }, body: JSON.stringify(body) })
  return { status: response.status, json: (await response.json()) as Json, warnings: response.headers.get('warning') }
}

function configuration(kind: 'Mutating' | 'Validating', path: string, changes: Json = {}): Json {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: `${kind}WebhookConfiguration`,
    metadata: { name: `${kind.toLowerCase()}-${path}` },
    webhooks: [
      {
        name: `${path}.example.dev`,
        clientConfig: { url: `${url}/${path}`, caBundle },
        rules: [
          {
            operations: ['CREATE', 'UPDATE', 'DELETE'],
            apiGroups: [''],
            apiVersions: ['v1'],
            resources: ['configmaps'],
          },
        ],
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        ...changes,
      },
    ],
  }
}

async function install(kind: 'Mutating' | 'Validating', path: string, changes: Json = {}): Promise<void> {
  const plural = `${kind.toLowerCase()}webhookconfigurations`
  expect(
    (await send('POST', `/apis/admissionregistration.k8s.io/v1/${plural}`, configuration(kind, path, changes))).status,
  ).toBe(201)
}

beforeAll(async () => {
  const authority = await createAuthority({ commonName: 'webhooks' })
  const pair = await authority.issue({ commonName: 'webhook', ipAddresses: ['127.0.0.1'], usages: 'server' })
  caBundle = Buffer.from(authority.certPem).toString('base64')
  https = createServer({ cert: pair.certPem, key: pair.keyPem }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const review = JSON.parse(Buffer.concat(chunks).toString()) as { apiVersion: string; kind: string; request: Json }
      const path = new URL(request.url ?? '/', 'https://x').pathname.slice(1)
      reviews.push({ path, request: review.request })
      const body = { uid: review.request['uid'], ...answer(path, review.request) }
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ apiVersion: review.apiVersion, kind: review.kind, response: body }))
    })
  })
  await new Promise<void>((resolve) => https.listen(0, '127.0.0.1', resolve))
  url = `https://127.0.0.1:${(https.address() as AddressInfo).port}`
})

afterAll(() => {
  https.closeAllConnections()
  https.close()
})

beforeEach(() => {
  reviews = []
  answer = () => ({ allowed: true })
  server = createApiServer({ controllers: false })
  return async () => await server.close()
})

describe('admission webhooks', () => {
  it('a mutating webhook changes the object before it is stored', async () => {
    answer = () => ({
      allowed: true,
      patchType: 'JSONPatch',
      patch: encode([{ op: 'add', path: '/data', value: { added: 'yes' } }]),
    })
    await install('Mutating', 'mutate')
    const { status, json } = await send('POST', maps, { metadata: { name: 'a' } })
    expect([status, json['data']]).toEqual([201, { added: 'yes' }])
    expect(reviews[0]?.request).toMatchObject({
      operation: 'CREATE',
      resource: { group: '', version: 'v1', resource: 'configmaps' },
      kind: { kind: 'ConfigMap' },
      namespace: 'default',
      dryRun: false,
      userInfo: { username: 'admin' },
    })
  })

  it('webhooks run in order of name, each on the result of the previous one', async () => {
    answer = (path) => ({
      allowed: true,
      patchType: 'JSONPatch',
      patch: encode(
        path === 'a'
          ? [{ op: 'add', path: '/data', value: { by: 'a' } }]
          : [
              { op: 'test', path: '/data/by', value: 'a' },
              { op: 'replace', path: '/data/by', value: 'b' },
            ],
      ),
    })
    await install('Mutating', 'b')
    await install('Mutating', 'a')
    expect((await send('POST', maps, { metadata: { name: 'a' } })).json['data']).toEqual({ by: 'b' })
  })

  it('a validating webhook rejects with its message', async () => {
    answer = () => ({ allowed: false, status: { message: 'not today', code: 422, reason: 'Invalid' } })
    await install('Validating', 'deny')
    const { status, json } = await send('POST', maps, { metadata: { name: 'a' } })
    expect([status, json['message']]).toEqual([
      422,
      'admission webhook "deny.example.dev" denied the request: not today',
    ])
    expect((await server.fetch(`${maps}/a`)).status).toBe(404)
  })

  it('a rejection without a message is a 400 without explanation', async () => {
    answer = () => ({ allowed: false })
    await install('Validating', 'deny')
    const { status, json } = await send('POST', maps, { metadata: { name: 'a' } })
    expect([status, json['message']]).toEqual([
      400,
      'admission webhook "deny.example.dev" denied the request without explanation',
    ])
  })

  it('updates and deletes carry the old object', async () => {
    await send('POST', maps, { metadata: { name: 'a' }, data: { k: '1' } })
    await install('Validating', 'see')
    await send('PATCH', `${maps}/a`, { data: { k: '2' } }, 'application/merge-patch+json')
    await server.fetch(`${maps}/a`, { method: 'DELETE' })
    expect(
      reviews.map(({ request }) => [
        request['operation'],
        (request['oldObject'] as Json | null)?.['data'],
        (request['object'] as Json | null)?.['data'],
      ]),
    ).toEqual([
      ['UPDATE', { k: '1' }, { k: '2' }],
      ['DELETE', { k: '2' }, undefined],
    ])
  })

  it('selectors and rules decide which webhooks are called', async () => {
    await install('Validating', 'labelled', { objectSelector: { matchLabels: { ask: 'yes' } } })
    await install('Validating', 'elsewhere', { namespaceSelector: { matchLabels: { none: 'such' } } })
    await send('POST', maps, { metadata: { name: 'a' } })
    await send('POST', '/api/v1/namespaces/default/secrets', { metadata: { name: 's', labels: { ask: 'yes' } } })
    expect(reviews).toEqual([])
    await send('POST', maps, { metadata: { name: 'b', labels: { ask: 'yes' } } })
    expect(reviews.map(({ path }) => path)).toEqual(['labelled'])
  })

  it('an unreachable webhook is handled according to its failurePolicy', async () => {
    const clientConfig = { url: 'https://127.0.0.1:1/none', caBundle }
    await install('Validating', 'ignored', { clientConfig, failurePolicy: 'Ignore' })
    expect((await send('POST', maps, { metadata: { name: 'a' } })).status).toBe(201)
    await install('Validating', 'required', { clientConfig })
    const { status, json } = await send('POST', maps, { metadata: { name: 'b' } })
    expect(status).toBe(500)
    expect(json['message']).toMatch(
      /^Internal error occurred: failed calling webhook "required\.example\.dev": failed to call webhook: /,
    )
  })

  it('a certificate of another CA is not trusted', async () => {
    const otherAuthority = await createAuthority({ commonName: 'other' })
    await install('Validating', 'strange', {
      clientConfig: { url: `${url}/strange`, caBundle: Buffer.from(otherAuthority.certPem).toString('base64') },
    })
    expect((await send('POST', maps, { metadata: { name: 'a' } })).status).toBe(500)
    expect(reviews).toEqual([])
  })

  it('a dry run calls only webhooks without side effects', async () => {
    await install('Validating', 'pure')
    expect((await send('POST', `${maps}?dryRun=All`, { metadata: { name: 'a' } })).status).toBe(201)
    expect(reviews[0]?.request['dryRun']).toBe(true)
    const path = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
    const { status } = await send('POST', path, configuration('Validating', 'wild', { sideEffects: 'Some' }))
    expect(status).toBe(422)
  })

  it('match conditions exclude requests from a webhook', async () => {
    const matchConditions = [
      { name: 'only-b', expression: "object.metadata.name == 'b' && request.operation == 'CREATE'" },
    ]
    await install('Validating', 'some', { matchConditions })
    expect((await send('POST', maps, { metadata: { name: 'a' } })).status).toBe(201)
    expect(reviews).toHaveLength(0)
    expect((await send('POST', maps, { metadata: { name: 'b' } })).status).toBe(201)
    expect(reviews).toHaveLength(1)
  })

  it('a match condition that fails to evaluate rejects or admits the request according to failurePolicy', async () => {
    const matchConditions = [{ name: 'broken', expression: 'object.nosuch.field == 1' }]
    await install('Validating', 'lenient', { matchConditions, failurePolicy: 'Ignore' })
    expect((await send('POST', maps, { metadata: { name: 'a' } })).status).toBe(201)
    await install('Validating', 'strict', { matchConditions })
    const { status, json } = await send('POST', maps, { metadata: { name: 'b' } })
    expect([status, json['message']]).toEqual([
      403,
      `configmaps "b" is forbidden: expression 'object.nosuch.field == 1' resulted in error: no such key: nosuch`,
    ])
    expect(reviews).toHaveLength(0)
  })

  it('a webhook with reinvocationPolicy IfNeeded is called again after later changes', async () => {
    const add = (key: string) => encode([{ op: 'add', path: `/data/${key}`, value: 'x' }])
    answer = (path, request) => {
      const data = (request['object'] as Json)['data'] as Json
      return path in data ? { allowed: true } : { allowed: true, patchType: 'JSONPatch', patch: add(path) }
    }
    await install('Mutating', 'first', { reinvocationPolicy: 'IfNeeded' })
    await install('Mutating', 'second')
    const { json } = await send('POST', maps, { metadata: { name: 'a' }, data: { given: 'x' } })
    expect(json['data']).toEqual({ given: 'x', first: 'x', second: 'x' })
    expect(reviews.map(({ path }) => path)).toEqual(['first', 'second', 'first'])
  })

  it('warnings of a webhook are returned to the client', async () => {
    answer = () => ({ allowed: true, warnings: ['mind the gap'] })
    await install('Validating', 'warn')
    expect((await send('POST', maps, { metadata: { name: 'a' } })).warnings).toBe('299 - "mind the gap"')
  })

  it('in-process hooks mutate and validate as webhooks do', async () => {
    server.cluster.admission.add({
      mutate: ({ object }) => (object === undefined ? undefined : { ...object, data: { hooked: 'yes' } }),
      validate: ({ name }) => (name === 'bad' ? 'we do not like it' : undefined),
    })
    expect((await send('POST', maps, { metadata: { name: 'good' } })).json['data']).toEqual({ hooked: 'yes' })
    const { status, json } = await send('POST', maps, { metadata: { name: 'bad' } })
    expect([status, json['message']]).toEqual([403, 'configmaps "bad" is forbidden: we do not like it'])
  })
})

describe('conversion webhooks', () => {
  const loose = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
  const group = 'convert.dev'

  async function define(): Promise<void> {
    const { status } = await send('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `things.${group}` },
      spec: {
        group,
        scope: 'Namespaced',
        names: { plural: 'things', kind: 'Thing' },
        versions: [
          { name: 'v2', served: true, storage: true, schema: loose },
          { name: 'v1', served: true, storage: false, schema: loose },
        ],
        conversion: {
          strategy: 'Webhook',
          webhook: { conversionReviewVersions: ['v1'], clientConfig: { url: `${url}/convert`, caBundle } },
        },
      },
    })
    expect(status).toBe(201)
  }

  /** The field `old` of v1 is the field `new` of v2. */
  const convert = (_path: string, request: Json): Json => ({
    result: { status: 'Success' },
    convertedObjects: (request['objects'] as Json[]).map((object) => {
      const spec = object['spec'] as Json
      const value = spec['old'] ?? spec['new']
      return {
        ...object,
        apiVersion: request['desiredAPIVersion'],
        spec: request['desiredAPIVersion'] === `${group}/v1` ? { old: value } : { new: value },
      }
    }),
  })

  it('objects are stored in one version and served in each', async () => {
    answer = convert
    await define()
    const path = (version: string): string => `/apis/${group}/${version}/namespaces/default/things`
    const created = await send('POST', path('v1'), {
      apiVersion: `${group}/v1`,
      kind: 'Thing',
      metadata: { name: 'a' },
      spec: { old: 'x' },
    })
    expect([created.status, created.json['spec']]).toEqual([201, { old: 'x' }])
    const fetchSpec = async (version: string): Promise<unknown> =>
      ((await (await server.fetch(`${path(version)}/a`)).json()) as Json)['spec']
    expect(await fetchSpec('v2')).toEqual({ new: 'x' })
    expect(await fetchSpec('v1')).toEqual({ old: 'x' })
    const list = (await (await server.fetch(path('v1'))).json()) as { items: Json[] }
    expect(list.items.map((item) => item['spec'])).toEqual([{ old: 'x' }])
  })

  it('a watch in another version delivers that version, in order', async () => {
    answer = convert
    await define()
    const path = `/apis/${group}/v2/namespaces/default/things`
    const response = await server.fetch(`/apis/${group}/v1/namespaces/default/things?watch=1`)
    for (const name of ['a', 'b', 'c'])
      await send('POST', path, { apiVersion: `${group}/v2`, kind: 'Thing', metadata: { name }, spec: { new: name } })
    const seen: unknown[] = []
    let rest = ''
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      const lines = (rest + Buffer.from(chunk).toString()).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) seen.push((JSON.parse(line) as { object: Json }).object['spec'])
      if (seen.length >= 3) break
    }
    expect(seen).toEqual([{ old: 'a' }, { old: 'b' }, { old: 'c' }])
  })

  it('a failed conversion is an error, and nothing is stored', async () => {
    answer = () => ({ result: { status: 'Failed', message: 'cannot' } })
    await define()
    const { status, json } = await send('POST', `/apis/${group}/v1/namespaces/default/things`, {
      apiVersion: `${group}/v1`,
      kind: 'Thing',
      metadata: { name: 'a' },
      spec: {},
    })
    expect(status).toBe(500)
    expect(json['message']).toContain('conversion webhook for convert.dev/v2, Kind=Thing failed: cannot')
  })

  const [path, thing] = [
    `/apis/${group}/v1/namespaces/default/things`,
    { apiVersion: `${group}/v1`, kind: 'Thing', metadata: { name: 'a' }, spec: { old: 'x' } },
  ]
  const change = (changes: Json, metadata: Json = {}) => {
    return (_path: string, request: Json): Json => {
      const { convertedObjects, ...rest } = convert(_path, request)
      const changed = (convertedObjects as Json[]).map((object) => ({
        ...object,
        ...changes,
        metadata: { ...(object['metadata'] as Json), ...metadata },
      }))
      return { ...rest, convertedObjects: changed }
    }
  }

  it.each<{ what: string; respond: typeof answer; why: string }>([
    { what: 'of another review', respond: (_path, request) => ({ ...convert(_path, request), uid: 'x' }), why: 'uid' },
    {
      what: 'of fewer objects',
      respond: () => ({ result: { status: 'Success' }, convertedObjects: [] }),
      why: 'got 0',
    },
    { what: 'without conversion', respond: change({ apiVersion: `${group}/v1` }), why: 'invalid groupVersion' },
    { what: 'of another kind', respond: change({ kind: 'Other' }), why: 'invalid kind' },
    { what: 'with another name', respond: change({}, { name: 'b' }), why: 'must have the same name' },
    { what: 'in another namespace', respond: change({}, { namespace: 'b' }), why: 'must have the same namespace' },
    { what: 'with another uid', respond: change({}, { uid: 'b' }), why: 'must have the same UID' },
  ])('a response $what is an error, and nothing is stored', async ({ respond, why }) => {
    answer = respond
    await define()
    const { status, json } = await send('POST', path, thing)
    expect([status, json['message']]).toEqual([500, expect.stringContaining(why)])
    const list = (await (await server.fetch(path.replace('v1', 'v2'))).json()) as { items: Json[] }
    expect(list.items).toEqual([])
  })

  it('changes labels and annotations of an object, and no other metadata', async () => {
    const given = { labels: { a: 'b' }, finalizers: ['x.dev/y'], creationTimestamp: '2001-01-01T00:00:00Z' }
    answer = change({}, given)
    await define()
    const { status, json } = await send('POST', path, thing)
    expect(status).toBe(201)
    const { labels, finalizers, creationTimestamp } = json['metadata'] as Json
    expect([labels, finalizers]).toEqual([{ a: 'b' }, undefined])
    expect(creationTimestamp).not.toBe(given.creationTimestamp)
  })
})
