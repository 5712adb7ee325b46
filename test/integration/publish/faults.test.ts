/**
 * What goes wrong around publish on a server of its own each: kinds that are not installed, or go while it runs, a namespace
 * that is being deleted, names at their limits, rights that are taken away. Nothing ends, nothing spins, and what was held
 * up comes by itself.
 */
import {
  configFromText,
  connect,
  CustomResourceDefinition,
  Ingress,
  Namespace,
  Secret,
  type Client,
} from '@seamark/kube'
import { kind, type Obj } from '@seamark/kube/object'
import { Certificate, DNSEndpoint, HTTPProxy, HTTPRoute, runApp } from '@seamark/operator'
import { afterEach, describe, expect, it } from 'vitest'
import { Bench, endpointsOf } from './bench.ts'
import { crds, crdsInUse, createNamespace, type TestEnvironment, environmentKinds } from './test-environment.ts'

const definitionOf = (plural: string): CustomResourceDefinition => {
  const found = crds().find((definition) => (definition as Obj).metadata.name?.startsWith(`${plural}.`))
  if (found === undefined) throw new Error(`no CRD for ${plural}`)
  return found as CustomResourceDefinition
}
const without = (...plurals: string[]) =>
  crds().filter((definition) => !plurals.some((plural) => (definition as Obj).metadata.name?.startsWith(`${plural}.`)))

const install = async (client: Client, plural: string) => client.create(CustomResourceDefinition, definitionOf(plural))

const ClusterRole = kind<Obj & { rules: object[] }>({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'ClusterRole',
  plural: 'clusterroles',
  namespaced: false,
})
const ClusterRoleBinding = kind<Obj & { roleRef: object; subjects: object[] }>({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
  namespaced: false,
})

