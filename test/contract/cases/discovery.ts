/** Endpoints, discovery, OpenAPI, content negotiation (B3.1, B3.2). */
import { expect } from 'vitest'
import { answers, area, ok } from '../case.ts'
import type { Json } from '../client.ts'

const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }
const partial = { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' }
const partialList = { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io' }
const aggregated = (version: string): Record<string, string> => ({
  accept: `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList,application/json`,
})
const list = (json: Json, key: string): Json[] => json[key] as unknown as Json[]

export const discovery = [
  ...area('B3.1 health and version', {
    '/version contains major and minor': async (t) => {
      const version = await ok(t.client.request('GET', '/version'))
      expect(version['major']).toBe('1')
      expect(Number(version['minor'])).toBeGreaterThan(30)
    },
    '/healthz returns ok': async (t) => expect((await t.client.request('GET', '/healthz')).text).toBe('ok'),
    '/livez returns ok': async (t) => expect((await t.client.request('GET', '/livez')).text).toBe('ok'),
    '/readyz returns ok': async (t) => expect((await t.client.request('GET', '/readyz')).text).toBe('ok'),
  }),
  ...area('B3.1 legacy discovery', {
    '/api lists v1': async (t) => {
      const api = await ok(t.client.request('GET', '/api'))
      expect(api['kind']).toBe('APIVersions')
      expect(api['versions']).toEqual(['v1'])
    },
    '/apis lists groups with a preferred version': async (t) => {
      const groups = list(await ok(t.client.request('GET', '/apis')), 'groups')
      const apps = groups.find((group) => String(group['name']) === 'apps')
      expect(apps?.['preferredVersion']).toEqual({ groupVersion: 'apps/v1', version: 'v1' })
    },
    '/apis/<group> prefers the stable version of a custom group': async (t) => {
      const group = await ok(t.client.request('GET', `/apis/${t.group}`))
      expect(list(group, 'versions').map((one) => one['version'])).toEqual(['v1', 'v1beta1'])
      expect((group['preferredVersion'] as Json)['version']).toBe('v1')
    },
    '/api/v1 lists resources with verbs, short names and subresources': async (t) => {
      const resources = list(await ok(t.client.request('GET', '/api/v1')), 'resources')
      const find = (name: string): Json | undefined => resources.find((one) => String(one['name']) === name)
      expect(find('configmaps')).toMatchObject({
        kind: 'ConfigMap',
        namespaced: true,
        shortNames: ['cm'],
        singularName: 'configmap',
      })
      expect(find('configmaps')?.['verbs']).toEqual([
        'create',
        'delete',
        'deletecollection',
        'get',
        'list',
        'patch',
        'update',
        'watch',
      ])
      expect(find('namespaces/finalize')).toMatchObject({ kind: 'Namespace', verbs: ['update'] })
      expect(find('serviceaccounts/token')).toMatchObject({ kind: 'TokenRequest', group: 'authentication.k8s.io' })
    },
    '/apis/apps/v1 lists scale as autoscaling/v1 Scale': async (t) => {
      const resources = list(await ok(t.client.request('GET', '/apis/apps/v1')), 'resources')
      expect(resources.find((one) => String(one['name']) === 'deployments/scale')).toMatchObject({
        kind: 'Scale',
        group: 'autoscaling',
        version: 'v1',
      })
    },
    'a custom resource is listed with its names and subresources': async (t) => {
      const resources = list(await ok(t.client.request('GET', `/apis/${t.group}/v1`)), 'resources')
      expect(resources.map((one) => one['name'])).toEqual(['widgets', 'widgets/status', 'widgets/scale'])
      expect(resources[0]).toMatchObject({ singularName: 'widget', shortNames: ['wd'], categories: ['all'] })
    },
  }),
  ...area('B3.1 aggregated discovery', {
    '/api returns v2 with its content type': async (t) => {
      const reply = await t.client.request('GET', '/api', { headers: aggregated('v2') })
      expect(reply.headers.get('content-type')).toEqual([
        'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
      ])
      expect(reply.json['apiVersion']).toBe('apidiscovery.k8s.io/v2')
    },
    '/apis returns v2 with every group once': async (t) => {
      const items = list(await ok(t.client.request('GET', '/apis', { headers: aggregated('v2') })), 'items')
      const names = items.map((item) => (item['metadata'] as Json)['name'])
      expect(new Set(names).size).toBe(names.length)
      expect(names).toContain(t.group)
    },
    '/apis describes a custom resource': async (t) => {
      const items = list(await ok(t.client.request('GET', '/apis', { headers: aggregated('v2') })), 'items')
      const group = items.find((item) => String((item['metadata'] as Json)['name']) === t.group) as Json
      const version = list(group, 'versions')[0] as Json
      expect(version).toMatchObject({ version: 'v1', freshness: 'Current' })
      expect(list(version, 'resources')[0]).toMatchObject({
        resource: 'widgets',
        scope: 'Namespaced',
        singularResource: 'widget',
      })
    },
    'If-None-Match returns 304': async (t) => {
      const first = await t.client.request('GET', '/apis', { headers: aggregated('v2') })
      const etag = first.headers.get('etag')?.[0] ?? ''
      expect(etag).not.toBe('')
      const second = await t.client.request('GET', '/apis', { headers: { ...aggregated('v2'), 'if-none-match': etag } })
      expect(second.status).toBe(304)
    },
  }),
  ...area('B3.1 OpenAPI', {
    '/openapi/v3 indexes every group-version with a hash': async (t) => {
      const paths = (await ok(t.client.request('GET', '/openapi/v3')))['paths'] as Json
      expect(String((paths['api/v1'] as Json)['serverRelativeURL'])).toMatch(/^\/openapi\/v3\/api\/v1\?hash=/)
      expect(paths[`apis/${t.group}/v1`]).toBeDefined()
    },
    'the v3 document of a custom group has PATCH with dryRun and fieldValidation': async (t) => {
      const document = await ok(t.client.request('GET', `/openapi/v3/apis/${t.group}/v1`))
      const path = (document['paths'] as Json)[`/apis/${t.group}/v1/namespaces/{namespace}/widgets/{name}`] as Json
      const patch = path['patch'] as Json
      expect(patch['x-kubernetes-group-version-kind']).toEqual({ group: t.group, kind: 'Widget', version: 'v1' })
      const parameters = JSON.stringify(patch['parameters'])
      expect(parameters).toContain('fieldValidation')
      expect(parameters).toContain('dryRun')
    },
    '/openapi/v2 returns protobuf to kubectl up to 1.28': async (t) => {
      const accept = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'
      const reply = await t.client.request('GET', '/openapi/v2', { headers: { accept } })
      expect(reply.status).toBe(200)
      expect(reply.text.length).toBeGreaterThan(18)
    },
  }),
  ...area('B3.2 representations', {
    'Table has column definitions and one row per object': async (t) => {
      await ok(t.client.request('POST', t.maps, { body: t.map('a', { data: { x: '1' } }) }), 201)
      const body = await ok(t.client.request('GET', t.maps, { headers: table, query: { labelSelector: '!none' } }))
      expect(body['kind']).toBe('Table')
      expect(list(body, 'columnDefinitions').map((column) => column['name'])).toEqual(['Name', 'Data', 'Age'])
      const row = list(body, 'rows').find((one) => String((one['cells'] as unknown as string[])[0]) === 'a') as Json
      expect((row['cells'] as unknown as unknown[]).slice(0, 2)).toEqual(['a', 1])
      expect(row['object']).toMatchObject({ kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1' })
    },
    'Table includeObject=None omits the object': async (t) => {
      await ok(t.client.request('POST', t.maps, { body: t.map('a') }), 201)
      const body = await ok(
        t.client.request('GET', `${t.maps}/a`, { headers: table, query: { includeObject: 'None' } }),
      )
      expect((list(body, 'rows')[0] as Json)['object']).toBeNull()
    },
    'Table includeObject=Object includes the object': async (t) => {
      await ok(t.client.request('POST', t.maps, { body: t.map('a') }), 201)
      const body = await ok(
        t.client.request('GET', `${t.maps}/a`, { headers: table, query: { includeObject: 'Object' } }),
      )
      expect((list(body, 'rows')[0] as Json)['object']).toMatchObject({ kind: 'ConfigMap', apiVersion: 'v1' })
    },
    'printer columns of a custom resource have their types': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget('a', { spec: { size: 3 } }) }), 201)
      const body = await ok(t.client.request('GET', t.widgets, { headers: table }))
      expect(
        list(body, 'columnDefinitions').map((column) => [column['name'], column['type'], column['priority']]),
      ).toEqual([
        ['Name', 'string', 0],
        ['Size', 'integer', 0],
        ['Color', 'string', 1],
        ['Age', 'date', 0],
      ])
      expect(((list(body, 'rows')[0] as Json)['cells'] as unknown as unknown[]).slice(0, 3)).toEqual(['a', 3, 'red'])
    },
    'a NotFound is a Status, never a Table': async (t) => {
      const reply = await t.client.request('GET', `${t.maps}/none`, { headers: table })
      expect(reply.json['kind']).toBe('Status')
    },
    'PartialObjectMetadata shows metadata only': async (t) => {
      await ok(t.client.request('POST', t.maps, { body: t.map('a', { data: { x: '1' } }) }), 201)
      const body = await ok(t.client.request('GET', `${t.maps}/a`, { headers: partial }))
      expect(Object.keys(body).sort()).toEqual(['apiVersion', 'kind', 'metadata'])
      expect(body['kind']).toBe('PartialObjectMetadata')
    },
    'PartialObjectMetadataList of a list': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget('a') }), 201)
      const body = await ok(t.client.request('GET', t.widgets, { headers: partialList }))
      expect(body['kind']).toBe('PartialObjectMetadataList')
      expect(list(body, 'items')[0]).not.toHaveProperty('spec')
    },
    'PartialObjectMetadata on a patch': async (t) => {
      await ok(t.client.request('POST', t.maps, { body: t.map('a') }), 201)
      const body = await ok(
        t.client.request('PATCH', `${t.maps}/a`, {
          headers: partial,
          type: 'application/merge-patch+json',
          body: { data: { x: '1' } },
        }),
      )
      expect(body['kind']).toBe('PartialObjectMetadata')
    },
    'YAML is returned when requested': async (t) => {
      await ok(t.client.request('POST', t.maps, { body: t.map('a') }), 201)
      const reply = await t.client.request('GET', `${t.maps}/a`, { headers: { accept: 'application/yaml' } })
      expect(reply.headers.get('content-type')).toEqual(['application/yaml'])
      expect(reply.text).toMatch(/^apiVersion: v1\n/)
    },
    'a YAML body is accepted': async (t) => {
      const body = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: from-yaml\ndata:\n  k: "1"\n`
      const created = await ok(t.client.request('POST', t.maps, { body, type: 'application/yaml' }), 201)
      expect(created['data']).toEqual({ k: '1' })
    },
    'no Content-Type means JSON': async (t) => {
      await ok(t.client.request('POST', t.maps, { body: Buffer.from(JSON.stringify(t.map('n'))), type: '' }), 201)
    },
    'items of a typed list have no kind': async (t) => {
      await ok(t.client.request('POST', t.maps, { body: t.map('a') }), 201)
      expect(list(await ok(t.client.request('GET', t.maps)), 'items')[0]).not.toHaveProperty('kind')
    },
    'items of a custom list have their kind': async (t) => {
      await ok(t.client.request('POST', t.widgets, { body: t.widget('a') }), 201)
      expect(list(await ok(t.client.request('GET', t.widgets)), 'items')[0]).toMatchObject({ kind: 'Widget' })
    },
    'a deprecated version warns': async (t) => {
      const reply = await t.client.request('GET', `/apis/${t.group}/v1beta1/namespaces/${t.ns}/widgets`)
      expect(reply.warnings).toEqual([`299 - "${t.group}/v1beta1 Widget is deprecated; use ${t.group}/v1 Widget"`])
    },
  }),
  ...answers('B3.1, B3.2 refusals', {
    'an unknown resource of a known group': [
      'GET',
      () => '/api/v1/nosuch',
      () => ({}),
      404,
      'the server could not find the requested resource',
    ],
    'an unknown group is plain text': [
      'GET',
      () => '/apis/nosuch.test/v1/things',
      () => ({}),
      404,
      '404 page not found\n',
    ],
    'an unknown version of a built-in group': [
      'GET',
      () => '/apis/apps/v9/deployments',
      () => ({}),
      404,
      'the server could not find the requested resource',
    ],
    'an unknown path is plain text': ['GET', () => '/nosuch', () => ({}), 404, '404 page not found\n'],
    'a version that is not served': [
      'GET',
      (t) => `/apis/${t.group}/v1alpha1/namespaces/${t.ns}/widgets`,
      () => ({}),
      404,
      '404 page not found\n',
    ],
    'POST to an object': [
      'POST',
      (t) => `${t.maps}/a`,
      (t) => ({ body: t.map('a') }),
      405,
      'the server does not allow this method on the requested resource',
    ],
    'PUT to a collection': [
      'PUT',
      (t) => t.maps,
      (t) => ({ body: t.map('a') }),
      405,
      'the server does not allow this method on the requested resource',
    ],
    'an Accept that cannot be served': [
      'GET',
      (t) => `${t.maps}/a`,
      () => ({ headers: { accept: 'text/xml' } }),
      406,
      '406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf',
    ],
    'an Accept that cannot be served on a list': [
      'GET',
      (t) => t.maps,
      () => ({ headers: { accept: 'text/xml' } }),
      406,
      '406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch',
    ],
    'a body of an unknown type': [
      'POST',
      (t) => t.maps,
      () => ({ type: 'text/xml', body: '<x/>' }),
      415,
      'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf',
    ],
    'PartialObjectMetadata of a list': [
      'GET',
      (t) => t.maps,
      () => ({ headers: partial }),
      406,
      'you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)',
    ],
    'a wrong includeObject': [
      'GET',
      (t) => t.maps,
      () => ({ headers: table, query: { includeObject: 'x' } }),
      400,
      `Unable to convert to Table as requested: includeObject: Invalid value: "x": must be 'Metadata', 'Object', 'None', or empty`,
    ],
    'an unknown subresource': [
      'GET',
      (t) => `${t.maps}/a/nosuch`,
      () => ({}),
      404,
      'the server could not find the requested resource',
    ],
  }),
]
