/** Invalid requests are answered with a Status, and the server keeps running. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createApiServer } from '../index.ts'

const hostile = fc.constantFrom(
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  '',
  '\u0000',
  '../..',
  '%2e%2e',
  '%',
  '%zz',
  '😀',
  'a'.repeat(300),
  '-1',
  'NaN',
  '1e999',
  'null',
)
const segment = fc.oneof(
  hostile,
  fc.string({ maxLength: 12 }),
  fc.constantFrom(
    'default',
    'a',
    'v1',
    'configmaps',
    'namespaces',
    'services',
    'status',
    'scale',
    'apps',
    'deployments',
    'watch',
  ),
)

const path = fc.oneof(
  fc.array(segment, { maxLength: 7 }).map((segments) => `/${segments.map((one) => encodeURIComponent(one)).join('/')}`),
  fc.array(segment, { maxLength: 5 }).map((segments) => `/api/v1/${segments.join('/')}`),
  segment.map((name) => `/api/v1/namespaces/default/configmaps/${encodeURIComponent(name)}`),
  segment.map((name) => `/apis/apps/v1/namespaces/default/deployments/${encodeURIComponent(name)}/scale`),
  fc.constantFrom(
    '/api/v1/namespaces/default/configmaps',
    '/api/v1/namespaces',
    '/api/v1/namespaces/default/services',
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
    '/openapi/v3',
    '/apis',
  ),
)

const parameter = fc.tuple(
  fc.constantFrom(
    'labelSelector',
    'fieldSelector',
    'limit',
    'continue',
    'resourceVersion',
    'resourceVersionMatch',
    'dryRun',
    'fieldManager',
    'fieldValidation',
    'force',
    'timeoutSeconds',
    'includeObject',
    'propagationPolicy',
  ),
  fc.oneof(segment, fc.constantFrom('a in (', '!', 'a=b,', '((', 'metadata.name=\\', '(a+)+$', 'All', 'Strict')),
)

const json = fc.oneof(
  fc.json(),
  fc
    .object({
      key: segment,
      maxDepth: 4,
      values: [fc.string(), fc.integer(), fc.constant(null), fc.boolean(), fc.double(), hostile],
    })
    .map((value) => JSON.stringify(value)),
  fc
    .tuple(segment, fc.jsonValue())
    .map(([name, data]) =>
      JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels: data, finalizers: data }, data }),
    ),
  fc.jsonValue().map((spec) => JSON.stringify({ metadata: { name: 'x' }, spec })),
  fc.jsonValue().map((schema) =>
    JSON.stringify({
      metadata: { name: 'xs.x.dev' },
      spec: {
        group: 'x.dev',
        scope: 'Namespaced',
        names: { plural: 'xs', kind: 'X' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
      },
    }),
  ),
  fc.array(fc.record({ op: segment, path: segment, value: fc.jsonValue() })).map((patch) => JSON.stringify(patch)),
  fc.string(),
  fc.constant('['.repeat(5000)),
  fc.constant('{"__proto__":{"polluted":true},"metadata":{"__proto__":{"polluted":true},"name":"p"}}'),
)

const request = fc.record({
  method: fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE'),
  path,
  query: fc.array(parameter, { maxLength: 3 }),
  type: fc.constantFrom(
    'application/json',
    'application/yaml',
    'application/vnd.kubernetes.protobuf',
    'application/merge-patch+json',
    'application/json-patch+json',
    'application/strategic-merge-patch+json',
    'application/apply-patch+yaml',
    'text/plain',
    '',
    ';;;',
  ),
  accept: fc.oneof(
    fc.constantFrom(
      'application/json',
      'application/yaml',
      '*/*',
      'application/json;as=Table;v=v1;g=meta.k8s.io',
      'text/xml',
      ';',
      'application/json;q=x',
    ),
    fc.string({ maxLength: 20 }),
  ),
  authorization: fc.constantFrom(undefined, 'Bearer x', 'Bearer a.b.c', 'Basic xx', 'Bearer'),
  body: json,
})

describe('bad requests', () => {
  it('are answered with a Status, and the process keeps running', { timeout: 120_000 }, async () => {
    const failures: unknown[] = []
    const server = createApiServer({ onError: (error) => failures.push(error) })
    await fc.assert(
      fc.asyncProperty(request, async ({ method, path, query, type, accept, authorization, body }) => {
        const parameters = new URLSearchParams(query)
        const response = await server.handle({
          method,
          path,
          query: parameters,
          headers: { 'content-type': type, accept, authorization },
          body: Buffer.from(body),
        })
        expect(response.status).toBeGreaterThanOrEqual(200)
        expect(response.status).toBeLessThan(600)
        if (response.kind === 'stream')
          response.start({ write: () => undefined, bufferedBytes: 0, end: () => undefined, abort: () => undefined })()
        if (
          response.kind === 'whole' &&
          response.status >= 400 &&
          response.headers['content-type'] === 'application/json'
        ) {
          const status = JSON.parse(Buffer.concat(response.body).toString()) as { kind: string; code: number }
          expect(status).toMatchObject({ kind: 'Status', code: response.status })
        }
      }),
      { numRuns: Number(process.env['BAD_REQUESTS'] ?? 10_000) },
    )
    expect(failures).toEqual([])
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
    expect((await server.fetch('/api/v1/namespaces/default')).status).toBe(200)
    await server.close()
  })
})