describe.each(environmentKinds)(`publish in trouble on $name, ${crdsInUse}`, ({ isMissing, start }) => {
  let environment: TestEnvironment | undefined
  afterEach(async () => {
    await environment?.[Symbol.asyncDispose]()
    environment = undefined
  })

  async function prepare(definitions?: object[]): Promise<Bench> {
    environment = await start(definitions === undefined ? {} : { crds: definitions })
    return Bench.prepare(environment)
  }

  const certificateKeys = async (bench: Bench): Promise<string> => {
    const { items } = await bench.client.list(Certificate)
    return items.map(({ metadata }) => metadata.name).join()
  }

  it.skipIf(isMissing)('D27: without the DNSEndpoint CRD, crds=Certificate works', async () => {
    const bench = await prepare(without('dnsendpoints'))
    await using _app = bench.run({ children: ['Certificate'] })
    await bench.proxy()
    expect((await bench.certificate('ns/foo')).spec.secretName).toBe('test-secret')
  })

  it.skipIf(isMissing)('D28: a DNSEndpoint CRD that is absent is waited for; certificates do not wait', async () => {
    const bench = await prepare(without('dnsendpoints'))
    await using _app = bench.run()
    await bench.proxy()
    await bench.certificate('ns/foo')
    await install(bench.client, 'dnsendpoints')
    expect(endpointsOf(await bench.dns('ns/foo'))).toEqual(['test.example.com 3600 A 10.0.0.0'])
  })

  it.skipIf(isMissing)(
    'source kinds that are absent delay no other kind and are read when they are installed',
    async () => {
      const bench = await prepare(without('gateways', 'httproutes', 'referencegrants', 'routes', 'ingressroutes'))
      await using _app = bench.runUnified()
      await bench.proxy()
      await bench.dns('ns/foo')
      await bench.client.create(Ingress, {
        metadata: { namespace: 'ns', name: 'web' },
        spec: {
          defaultBackend: { service: { name: 'web', port: { number: 80 } } },
          rules: [{ host: 'web.example.com' }],
        },
      })
      await bench.setStatus(Ingress, 'ns/web', { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } })
      await bench.dns('ns/web-ingress')
      for (const plural of ['gateways', 'httproutes', 'referencegrants']) await install(bench.client, plural)
      await bench.eventually('the route', async () =>
        bench.client
          .create(HTTPRoute, {
            metadata: {
              namespace: 'ns',
              name: 'api',
              annotations: { 'external-dns.alpha.kubernetes.io/target': '192.0.2.8' },
            },
            spec: { hostnames: ['api.example.com'], parentRefs: [{ name: 'edge' }] },
          })
          .catch(() => undefined),
      )
      expect(endpointsOf(await bench.dns('ns/api-httproute'))).toEqual(['api.example.com 3600 A 192.0.2.8'])
    },
  )

  it.skipIf(isMissing)(
    'a CRD removed while it runs stops only its own kind, and its objects come back with it',
    async () => {
      const bench = await prepare()
      await using _app = bench.run()
      await bench.proxy()
      await bench.certificate('ns/foo')
      const { name = '' } = definitionOf('certificates').metadata
      await bench.client.delete(CustomResourceDefinition, name)
      await bench.eventually('the CRD to go', async () =>
        (await bench.client.find(CustomResourceDefinition, name)) === undefined ? true : undefined,
      )
      await bench.proxy({
        metadata: { name: 'late' },
        spec: { virtualhost: { fqdn: 'late.example.com', tls: { secretName: 's' } } },
      })
      await bench.dns('ns/late')
      await install(bench.client, 'certificates')
      const keys = await bench.eventually(
        'both certificates',
        async () => certificateKeys(bench).catch(() => ''),
        (found) => found.split(',').length === 2,
      )
      expect(keys.split(',').toSorted()).toEqual(['foo', 'late'])
    },
  )

  it.skipIf(isMissing)(
    'a namespace that is being deleted refuses children, without a storm, and others go on',
    async () => {
      const bench = await prepare()
      const { client } = bench
      await createNamespace(client, 'dying')
      // Keeps the namespace terminating where something would finish its deletion.
      await client.create(Secret, { metadata: { namespace: 'dying', name: 'last', finalizers: ['example.com/keep'] } })
      await client.create(HTTPProxy, {
        metadata: { namespace: 'dying', name: 'foo', finalizers: ['example.com/keep'] },
        spec: { virtualhost: { fqdn: 'dying.example.com' }, routes: [] } as NonNullable<HTTPProxy['spec']>,
      })
      await client.delete(Namespace, 'dying')
      await bench.eventually(
        'the namespace to be terminating',
        async () => client.find(Namespace, 'dying'),
        (found) => found.status?.phase === 'Terminating',
      )
      await using app = bench.run({}, { reportsInitialFindings: false })
      // Where nothing deletes the objects of the namespace, each attempt waits longer: 5, 10, 20 and 40 ms.
      const isLeft = async () => (await client.find(HTTPProxy, 'dying/foo'))?.metadata.deletionTimestamp === undefined
      const attempts = async (count: number) =>
        bench.eventually(
          `${count} attempts, or the deletion`,
          async () => ({ attempts: app.writes.count, isLeft: await isLeft() }),
          (found) => found.attempts >= count || !found.isLeft,
        )
      await attempts(1)
      const firstAt = performance.now()
      await attempts(5)
      if (await isLeft()) expect(performance.now() - firstAt).toBeGreaterThan(50)
      await bench.proxy()
      await bench.dns('ns/foo')
      await bench.certificate('ns/foo')
      await bench.settled()
      expect((await bench.children()).filter((child) => child.includes('dying'))).toEqual([])
      for (const [of, key] of [
        [Secret, 'dying/last'],
        [HTTPProxy, 'dying/foo'],
      ] as const)
        if ((await client.find<Obj>(of, key)) !== undefined)
          await client.patch<Obj>(of, key, 'merge', { metadata: { finalizers: null } })
    },
  )

  it.skipIf(isMissing)('names beyond 253 characters end in a hash, the same after a restart', async () => {
    const bench = await prepare()
    const long = 'a'.repeat(250)
    const keys: string[][] = []
    for (let attempt = 0; attempt < 2; attempt++) {
      await using app = bench.run({ namePrefix: 'prefix-', defaultDelegatedDomain: 'acme.example.com' })
      if (attempt === 0) await bench.proxy({ metadata: { name: long } })
      await bench.settled()
      keys.push(await bench.children())
      if (attempt === 1) bench.expectWrites(app, 2 * bench.settlingWrites)
    }
    expect(keys[1]).toEqual(keys[0])
    expect(keys[0]?.length).toBe(3)
    for (const key of keys[0] ?? []) {
      const name = key.split('/')[1] ?? ''
      expect([name.length <= 253, /^prefix-a+-[0-9a-f]{16}$/.test(name)]).toEqual([true, true])
    }
    expect(new Set(keys[0]?.filter((key) => key.startsWith('DNSEndpoint'))).size).toBe(2)
  })

  it.skipIf(isMissing)(
    'rights that are taken away while it runs hold it up; given back, it goes on by itself',
    async () => {
      const bench = await prepare()
      const { client } = bench
      const grant = async () =>
        client.create(ClusterRoleBinding, {
          metadata: { name: 'seamark-writes' },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'seamark-writes' },
          subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'publisher' }],
        })
      await client.create(ClusterRole, {
        metadata: { name: 'seamark-writes' },
        rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }],
      })
      await grant()
      let refused = 0
      const cluster = connect(configFromText(await bench.environment.userKubeconfig('publisher')), {
        fieldManager: 'contour-plus',
        observer: {
          request({ code, method }) {
            if (code === '403' && method !== 'GET') refused++
          },
        },
      })
      const stopping = new AbortController()
      const running = runApp(
        { cluster, publish: bench.options(), namespace: 'manager', mode: 'enforce' },
        stopping.signal,
      )
      await bench.proxy()
      await bench.dns('ns/foo')
      await client.delete(ClusterRoleBinding, 'seamark-writes')
      await bench.proxy({ metadata: { name: 'late' }, spec: { virtualhost: { fqdn: 'late.example.com' } } })
      await bench.eventually(
        'a write to be refused',
        async () => refused,
        (count) => count > 0,
      )
      expect(await client.find(DNSEndpoint, 'ns/late')).toBeUndefined()
      await grant()
      await bench.dns('ns/late')
      expect(await client.find(DNSEndpoint, 'ns/foo')).toBeDefined()
      stopping.abort()
      await running
      await cluster.close()
    },
  )
})
