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
import type { World } from './world.ts'

export interface Scenario {
  readonly name: string
  readonly run: (world: World) => Promise<void>
}

const route = (service: string, extra: object = {}) => ({ services: [{ name: service, port: 80 }], ...extra })

async function proxy(world: World, namespace: string, name: string, spec: HTTPProxy['spec']): Promise<void> {
  await world.client.apply(HTTPProxy, { metadata: { namespace, name }, ...(spec !== undefined && { spec }) })
}

async function statusOf(world: World, key: string, currentStatus: string): Promise<NonNullable<HTTPProxy['status']>> {
  let status: HTTPProxy['status']
  await world.eventually(async () => {
    ;({ status } = await world.client.get(HTTPProxy, key))
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

async function applyExample(world: World, file: string): Promise<void> {
  for (const document of parseAllDocuments(readFileSync(join(EXAMPLES, file), 'utf8'))) {
    const object = document.toJS() as Obj
    const kind = KINDS[object.kind ?? '']
    if (kind === undefined) throw new Error(`the example contains a ${object.kind}`)
    await world.client.apply(kind, object)
  }
}

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'the example, applied as it is, serves both teams',
    async run(world) {
      await applyExample(world, 'shop.yaml')
      const [first, second] = world.backends
      if (first === undefined || second === undefined) throw new Error('two backends')
      await world.endpoints('shop', 'web', [first])
      await world.endpoints('shop', 'api', [second])
      await world.expectStatus({ host: 'admin.example.test' }, 200)
      const api = await world.expectStatus({ host: 'shop.example.test', path: '/api/users' }, 200)
      deepEqual([api.seen?.backend, api.seen?.path], ['pod-2', '/users'])
      equal((await world.ask({ host: 'shop.example.test', path: '/cart' })).seen?.backend, 'pod-1')
      const moved = await world.ask({ host: 'shop.example.test', path: '/api/old/x' })
      deepEqual([moved.status, moved.headers.location], [301, 'http://shop.example.test/api'])
    },
  },
  { name: 'the table of answers', run: checkAnswers },
  {
    name: 'the example of the Gateway API, applied as it is, is accepted and divides requests',
    async run(world) {
      await applyExample(world, 'gateway-api.yaml')
      const [first, second] = world.backends
      if (first === undefined || second === undefined) throw new Error('two backends')
      await world.endpoints('blog', 'stable', [first])
      await world.endpoints('blog', 'next', [second])
      await world.expectStatus({ host: 'blog.example.test' }, 200)
      const tried = await world.ask({ host: 'blog.example.test', headers: { 'x-try-next': 'yes' } })
      equal(tried.seen?.backend, 'pod-2')
      await world.eventually(async () => {
        const { status } = await world.client.get(HTTPRoute, 'blog/blog')
        deepEqual(
          status?.parents?.[0]?.conditions?.map(({ type, status: value }) => `${type}=${value}`),
          ['Accepted=True', 'ResolvedRefs=True'],
        )
      })
    },
  },
  {
    name: 'an Ingress, an HTTPProxy and an HTTPRoute lead to their Services, and have addresses',
    async run(world) {
      const namespace = await world.namespace()
      const [first, second, third] = world.backends
      if (first === undefined || second === undefined || third === undefined) throw new Error('three backends')
      await world.service(namespace, 'one', [first])
      await world.service(namespace, 'two', [second])
      await world.service(namespace, 'three', [third])
      await world.client.create(Ingress, {
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
      await proxy(world, namespace, 'web', { virtualhost: { fqdn: 'proxy.example.test' }, routes: [route('two')] })
      await world.client.apply(GatewayClass, {
        metadata: { name: 'seamark' },
        spec: { controllerName: 'seamark.io/gateway-controller' },
      })
      await world.client.create(Gateway, {
        metadata: { namespace, name: 'web' },
        spec: { gatewayClassName: 'seamark', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
      })
      await world.client.create(HTTPRoute, {
        metadata: { namespace, name: 'web' },
        spec: {
          parentRefs: [{ name: 'web' }],
          hostnames: ['route.example.test'],
          rules: [{ backendRefs: [{ name: 'three', port: 80 }] }],
        },
      })
      const ingress = await world.expectStatus({ host: 'ingress.example.test', path: '/a/b' }, 200)
      equal(ingress.seen?.backend, 'pod-1')
      equal(ingress.seen?.path, '/a/b')
      equal(ingress.seen?.headers['x-forwarded-proto'], 'http')
      equal((await world.ask({ host: 'ingress.example.test', path: '/ab' })).status, 404)
      equal((await world.expectStatus({ host: 'proxy.example.test' }, 200)).seen?.backend, 'pod-2')
      equal((await world.expectStatus({ host: 'route.example.test' }, 200)).seen?.backend, 'pod-3')

      const addresses = [{ ip: '192.0.2.10' }, { hostname: 'lb.example.test' }]
      await world.eventually(async () => {
        const { status } = await world.client.get(Ingress, `${namespace}/web`)
        deepEqual(status?.loadBalancer?.ingress, addresses)
      })
      const { conditions, loadBalancer } = await statusOf(world, `${namespace}/web`, 'valid')
      deepEqual(loadBalancer?.ingress, addresses)
      equal(conditions?.[0]?.reason, 'Valid')
      await world.eventually(async () => {
        const { status } = await world.client.get(Gateway, `${namespace}/web`)
        deepEqual(
          status?.conditions?.map(({ type, status: is }) => `${type}=${is}`),
          ['Accepted=True', 'Programmed=True'],
        )
        equal(status?.listeners?.[0]?.attachedRoutes, 1)
        deepEqual(
          status?.addresses?.map(({ value }) => value),
          ['192.0.2.10', 'lb.example.test'],
        )
        const { status: routeStatus } = await world.client.get(HTTPRoute, `${namespace}/web`)
        deepEqual(
          routeStatus?.parents?.[0]?.conditions?.map(({ type, status: is }) => `${type}=${is}`),
          ['Accepted=True', 'ResolvedRefs=True'],
        )
      })
    },
  },
  {
    name: 'endpoints that come and go are followed without a failed request',
    async run(world) {
      const namespace = await world.namespace()
      const [first, second] = world.backends
      if (first === undefined || second === undefined) throw new Error('two backends')
      await world.service(namespace, 'web', [first])
      await proxy(world, namespace, 'web', { virtualhost: { fqdn: 'moving.example.test' }, routes: [route('web')] })
      await world.expectStatus({ host: 'moving.example.test' }, 200)
      const progress = { isMoved: false }
      const statuses = new Set<number>()
      const asking = (async () => {
        while (!progress.isMoved) statuses.add((await world.ask({ host: 'moving.example.test' })).status)
      })()
      await world.endpoints(namespace, 'web', [first, second])
      await world.endpoints(namespace, 'web', [second])
      await world.eventually(async () => {
        equal((await world.ask({ host: 'moving.example.test' })).seen?.backend, 'pod-2')
        equal((await world.ask({ host: 'moving.example.test' })).seen?.backend, 'pod-2')
      })
      progress.isMoved = true
      await asking
      deepEqual([...statuses], [200])
    },
  },
  {
    name: 'TLS is terminated with the certificate of the host; other names and hosts are refused',
    async run(world) {
      const namespace = await world.namespace()
      await world.service(namespace, 'web')
      await world.certificate(namespace, 'web', ['tls.example.test'])
      await proxy(world, namespace, 'web', {
        virtualhost: { fqdn: 'tls.example.test', tls: { secretName: 'web' } },
        routes: [route('web')],
      })
      await world.eventually(async () => {
        equal((await world.ask({ host: 'tls.example.test', isTls: true })).status, 200)
      })
      const redirect = await world.ask({ host: 'tls.example.test:8080', path: '/x?y=1' })
      equal(redirect.status, 301)
      equal(redirect.headers.location, 'https://tls.example.test:8080/x?y=1')
      equal((await world.askHttp2('tls.example.test', '/h2')).status, 200)
      const misdirected = await world.ask({ host: 'proxy.example.test', isTls: true, serverName: 'tls.example.test' })
      equal(misdirected.status, 421)
      await world.connectTls('unknown.example.test').then(
        () => Promise.reject(new Error('an unknown name got a certificate')),
        () => undefined,
      )
    },
  },
  {
    name: 'a rotated certificate is used at once and established connections stay',
    async run(world) {
      const namespace = await world.namespace()
      const host = 'rotated.example.test'
      await world.service(namespace, 'web')
      await world.certificate(namespace, 'web', [host])
      await proxy(world, namespace, 'web', {
        virtualhost: { fqdn: host, tls: { secretName: 'web' } },
        routes: [route('web')],
      })
      await world.eventually(async () => {
        equal((await world.ask({ host, isTls: true })).status, 200)
      })
      const before = await world.connectTls(host)
      const serial = before.getPeerCertificate().serialNumber
      await world.certificate(namespace, 'web', [host])
      await world.eventually(async () => {
        const socket = await world.connectTls(host)
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
    async run(world) {
      const namespace = await world.namespace()
      const host = 'nosecret.example.test'
      await world.service(namespace, 'web')
      await proxy(world, namespace, 'web', {
        virtualhost: { fqdn: host, tls: { secretName: 'absent' } },
        routes: [route('web', { permitInsecure: true })],
      })
      const { conditions } = await statusOf(world, `${namespace}/web`, 'invalid')
      equal(conditions?.[0]?.errors?.[0]?.reason, 'SecretNotValid')
      equal((await world.ask({ host })).status, 404)
      await world.certificate(namespace, 'absent', [host])
      await world.expectStatus({ host }, 200)
      await statusOf(world, `${namespace}/web`, 'valid')
      await world.client.delete(Secret, `${namespace}/absent`)
      await world.expectStatus({ host }, 404)
    },
  },
  {
    name: 'a Secret that breaks keeps its last valid certificate, and the status says what is wrong',
    async run(world) {
      const namespace = await world.namespace()
      const host = 'broken.example.test'
      await world.service(namespace, 'web')
      await world.certificate(namespace, 'web', [host])
      await proxy(world, namespace, 'web', {
        virtualhost: { fqdn: host, tls: { secretName: 'web' } },
        routes: [route('web')],
      })
      await statusOf(world, `${namespace}/web`, 'valid')
      const serialOf = async () => {
        const socket = await world.connectTls(host)
        const { serialNumber } = socket.getPeerCertificate()
        socket.destroy()
        return serialNumber
      }
      await world.expectStatus({ host, isTls: true }, 200)
      const serial = await serialOf()
      await world.client.apply(Secret, {
        metadata: { namespace, name: 'web' },
        type: 'kubernetes.io/tls',
        data: { 'tls.crt': 'AAAA', 'tls.key': 'AAAA' },
      })
      const { conditions } = await statusOf(world, `${namespace}/web`, 'invalid')
      match(conditions?.[0]?.errors?.[0]?.message ?? '', /the last valid certificate is still served$/)
      equal((await world.ask({ host, isTls: true })).status, 200)
      equal(await serialOf(), serial)
      await world.certificate(namespace, 'web', [host])
      await statusOf(world, `${namespace}/web`, 'valid')
      await world.eventually(async () => notEqual(await serialOf(), serial))
    },
  },
  {
    name: 'delegation: includes, a missing include, an orphan and a duplicate host have their answers and statuses',
    async run(world) {
      const namespace = await world.namespace()
      const other = await world.namespace()
      const host = 'tree.example.test'
      await world.service(namespace, 'web')
      await world.service(other, 'web', world.backends.slice(1, 2))
      await proxy(world, namespace, 'root', {
        virtualhost: { fqdn: host },
        includes: [
          { name: 'child', namespace: other, conditions: [{ prefix: '/child' }] },
          { name: 'absent', conditions: [{ prefix: '/absent' }] },
        ],
        routes: [route('web')],
      })
      await proxy(world, other, 'child', { routes: [route('web', { conditions: [{ prefix: '/leaf' }] })] })
      await proxy(world, other, 'orphan', { routes: [route('web')] })
      equal((await world.expectStatus({ host, path: '/child/leaf' }, 200)).seen?.backend, 'pod-2')
      equal((await world.ask({ host, path: '/absent/x' })).status, 502)
      equal((await world.ask({ host, path: '/else' })).seen?.backend, 'pod-1')
      const root = await statusOf(world, `${namespace}/root`, 'invalid')
      equal(root.conditions?.[0]?.errors?.[0]?.reason, 'IncludeNotFound')
      await statusOf(world, `${other}/child`, 'valid')
      await statusOf(world, `${other}/orphan`, 'orphaned')
      await proxy(world, other, 'thief', { virtualhost: { fqdn: host }, routes: [route('web')] })
      const duplicate = await statusOf(world, `${other}/thief`, 'invalid')
      equal(duplicate.conditions?.[0]?.errors?.[0]?.reason, 'DuplicateVhost')
      await world.expectStatus({ host, path: '/else' }, 404)
    },
  },
  {
    name: 'an Ingress that cannot be served as asked gets an Event',
    async run(world) {
      const namespace = await world.namespace()
      await world.client.create(Ingress, {
        metadata: { namespace, name: 'web' },
        spec: { defaultBackend: { service: { name: 'absent', port: { number: 80 } } } },
      })
      await world.eventually(async () => {
        const { items } = await world.client.list(Event, { namespace })
        equal(items[0]?.reason, 'ServiceUnresolvedReference')
      })
      await world.expectStatus({ host: 'anything.example.test' }, 503)
      await world.client.delete(Ingress, `${namespace}/web`)
      await world.expectStatus({ host: 'anything.example.test' }, 404)
    },
  },
  {
    name: 'WebSockets pass where the route allows them and are refused elsewhere',
    async run(world) {
      const namespace = await world.namespace()
      const host = 'socket.example.test'
      await world.service(namespace, 'web')
      await proxy(world, namespace, 'web', {
        virtualhost: { fqdn: host },
        routes: [route('web'), route('web', { conditions: [{ prefix: '/ws' }], enableWebsockets: true })],
      })
      await world.expectStatus({ host }, 200)
      equal(await world.upgrade(host, '/ws'), 'pod-1:hello')
      equal(await world.upgrade(host, '/'), '403')
    },
  },
  PORT_SCENARIO,
  {
    name: 'a restart on the same objects writes nothing',
    async run(world) {
      const namespace = await world.namespace()
      await world.service(namespace, 'web')
      await proxy(world, namespace, 'web', { virtualhost: { fqdn: 'steady.example.test' }, routes: [route('web')] })
      await statusOf(world, `${namespace}/web`, 'valid')
      const versions = async () => {
        const lists = await Promise.all([
          world.client.list(HTTPProxy),
          world.client.list(Ingress),
          world.client.list(Gateway),
          world.client.list(HTTPRoute),
        ])
        return lists.flatMap(({ items }) => items.map(({ metadata }) => `${metadata.uid} ${metadata.resourceVersion}`))
      }
      await world.stopGateway()
      const before = await versions()
      await world.startGateway()
      await world.expectStatus({ host: 'steady.example.test' }, 200)
      // A new object's status shows that the writer has passed the others.
      await proxy(world, namespace, 'later', { virtualhost: { fqdn: 'later.example.test' }, routes: [route('web')] })
      await statusOf(world, `${namespace}/later`, 'valid')
      deepEqual((await versions()).filter((each) => before.includes(each)).toSorted(), before.toSorted())
    },
  },
]

export const BUILT_IN_SCENARIOS: readonly Scenario[] = [...SCENARIOS, BUSY_PORT_SCENARIO]
