/**
 * Versions v1 and v1beta1 of the load balancing kinds: with exactly the rights of the examples the manager serves their
 * webhooks, installs CRDs with both versions, and both versions show the same objects, on the embedded server and on a real
 * one. A process without webhooks then leaves v1 in place.
 */
import { configFromText, connect, CustomResourceDefinition } from '@seamark/kube'
import { kind, type Kind, type Obj } from '@seamark/kube/object'
import {
  AdmissionConfig,
  BalanceConfig,
  DNSEndpoint,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  DNSLoadBalancerEndpointV1,
  DNSLoadBalancerV1,
  DNSProvider,
  installCrds,
  keepStoredVersions,
  loadBalancerCrds,
  runApp,
} from '@seamark/operator'
import { proberInThisThread } from '@seamark/operator/testing'
import { describe, expect, it } from 'vitest'
import { freePort } from '../dns/peers.ts'
import { applyExample } from '../examples/manifests.ts'
import { environmentKinds } from '../publish/test-environment.ts'
import { POLL_OPTIONS, startBackends } from './backends.ts'

const ACCOUNT = 'system:serviceaccount:seamark:seamark'
const GROUPS = ['system:serviceaccounts', 'system:serviceaccounts:seamark', 'system:authenticated']

interface Configuration extends Obj {
  webhooks: { clientConfig: { service?: { path: string } } }[]
}
const configuration = (name: string, plural: string): Kind<Configuration> =>
  kind<Configuration>({ group: 'admissionregistration.k8s.io', version: 'v1', kind: name, plural, namespaced: false })
const CONFIGURATIONS = [
  configuration('MutatingWebhookConfiguration', 'mutatingwebhookconfigurations'),
  configuration('ValidatingWebhookConfiguration', 'validatingwebhookconfigurations'),
]
const at = (name: string) => ({ namespace: 'seamark', name })
const attempt = async (write: () => Promise<unknown>): Promise<string> => write().then(() => 'written', String)

