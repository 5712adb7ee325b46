/** Scenarios of the gateway: objects are written to an API server, requests are sent to the data plane. */
import { deepEqual, equal, match, notEqual } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Event, Ingress, Namespace, Secret, Service } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import { Gateway, GatewayClass, HTTPRoute } from '@seamark/kube/gateway-api'
import type { Kind, Obj } from '@seamark/kube/object'
import { parseAllDocuments } from 'yaml'
import { checkAnswers } from './answers.ts'
import { BUSY_PORT_SCENARIO, PORT_SCENARIO } from './port-scenarios.ts'
import type { TestEnvironment } from './test-environment.ts'

export interface Scenario {
  readonly name: string
  readonly run: (environment: TestEnvironment) => Promise<void>
}

const route = (service: string, extra: object = {}) => ({ services: [{ name: service, port: 80 }], ...extra })

async function proxy(
  environment: TestEnvironment,
  namespace: string,
  name: string,
  spec: HTTPProxy['spec'],
): Promise<void> {
  await environment.client.apply(HTTPProxy, { metadata: { namespace, name }, ...(spec !== undefined && { spec }) })
}

async function statusOf(
  environment: TestEnvironment,
  key: string,
  currentStatus: string,
): Promise<NonNullable<HTTPProxy['status']>> {
  let status: HTTPProxy['status']
  await environment.eventually(async () => {
    ;({ status } = await environment.client.get(HTTPProxy, key))
    equal(status?.currentStatus, currentStatus)
  })
  return status ?? {}
}

const EXAMPLES = join(import.meta.dirname, '../../../examples/gateway')
const KINDS: Readonly<Record<string, Kind>> = {
  Namespace,
  Service,
  HTTPProxy,
  Ingress,
  GatewayClass,
  Gateway,
  HTTPRoute,
}

