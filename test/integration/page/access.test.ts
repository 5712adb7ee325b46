/** Who gets what: Host and Origin, methods, headers, tokens and the rights of their holders. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HistoryPage, HostPage, PlanPage, RecordsPage } from '@seamark/dashboard'
import { kind, Namespace, type Obj } from '@seamark/kube'
import { createAuthority } from '@seamark/kube/certificates'
import { DashboardConfig, DNSEndpoint, DNSLoadBalancer } from '@seamark/operator'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type PageEnvironment, POLL, readState, request, startPage, StreamReader, ZONE } from './page-environment.ts'

const API = [
  '/api/v1/state',
  '/api/v1/plan',
  '/api/v1/records',
  '/api/v1/history',
  '/api/v1/stream',
  '/api/v1/hosts/a.demo.test',
]
const SHELL = ['/', '/hosts/shop.demo.test', '/plan', '/clusters', '/zones/demo.test', '/history']

describe('on loopback', () => {
  let page: PageEnvironment
  beforeAll(async () => {
    page = await startPage()
  })
  afterAll(async () => page[Symbol.asyncDispose]())

  it.each(['evil.example', 'localhost.evil.example', '203.0.113.7', 'seamark.svc:8182', '127.0.0.1:1:2'])(
    'another Host is refused: %j',
    async (host) => {
      for (const path of ['/', '/page.js', ...API])
        expect((await request(page.url, path, { headers: { host } })).status, path).toBe(421)
    },
  )

  it.each(['localhost', 'localhost:9000', '127.0.0.1:1234', '[::1]:8182'])(
    'its own Host is served: %j',
    async (host) => {
      expect((await request(page.url, '/api/v1/state', { headers: { host } })).status).toBe(200)
    },
  )

  it('a script of another origin is refused, one of this origin is not', async () => {
    const { host } = new URL(page.url)
    const status = async (origin: string) =>
      (await request(page.url, '/api/v1/state', { headers: { host, origin } })).status
    expect(await status('http://evil.example')).toBe(403)
    expect(await status(`https://${host}`)).toBe(403)
    expect(await status('null')).toBe(403)
    expect(await status(`http://${host}`)).toBe(200)
  })

  it.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'])('%s is not allowed', async (method) => {
    for (const path of ['/', ...API]) {
      const { status, headers } = await request(page.url, path, { method })
      expect(status, path).toBe(405)
      expect(headers.allow).toBe('GET, HEAD')
    }
  })

  it('every answer has the content security policy, and none sets a cookie', async () => {
    for (const path of [
      ...SHELL,
      '/page.js',
      '/page.css',
      '/icon.svg',
      '/nothing',
      '/api/v1/state',
      '/api/v1/nothing',
    ]) {
      const { headers } = await request(page.url, path, { method: 'HEAD' })
      expect(headers['content-security-policy'], path).toMatch(
        /^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'/,
      )
      expect(headers['x-content-type-options']).toBe('nosniff')
      expect(headers['set-cookie']).toBeUndefined()
      expect(headers['access-control-allow-origin']).toBeUndefined()
    }
  })

  it('the shell is the same for every view, and is not sent again', async () => {
    const [first, ...others] = await Promise.all(SHELL.map(async (path) => request(page.url, path)))
    expect(first?.status).toBe(200)
    for (const other of others) expect(other.text).toBe(first?.text)
    const etag = first?.headers.etag ?? ''
    expect((await request(page.url, '/', { headers: { 'if-none-match': etag } })).status).toBe(304)
  })

  it.each([
    '/api/v1/hosts/unknown.demo.test',
    '/api/v1/hosts/%3Cscript%3E',
    '/api/v2/state',
    '/api/v1/state/x',
    '/api',
    '//evil',
    '/..%2f',
  ])('there is no %s', async (path) => {
    const { status } = await request(page.url, path)
    expect(status).toBe(404)
  })

  it('a path that is no UTF-8, and one that is too long, get a refusal', async () => {
    expect((await request(page.url, '/api/v1/hosts/%ff')).status).toBe(400)
    expect((await request(page.url, `/${'a'.repeat(9_000)}`)).status).toBe(414)
  })
})

it('elsewhere than on loopback the page is not served without TLS', () => {
  const faults = (config: object) =>
    DashboardConfig.safeParse(config).error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
  for (const address of [':8182', '0.0.0.0:8182', '[::]:8182', '192.0.2.1:8182', 'seamark:8182'])
    expect(faults({ address })).toEqual([expect.stringContaining('over TLS only')])
  for (const address of ['0', '', '127.0.0.1:8182', '[::1]:0', 'localhost:1'])
    expect(faults({ address })).toBeUndefined()
  expect(faults({ address: ':8182', certFile: 'a', keyFile: 'b' })).toBeUndefined()
  expect(faults({ certFile: 'a' })).toEqual([expect.stringContaining('belong together')])
})

const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1' }
const Role = kind<Obj & { rules: object[] }>({ ...RBAC, kind: 'Role', plural: 'roles', namespaced: true })
const RoleBinding = kind<Obj & { roleRef: object; subjects: object[] }>({
  ...RBAC,
  kind: 'RoleBinding',
  plural: 'rolebindings',
  namespaced: true,
})

describe('with a token', () => {
  let page: PageEnvironment
  let folder: string
  let ca: string
  const tokens = new Map<string, string>()
  const as = (user: string) => ({ ca, headers: { authorization: `Bearer ${tokens.get(user) ?? user}` } })

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'seamark-page-'))
    const authority = await createAuthority({ commonName: 'test' })
    const leaf = await authority.issue({ commonName: 'page', ipAddresses: ['127.0.0.1'], usages: 'server' })
    ca = authority.certPem
    const [certFile, keyFile] = [join(folder, 'tls.crt'), join(folder, 'tls.key')]
    await writeFile(certFile, leaf.certPem)
    await writeFile(keyFile, leaf.keyPem)
    page = await startPage({ requireToken: true, certFile, keyFile })
    const { client, server } = page
    for (const name of ['red', 'blue']) {
      await client.create(Namespace, { metadata: { name } })
      await client.create(DNSEndpoint, {
        metadata: { namespace: name, name: 'web' },
        spec: { endpoints: [{ dnsName: `${name}.${ZONE}`, recordType: 'A', targets: ['203.0.113.1'], recordTTL: 60 }] },
      })
      await client.create(DNSLoadBalancer, {
        metadata: { namespace: name, name: 'lb' },
        spec: { DNSName: `lb-${name}.${ZONE}` },
      })
    }
    for (const user of ['admin', 'ann', 'nobody']) {
      const groups = user === 'admin' ? ['system:masters'] : []
      tokens.set(user, /token: "?([^"\s]+)/.exec(server.userKubeconfig(user, groups))?.[1] ?? '')
    }
    await client.create(Role, {
      metadata: { namespace: 'red', name: 'reader' },
      rules: [{ apiGroups: ['externaldns.k8s.io'], resources: ['dnsendpoints'], verbs: ['list'] }],
    })
    await client.create(RoleBinding, {
      metadata: { namespace: 'red', name: 'ann' },
      roleRef: { apiGroup: RBAC.group, kind: 'Role', name: 'reader' },
      subjects: [{ apiGroup: RBAC.group, kind: 'User', name: 'ann' }],
    })
    const names = async () => (await readState(page.url, as('admin'))).hosts.map(({ name }) => name)
    const wanted = ['blue', 'lb-blue', 'lb-red', 'red'].map((name) => `${name}.${ZONE}`)
    await vi.waitFor(async () => expect(await names()).toEqual(wanted), POLL)
  }, 60_000)
  afterAll(async () => {
    await page[Symbol.asyncDispose]()
    await rm(folder, { recursive: true })
  })

  it('the URL is one of TLS', () => {
    expect(page.url).toMatch(/^https:/)
  })

  it('the shell needs none, and the API answers 401 without one, with another scheme and with one that is not known', async () => {
    for (const path of [...SHELL, '/page.js', '/page.css', '/icon.svg'])
      expect((await request(page.url, path, { ca })).status, path).toBe(200)
    for (const authorization of [
      undefined,
      '',
      'Bearer',
      'Bearer ',
      'Basic YTpi',
      `Bearer ${'x'.repeat(20_000)}`,
      'Bearer wrong',
    ])
      for (const path of API) {
        const headers = authorization === undefined ? {} : { authorization }
        const { status, headers: answered, text } = await request(page.url, path, { ca, headers })
        expect([401, 431], path).toContain(status)
        if (status === 401) expect(answered['www-authenticate']).toBe('Bearer')
        expect(text).not.toContain(ZONE)
      }
  })

  it('a user gets the hosts of the namespaces and kinds that it may list, and nothing of the others', async () => {
    const state = await readState(page.url, as('ann'))
    expect(state.hosts.map(({ name }) => name)).toEqual([`red.${ZONE}`])
    expect(state.zones).toEqual([])
    expect(JSON.stringify(state)).not.toMatch(/blue|lb-red/)
    expect((await readState(page.url, as('nobody'))).hosts).toEqual([])
    const get = async (path: string) => request(page.url, path, as('ann'))
    expect((await get(`/api/v1/hosts/red.${ZONE}`)).status).toBe(200)
    for (const name of ['blue', 'lb-red', 'lb-blue'])
      for (const path of [`/api/v1/hosts/${name}.${ZONE}`, `/api/v1/hosts/${name}.${ZONE}/route`])
        expect((await get(path)).status).toBe(404)
    const page1 = JSON.parse((await get(`/api/v1/hosts/red.${ZONE}`)).text) as HostPage
    // It may list, and not get.
    expect(page1.objects.map(({ kind: name, yaml, hidden }) => [name, yaml, hidden])).toEqual([
      ['DNSEndpoint', undefined, 'you may not get dnsendpoints.externaldns.k8s.io in red'],
    ])
    const { zones, held } = JSON.parse((await get('/api/v1/plan')).text) as PlanPage
    expect([zones, held]).toEqual([[], []])
    expect((JSON.parse((await get('/api/v1/records')).text) as RecordsPage).records).toEqual([])
    expect((await get('/api/v1/history')).text).not.toMatch(/blue/)
    expect((JSON.parse((await get('/api/v1/history')).text) as HistoryPage).kind).toBe('History')
  })

  it('one who may read everything gets everything, as the manager reads it', async () => {
    const { text } = await request(page.url, `/api/v1/hosts/blue.${ZONE}`, as('admin'))
    const { objects } = JSON.parse(text) as HostPage
    expect(objects[0]?.yaml).toContain('dnsName: blue.demo.test')
    expect(objects[0]?.yaml).not.toContain('managedFields')
    const { records } = JSON.parse(
      (await request(page.url, '/api/v1/records?search=blue.', as('admin'))).text,
    ) as RecordsPage
    expect(records).toMatchObject([
      { name: `blue.${ZONE}`, type: 'A', ownership: 'ours', source: 'DNSEndpoint blue/web', host: `blue.${ZONE}` },
    ])
  })

  it('the stream of a user has what it may see, and names nothing else', async () => {
    const [ann, admin] = await Promise.all(
      ['ann', 'admin'].map(async (user) => StreamReader.open(page.url, undefined, as(user))),
    )
    if (ann === undefined || admin === undefined) throw new Error('no reader')
    await expect.poll(() => [ann.state?.hosts.length, admin.state?.hosts.length], POLL).toEqual([1, 4])
    for (const name of ['red', 'blue'])
      await page.client.patch(DNSEndpoint, `${name}/web`, 'merge', {
        spec: { endpoints: [{ dnsName: `${name}.${ZONE}`, recordType: 'A', targets: ['203.0.113.2'], recordTTL: 60 }] },
      })
    const answer = (reader: StreamReader, name: string) =>
      reader.state?.hosts.find((host) => host.name === `${name}.${ZONE}`)?.answers.map(({ address }) => address)
    await expect.poll(() => answer(admin, 'blue'), POLL).toEqual(['203.0.113.2'])
    await expect.poll(() => answer(ann, 'red'), POLL).toEqual(['203.0.113.2'])
    expect(JSON.stringify(ann.events)).not.toMatch(/blue/)
    for (const reader of [ann, admin]) reader.close()
  })
})