describe.each(environmentKinds)('versions of the load balancing kinds on $name', ({ isMissing, start }) => {
  it.skipIf(isMissing)('are two views of one object', async () => {
    await using environment = await start()
    const { client } = environment
    for (const file of ['deploy/seamark.yaml', 'deploy/admission.yaml']) await applyExample(client, file)
    for (const file of ['dns-load-balancer/seamark.yaml', 'dns-load-balancer/webhooks.yaml'])
      await applyExample(client, file)
    // Stored by an installation without webhooks.
    await installCrds(client, loadBalancerCrds(), new AbortController().signal)
    const old = { metadata: at('old'), spec: { DNSName: 'old.example.com', singleton: true } }
    await expect
      .poll(async () => attempt(async () => client.create(DNSLoadBalancer, old)), POLL_OPTIONS)
      .toBe('written')
    const port = await freePort()
    const url = `https://localhost:${port}`
    // No Service has a proxy here: the API server gets the address.
    for (const each of CONFIGURATIONS) {
      const { webhooks } = await client.get(each, 'seamark-balance')
      const patch = webhooks.map(({ clientConfig }, index) => ({
        op: 'replace',
        path: `/webhooks/${index}/clientConfig`,
        value: { url: `${url}${clientConfig.service?.path}` },
      }))
      await client.patch(each, 'seamark-balance', 'json', patch)
    }
    const refused: string[] = []
    const cluster = connect(configFromText(await environment.userKubeconfig(ACCOUNT, GROUPS)), {
      fieldManager: 'contour-plus',
      observer: {
        request({ method, code }) {
          if (code === '403') refused.push(method)
        },
      },
    })
    const backends = await startBackends('127.0.0.2', '127.0.0.3')
    const stop = new AbortController()
    const done = runApp(
      {
        cluster,
        mode: 'enforce',
        namespace: 'seamark',
        allowLoopback: true,
        admission: {
          config: AdmissionConfig.parse({ address: `127.0.0.1:${port}`, dnsNames: ['localhost'], url }),
        },
        balance: { config: BalanceConfig.parse({ enabled: true }), startThread: proberInThisThread(20) },
        leader: { lease: 'seamark', namespace: 'seamark' },
      },
      stop.signal,
    )
    try {
      const versions = async () =>
        (await client.get(CustomResourceDefinition, 'dnsloadbalancers.loadbalancer.gardener.cloud')).spec.versions
          .filter(({ served }) => served)
          .map(({ name, storage }) => `${name}${storage ? ' stored' : ''}`)
      await expect.poll(versions, POLL_OPTIONS).toEqual(['v1 stored', 'v1beta1'])
      const healthCheck = { scheme: 'http', port: backends.port, path: '/healthz', profile: 'fast' } as const
      const create = async () =>
        client.create(DNSLoadBalancerV1, {
          metadata: at('shop'),
          spec: { dnsName: 'shop.example.com', healthCheck },
        })
      await expect.poll(async () => attempt(create), POLL_OPTIONS).toBe('written')
      // Defaulted in v1, shown in v1beta1.
      await expect
        .poll(async () => (await client.get(DNSLoadBalancer, 'seamark/shop')).spec, POLL_OPTIONS)
        .toMatchObject({ DNSName: 'shop.example.com', type: 'Balanced', healthPath: '/healthz' })

      // Priority and drain of v1 decide what is published.
      const endpoints = [
        { loadBalancer: 'shop', address: '127.0.0.2', priority: 0, weight: 3, geo: 'eu' },
        { loadBalancer: 'shop', address: '127.0.0.3', priority: 1 },
      ]
      for (const [index, spec] of endpoints.entries()) {
        const endpoint = { metadata: at(`e${index}`), spec }
        await expect
          .poll(async () => attempt(async () => client.create(DNSLoadBalancerEndpointV1, endpoint)), POLL_OPTIONS)
          .toBe('written')
      }
      const published = async () =>
        (await client.find(DNSEndpoint, 'seamark/shop-dnslb'))?.spec.endpoints.flatMap(({ targets }) => targets)
      await expect.poll(published, POLL_OPTIONS).toEqual(['127.0.0.2'])
      const drained = { metadata: at('e0'), spec: { ...endpoints[0], drain: true } }
      await client.apply(DNSLoadBalancerEndpointV1, drained as DNSLoadBalancerEndpointV1, { force: true })
      await expect.poll(published, POLL_OPTIONS).toEqual(['127.0.0.3'])
      expect((await client.get(DNSLoadBalancerEndpoint, 'seamark/e0')).spec).toMatchObject({ geo: 'eu', weight: 3 })
      // The status that the controller writes in v1beta1 is the status of v1.
      await expect
        .poll(async () => (await client.get(DNSLoadBalancerV1, 'seamark/shop')).status?.active, POLL_OPTIONS)
        .toEqual([{ name: 'e1', address: '127.0.0.3' }])

      // Stored as v1beta1, with a spelling that v1 does not have: a change in v1 keeps it.
      const stored = await client.get(DNSLoadBalancerV1, 'seamark/old')
      expect(stored.spec).toMatchObject({ dnsName: 'old.example.com', strategy: 'Exclusive' })
      await client.patch(DNSLoadBalancerV1, 'seamark/old', 'merge', { spec: { ttl: 77 } })
      expect((await client.get(DNSLoadBalancer, 'seamark/old')).spec).toEqual({ ...old.spec, ttl: 77 })
      expect((await client.list(DNSLoadBalancerV1)).items.map(({ spec }) => spec.dnsName)).toEqual([
        'old.example.com',
        'shop.example.com',
      ])

      // Refused at the write, by either version.
      const both = { metadata: at('both'), spec: { DNSName: 'b.example.com', singleton: true, type: 'Balanced' } }
      expect(await attempt(async () => client.create(DNSLoadBalancer, both))).toContain('singleton and type')
      const wrong = { metadata: at('wrong'), spec: { dnsName: 'a..example.com' } } as DNSLoadBalancerV1
      expect(await attempt(async () => client.create(DNSLoadBalancerV1, wrong))).toContain('invalid dns name')
      await client.create(DNSProvider, { metadata: at('aws'), spec: { type: 'aws' } })
      expect((await client.get(DNSProvider, 'seamark/aws')).spec.scope).toEqual({ type: 'Cluster' })

      // A process without webhooks keeps what is stored.
      expect(await installCrds(client, loadBalancerCrds(), new AbortController().signal, keepStoredVersions)).toEqual(
        [],
      )
      expect(refused).toEqual([])
    } finally {
      stop.abort()
      await done
      await cluster.close()
      await backends.close()
    }
  })
})
