/**
 * An installation from its first minute to its end, with Helm 4 and with Helm 3, on a kube-apiserver: a host is explained while the
 * manager observes, and published when it may write; an upgrade meets objects that change; what is uninstalled leaves records.
 */
import { needs } from '@seamark/kit'
import { ConfigMap, CustomResourceDefinition, Namespace, Service } from '@seamark/kube'
import { Certificate, DNSEndpoint, HTTPProxy } from '@seamark/operator'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { crds } from '../integration/publish/test-environment.ts'
import { accountOf, AuditedPlane } from './audited-plane.ts'
import { CHART, helm, type HelmName, helmOk, HELMS, manifestsOf, render, type Values } from './helm.ts'
import { Installation } from './installation.ts'
import { eventually, put, putStatus } from './lives/life.ts'
import { buildBundle, seamark } from './manager.ts'

const isMissing = !needs('kube-apiserver', 'etcd', 'helm')
const HOST = 'shop.install.test'
/** Also of the contract: a host is explained within two minutes of the installation. */
const LIMIT_MS = 120_000

const config = {
  allowLoopback: true,
  publish: { services: [{ service: 'shop/lb' }], defaultIssuerName: 'letsencrypt' },
}

describe.skipIf(isMissing).each(HELMS)('with %s', (name: HelmName) => {
  let plane: AuditedPlane
  beforeAll(async () => {
    buildBundle()
    plane = await AuditedPlane.start(crds())
    const { client } = plane
    await client.create(Namespace, { metadata: { name: 'shop' } })
    await put(plane, Service, {
      metadata: { namespace: 'shop', name: 'lb' },
      spec: { type: 'LoadBalancer', ports: [{ port: 443 }] },
    })
    await putStatus(plane, Service, 'shop/lb', { loadBalancer: { ingress: [{ ip: '203.0.113.10' }] } })
    await put(plane, HTTPProxy, {
      metadata: { namespace: 'shop', name: 'shop', annotations: { 'kubernetes.io/tls-acme': 'true' } },
      spec: {
        virtualhost: { fqdn: HOST, tls: { secretName: 'shop-tls' } },
        routes: [{ services: [{ name: 'web', port: 80 }] }],
      },
    })
  }, LIMIT_MS)
  afterAll(async () => plane?.[Symbol.asyncDispose]())

  it.skipIf(!needs(name))(
    'explains a host in observe, publishes it in enforce, and denies nothing',
    async () => {
      const { client } = plane
      const started = Date.now()
      await using installation = new Installation(plane, 'seamark', name)
      expect(await installation.apply({ config })).toContain('in mode observe')
      await installation.start()
      await installation.start()
      const asPerson = ['--config', installation.configFile, '--kubeconfig', installation.personKubeconfig]
      const explained = await eventually(
        'an explanation',
        async () => seamark('explain', HOST, ...asPerson),
        ({ stdout }) => stdout.includes('203.0.113.10'),
        LIMIT_MS,
      )
      const seconds = (Date.now() - started) / 1_000
      expect(explained.stdout).toContain(HOST)
      expect((await seamark('plan', ...asPerson)).stderr).not.toContain('Forbidden')
      expect((await client.list(DNSEndpoint)).items).toEqual([])
      await installation.stop()

      const enforced = { mode: 'enforce', config: { ...config, records: { owner: 'install' } } }
      await installation.apply(enforced)
      await installation.start()
      await installation.start()
      await eventually('the record', async () => client.find(DNSEndpoint, 'shop/shop'), undefined, LIMIT_MS)
      await eventually('the certificate', async () => client.find(Certificate, 'shop/shop'), undefined, LIMIT_MS)

      // The manager and a person write to the same ConfigMap: an upgrade takes nothing away from them.
      await client.patch(ConfigMap, 'seamark/seamark', 'merge', {
        metadata: { annotations: { 'seamark.io/pause': 'true' } },
      })
      await installation.apply({ ...enforced, config: { ...enforced.config, logLevel: 'debug' } })
      const { metadata, data } = await client.get(ConfigMap, 'seamark/seamark')
      expect(metadata.annotations?.['seamark.io/pause']).toBe('true')
      expect(data?.['config.yaml']).toContain('logLevel: debug')

      const denied = plane.denied(accountOf('seamark', 'seamark'))
      const rules = (await render(name, 'seamark', { config }))
        .filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role')
        .map((role) => `${role.kind} ${role.metadata.name} ${(role['rules'] as object[]).length}`)
      process.stdout.write(
        `${name}: explained after ${seconds.toFixed(1)} s; denied ${denied.length}; rules: ${rules.join(', ')}\n`,
      )
      expect(denied).toEqual([])
      expect(seconds * 1_000).toBeLessThan(LIMIT_MS)

      await installation.stop()
      await helmOk(name, ['uninstall', 'seamark', '-n', 'seamark'], { kubeconfig: plane.plane.kubeconfig() })
      expect(await client.find(DNSEndpoint, 'shop/shop')).toBeDefined()
      expect(await client.find(ConfigMap, 'seamark/seamark')).toBeUndefined()
    },
    LIMIT_MS * 2,
  )

  it.skipIf(!needs(name))(
    'keeps the CRDs when it is uninstalled, and refuses to drop a version that objects are stored in',
    async () => {
      const { client } = plane
      const kubeconfig = plane.plane.kubeconfig()
      const install = async (values: Values) =>
        helm(name, ['upgrade', '--install', 'keep', CHART, '-n', 'keep', '--create-namespace'], { values, kubeconfig })
      const balance = { records: { owner: 'keep' }, balance: { enabled: true } }
      const withWebhooks = { mode: 'enforce', admission: { enabled: true }, config: balance }
      expect(await install(withWebhooks)).toMatchObject({ code: 0 })
      const crd = 'dnsloadbalancers.loadbalancer.gardener.cloud'
      await eventually(
        'the stored version',
        async () => (await client.get(CustomResourceDefinition, crd)).status as { storedVersions?: string[] },
        ({ storedVersions }) => storedVersions?.join() === 'v1',
      )
      const refused = await install({ mode: 'enforce', config: balance })
      expect(refused.code).not.toBe(0)
      expect(refused.stderr).toContain(`objects of ${crd} are stored in version v1`)
      expect(refused.stderr).toContain('keep admission.enabled: true')
      expect(await install(withWebhooks)).toMatchObject({ code: 0 })
      await helmOk(name, ['uninstall', 'keep', '-n', 'keep'], { kubeconfig })
      expect(await client.find(CustomResourceDefinition, crd)).toBeDefined()
      // What the notes say about removing them.
      const kept = await client.list(CustomResourceDefinition, { labelSelector: 'app.kubernetes.io/part-of=seamark' })
      expect(kept.items).toHaveLength(3)
      for (const { metadata } of kept.items) await client.delete(CustomResourceDefinition, metadata.name ?? '')
    },
    LIMIT_MS,
  )

  it.skipIf(!needs(name))('is not installed over another release of the namespace', async () => {
    const kubeconfig = plane.plane.kubeconfig()
    const install = async (release: string) =>
      helm(name, ['install', release, CHART, '-n', 'twice', '--create-namespace'], { kubeconfig })
    expect(await install('seamark')).toMatchObject({ code: 0 })
    const second = await install('other')
    expect(second.code).not.toBe(0)
    expect(second.stderr).toContain('ConfigMap "seamark" in namespace "twice"')
    const manifests = manifestsOf(await helmOk(name, ['get', 'manifest', 'seamark', '-n', 'twice'], { kubeconfig }))
    expect(manifests.length).toBeGreaterThan(5)
  })
})