async function applyExample(environment: TestEnvironment, file: string): Promise<void> {
  for (const document of parseAllDocuments(readFileSync(join(EXAMPLES, file), 'utf8'))) {
    const object = document.toJS() as Obj
    const kind = KINDS[object.kind ?? '']
    if (kind === undefined) throw new Error(`the example contains a ${object.kind}`)
    await environment.client.apply(kind, object)
  }
}

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'the example, applied as it is, serves both teams',
    async run(environment) {
      await applyExample(environment, 'shop.yaml')
      const [first, second] = environment.backends
      await environment.endpoints('shop', 'web', [first])
      await environment.endpoints('shop', 'api', [second])
      await environment.expectStatus({ host: 'admin.example.test' }, 200)
      const api = await environment.expectStatus({ host: 'shop.example.test', path: '/api/users' }, 200)
      deepEqual([api.seen?.backend, api.seen?.path], ['pod-2', '/users'])
      equal((await environment.ask({ host: 'shop.example.test', path: '/cart' })).seen?.backend, 'pod-1')
      const moved = await environment.ask({ host: 'shop.example.test', path: '/api/old/x' })
      deepEqual([moved.status, moved.headers.location], [301, 'http://shop.example.test/api'])
    },
  },
  { name: 'the table of answers', run: checkAnswers },
  {
    name: 'the example of the Gateway API, applied as it is, is accepted and divides requests',
    async run(environment) {
      await applyExample(environment, 'gateway-api.yaml')
      const [first, second] = environment.backends
      await environment.endpoints('blog', 'stable', [first])
      await environment.endpoints('blog', 'next', [second])
      await environment.expectStatus({ host: 'blog.example.test' }, 200)
      const tried = await environment.ask({ host: 'blog.example.test', headers: { 'x-try-next': 'yes' } })
      equal(tried.seen?.backend, 'pod-2')
      await environment.eventually(async () => {
        const { status } = await environment.client.get(HTTPRoute, 'blog/blog')
        deepEqual(
          status?.parents?.[0]?.conditions?.map(({ type, status: value }) => `${type}=${value}`),
          ['Accepted=True', 'ResolvedRefs=True'],
        )
      })
    },
  },
  {
    name: 'an Ingress, an HTTPProxy and an HTTPRoute lead to their Services, and have addresses',
    async run(environment) {
      const namespace = await environment.namespace()
      await environment.threeServices(namespace)
      await environment.client.create(Ingress, {
        metadata: { namespace, name: 'web' },
        spec: {
          rules: [
            {
              host: 'ingress.example.test',
              http: {
                paths: [
                  { path: '/a', pathType: 'Prefix', backend: { service: { name: 'one', port: { number: 80 } } } },
                ],
              },
            },
          ],
        },
      })
      await proxy(environment, namespace, 'web', {
        virtualhost: { fqdn: 'proxy.example.test' },
        routes: [route('two')],
      })
      await environment.client.apply(GatewayClass, {
        metadata: { name: 'seamark' },
        spec: { controllerName: 'seamark.io/gateway-controller' },
      })
      await environment.client.create(Gateway, {
        metadata: { namespace, name: 'web' },
        spec: { gatewayClassName: 'seamark', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
      })
      await environment.client.create(HTTPRoute, {
        metadata: { namespace, name: 'web' },
        spec: {
          parentRefs: [{ name: 'web' }],
          hostnames: ['route.example.test'],
          rules: [{ backendRefs: [{ name: 'three', port: 80 }] }],
        },
      })
      const ingress = await environment.expectStatus({ host: 'ingress.example.test', path: '/a/b' }, 200)
      equal(ingress.seen?.backend, 'pod-1')
      equal(ingress.seen?.path, '/a/b')
      equal(ingress.seen?.headers['x-forwarded-proto'], 'http')
      equal((await environment.ask({ host: 'ingress.example.test', path: '/ab' })).status, 404)
      equal((await environment.expectStatus({ host: 'proxy.example.test' }, 200)).seen?.backend, 'pod-2')
      equal((await environment.expectStatus({ host: 'route.example.test' }, 200)).seen?.backend, 'pod-3')

      const addresses = [{ ip: '192.0.2.10' }, { hostname: 'lb.example.test' }]
      await environment.eventually(async () => {
        const { status } = await environment.client.get(Ingress, `${namespace}/web`)
        deepEqual(status?.loadBalancer?.ingress, addresses)
      })
      const { conditions, loadBalancer } = await statusOf(environment, `${namespace}/web`, 'valid')
      deepEqual(loadBalancer?.ingress, addresses)
      equal(conditions?.[0]?.reason, 'Valid')
      await environment.eventually(async () => {
        const { status } = await environment.client.get(Gateway, `${namespace}/web`)
        deepEqual(
          status?.conditions?.map(({ type, status: is }) => `${type}=${is}`),
          ['Accepted=True', 'Programmed=True'],
        )
        equal(status?.listeners?.[0]?.attachedRoutes, 1)
        deepEqual(
          status?.addresses?.map(({ value }) => value),
          ['192.0.2.10', 'lb.example.test'],
        )
        const { status: routeStatus } = await environment.client.get(HTTPRoute, `${namespace}/web`)
        deepEqual(
          routeStatus?.parents?.[0]?.conditions?.map(({ type, status: is }) => `${type}=${is}`),
          ['Accepted=True', 'ResolvedRefs=True'],
        )
      })
    },
  },
  {
    name: 'endpoints that come and go are followed without a failed request',
    async run(environment) {
      const namespace = await environment.namespace()
      const [first, second] = environment.backends
      await environment.service(namespace, 'web', [first])
      await proxy(environment, namespace, 'web', {
        virtualhost: { fqdn: 'moving.example.test' },
        routes: [route('web')],
      })
      await environment.expectStatus({ host: 'moving.example.test' }, 200)
      const progress = { isMoved: false }
      const statuses = new Set<number>()
      const asking = (async () => {
        while (!progress.isMoved) statuses.add((await environment.ask({ host: 'moving.example.test' })).status)
      })()
      await environment.endpoints(namespace, 'web', [first, second])
      await environment.endpoints(namespace, 'web', [second])
      await environment.eventually(async () => {
        equal((await environment.ask({ host: 'moving.example.test' })).seen?.backend, 'pod-2')
        equal((await environment.ask({ host: 'moving.example.test' })).seen?.backend, 'pod-2')
      })
      progress.isMoved = true
      await asking
      deepEqual([...statuses], [200])
    },
  },
  {
    name: 'TLS is terminated with the certificate of the host; other names and hosts are refused',
    async run(environment) {
      const namespace = await environment.namespace()
      await environment.service(namespace, 'web')
      await environment.certificate(namespace, 'web', ['tls.example.test'])
      await proxy(environment, namespace, 'web', {
        virtualhost: { fqdn: 'tls.example.test', tls: { secretName: 'web' } },
        routes: [route('web')],
      })
      await environment.eventually(async () => {
        equal((await environment.ask({ host: 'tls.example.test', isTls: true })).status, 200)
      })
      const redirect = await environment.ask({ host: 'tls.example.test:8080', path: '/x?y=1' })
      equal(redirect.status, 301)
      equal(redirect.headers.location, 'https://tls.example.test:8080/x?y=1')
      equal((await environment.askHttp2('tls.example.test', '/h2')).status, 200)
      const misdirected = await environment.ask({
        host: 'proxy.example.test',
        isTls: true,
        serverName: 'tls.example.test',
      })
      equal(misdirected.status, 421)
      await environment.connectTls('unknown.example.test').then(
        () => Promise.reject(new Error('an unknown name got a certificate')),
        () => undefined,
      )
    },
  },
  {
    name: 'a rotated certificate is used at once and established connections stay',
    async run(environment) {
      const namespace = await environment.namespace()
      const host = 'rotated.example.test'
      await environment.service(namespace, 'web')
      await environment.certificate(namespace, 'web', [host])
      await proxy(environment, namespace, 'web', {
        virtualhost: { fqdn: host, tls: { secretName: 'web' } },
        routes: [route('web')],
      })
      await environment.eventually(async () => {
        equal((await environment.ask({ host, isTls: true })).status, 200)
      })
      const before = await environment.connectTls(host)
      const serial = before.getPeerCertificate().serialNumber
      await environment.certificate(namespace, 'web', [host])
      await environment.eventually(async () => {
        const socket = await environment.connectTls(host)
        const now = socket.getPeerCertificate().serialNumber
        socket.destroy()
        notEqual(now, serial)
      })
      const answered = await new Promise<string>((resolve, reject) => {
        before.on('data', (chunk: Buffer) => resolve(chunk.toString()))
        before.on('error', reject)
        before.on('close', () => reject(new Error('the connection was closed')))
        before.write(`GET / HTTP/1.1\r\nhost: ${host}\r\n\r\n`)
      })
      match(answered, /^HTTP\/1\.1 200/)
      before.removeAllListeners('close')
      before.destroy()
    },
  },
  {
    name: 'a missing Secret takes the host down also over HTTP, and the status says why',
    async run(environment) {
      const namespace = await environment.namespace()
      const host = 'nosecret.example.test'
      await environment.service(namespace, 'web')
      await proxy(environment, namespace, 'web', {
        virtualhost: { fqdn: host, tls: { secretName: 'absent' } },
        routes: [route('web', { permitInsecure: true })],
      })
      const { conditions } = await statusOf(environment, `${namespace}/web`, 'invalid')
      equal(conditions?.[0]?.errors?.[0]?.reason, 'SecretNotValid')
      equal((await environment.ask({ host })).status, 404)
      await environment.certificate(namespace, 'absent', [host])
      await environment.expectStatus({ host }, 200)
      await statusOf(environment, `${namespace}/web`, 'valid')
      await environment.client.delete(Secret, `${namespace}/absent`)
      await environment.expectStatus({ host }, 404)
    },
  },
  {
    name: 'a Secret that breaks keeps its last valid certificate, and the status says what is wrong',
    async run(environment) {
      const namespace = await environment.namespace()
      const host = 'broken.example.test'
      await environment.service(namespace, 'web')
      await environment.certificate(namespace, 'web', [host])
      await proxy(environment, namespace, 'web', {
        virtualhost: { fqdn: host, tls: { secretName: 'web' } },
        routes: [route('web')],
      })
      await statusOf(environment, `${namespace}/web`, 'valid')
      const serialOf = async () => {
        const socket = await environment.connectTls(host)
        const { serialNumber } = socket.getPeerCertificate()
        socket.destroy()
        return serialNumber
      }
      await environment.expectStatus({ host, isTls: true }, 200)
      const serial = await serialOf()
      await environment.client.apply(Secret, {
        metadata: { namespace, name: 'web' },
        type: 'kubernetes.io/tls',
        data: { 'tls.crt': 'AAAA', 'tls.key': 'AAAA' },
      })
      const { conditions } = await statusOf(environment, `${namespace}/web`, 'invalid')
      match(conditions?.[0]?.errors?.[0]?.message ?? '', /the last valid certificate is still served$/)
      equal((await environment.ask({ host, isTls: true })).status, 200)
      equal(await serialOf(), serial)
      await environment.certificate(namespace, 'web', [host])
      await statusOf(environment, `${namespace}/web`, 'valid')
      await environment.eventually(async () => notEqual(await serialOf(), serial))
    },
  },
  {
    name: 'delegation: includes, a missing include, an orphan and a duplicate host have their answers and statuses',
    async run(environment) {
      const namespace = await environment.namespace()
      const other = await environment.namespace()
      const host = 'tree.example.test'
      await environment.service(namespace, 'web')
      await environment.service(other, 'web', environment.backends.slice(1, 2))
      await proxy(environment, namespace, 'root', {
        virtualhost: { fqdn: host },
        includes: [
          { name: 'child', namespace: other, conditions: [{ prefix: '/child' }] },
          { name: 'absent', conditions: [{ prefix: '/absent' }] },
        ],
        routes: [route('web')],
      })
      await proxy(environment, other, 'child', { routes: [route('web', { conditions: [{ prefix: '/leaf' }] })] })
      await proxy(environment, other, 'orphan', { routes: [route('web')] })
      equal((await environment.expectStatus({ host, path: '/child/leaf' }, 200)).seen?.backend, 'pod-2')
      equal((await environment.ask({ host, path: '/absent/x' })).status, 502)
      equal((await environment.ask({ host, path: '/else' })).seen?.backend, 'pod-1')
      const root = await statusOf(environment, `${namespace}/root`, 'invalid')
      equal(root.conditions?.[0]?.errors?.[0]?.reason, 'IncludeNotFound')
      await statusOf(environment, `${other}/child`, 'valid')
      await statusOf(environment, `${other}/orphan`, 'orphaned')
      await proxy(environment, other, 'rival', { virtualhost: { fqdn: host }, routes: [route('web')] })
      const duplicate = await statusOf(environment, `${other}/rival`, 'invalid')
      equal(duplicate.conditions?.[0]?.errors?.[0]?.reason, 'DuplicateVhost')
      await environment.expectStatus({ host, path: '/else' }, 404)
    },
  },
  {
    name: 'an Ingress that cannot be served as asked gets an Event',
    async run(environment) {
      const namespace = await environment.namespace()
      await environment.client.create(Ingress, {
        metadata: { namespace, name: 'web' },
        spec: { defaultBackend: { service: { name: 'absent', port: { number: 80 } } } },
      })
      await environment.eventually(async () => {
        const { items } = await environment.client.list(Event, { namespace })
        equal(items[0]?.reason, 'ServiceUnresolvedReference')
      })
      await environment.expectStatus({ host: 'anything.example.test' }, 503)
      await environment.client.delete(Ingress, `${namespace}/web`)
      await environment.expectStatus({ host: 'anything.example.test' }, 404)
    },
  },
  {
    name: 'WebSockets pass where the route allows them and are refused elsewhere',
    async run(environment) {
      const namespace = await environment.namespace()
      const host = 'socket.example.test'
      await environment.service(namespace, 'web')
      await proxy(environment, namespace, 'web', {
        virtualhost: { fqdn: host },
        routes: [route('web'), route('web', { conditions: [{ prefix: '/ws' }], enableWebsockets: true })],
      })
      await environment.expectStatus({ host }, 200)
      equal(await environment.upgrade(host, '/ws'), 'pod-1:hello')
      equal(await environment.upgrade(host, '/'), '403')
    },
  },
  PORT_SCENARIO,
  {
    name: 'a restart on the same objects writes nothing',
    async run(environment) {
      const { client } = environment
      const namespace = await environment.namespace()
      const host = 'steady.example.test'
      await environment.service(namespace, 'web')
      await proxy(environment, namespace, 'web', { virtualhost: { fqdn: host }, routes: [route('web')] })
      await client.create(Ingress, {
        metadata: { namespace, name: 'web' },
        spec: {
          rules: [
            {
              host: 'ingress.steady.example.test',
              http: {
                paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
              },
            },
          ],
        },
      })
      await client.apply(GatewayClass, {
        metadata: { name: 'seamark' },
        spec: { controllerName: 'seamark.io/gateway-controller' },
      })
      await client.create(Gateway, {
        metadata: { namespace, name: 'web' },
        spec: { gatewayClassName: 'seamark', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
      })
      await client.create(HTTPRoute, {
        metadata: { namespace, name: 'web' },
        spec: {
          parentRefs: [{ name: 'web' }],
          hostnames: ['route.steady.example.test'],
          rules: [{ backendRefs: [{ name: 'web', port: 80 }] }],
        },
      })
      // Only objects whose last status has been observed: a status that is still to be written is written after the restart.
      await statusOf(environment, `${namespace}/web`, 'valid')
      await environment.eventually(async () => {
        const ingress = await client.get(Ingress, `${namespace}/web`)
        notEqual(ingress.status?.loadBalancer?.ingress, undefined)
        const gateway = await client.get(Gateway, `${namespace}/web`)
        const [listener] = gateway.status?.listeners ?? []
        equal(listener?.attachedRoutes, 1)
        equal(listener?.conditions.find(({ type }) => type === 'Programmed')?.status, 'True')
        const { status } = await client.get(HTTPRoute, `${namespace}/web`)
        equal(status?.parents?.[0]?.conditions?.find(({ type }) => type === 'Accepted')?.status, 'True')
      })
      const versions = async () => {
        const lists = await Promise.all(
          [HTTPProxy, Ingress, Gateway, HTTPRoute].map(async (kind: Kind) => client.list(kind, { namespace })),
        )
        return lists.flatMap(({ items }) =>
          items
            .filter(({ metadata }) => metadata.name === 'web')
            .map(({ kind, metadata, ...rest }) => ({ kind, resourceVersion: metadata.resourceVersion, ...rest })),
        )
      }
      await environment.stopGateway()
      const before = await versions()
      equal(before.length, 4)
      await environment.startGateway()
      await environment.expectStatus({ host }, 200)
      // A new object's status shows that the writer has passed the others.
      await proxy(environment, namespace, 'later', {
        virtualhost: { fqdn: 'later.example.test' },
        routes: [route('web')],
      })
      await statusOf(environment, `${namespace}/later`, 'valid')
      deepEqual(await versions(), before)
      await client.delete(Gateway, `${namespace}/web`)
    },
  },
]

export const BUILT_IN_SCENARIOS: readonly Scenario[] = [...SCENARIOS, BUSY_PORT_SCENARIO]
