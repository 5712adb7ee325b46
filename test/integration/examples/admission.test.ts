/**
 * examples/deploy with examples/deploy/admission.yaml: with exactly the rights of the examples the manager makes its
 * certificate, has the API server trust it, and names without a grant are refused when an object is written.
 */
import { configFromText, connect, Ingress, Namespace, Secret, Service } from '@seamark/kube'
import { kind, type Obj } from '@seamark/kube/object'
import { AdmissionConfig, DNSEndpoint, HTTPProxy, HTTPRoute, runApp, unified } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { freePort } from '../dns/peers.ts'
import { eventually, environmentKinds } from '../publish/test-environment.ts'
import { applyExample } from './manifests.ts'

const ACCOUNT = 'system:serviceaccount:seamark:seamark'
const GROUPS = ['system:serviceaccounts', 'system:serviceaccounts:seamark', 'system:authenticated']

interface Configuration extends Obj {
  webhooks: { name: string; clientConfig: { service?: { path: string }; caBundle?: string } }[]
}
const Configuration = kind<Configuration>({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
  namespaced: false,
})

const grants = [
  { namespace: 'shop', domains: ['shop.example.com', '*.shop.example.com'] },
  { namespace: 'other', domains: ['other.example.com'] },
]
const NOT_GRANTED =
  'namespace shop may use names in shop.example.com, *.shop.example.com; www.other.example.com is not granted to it'

const endpoint = (name: string, ...hosts: string[]) => ({
  metadata: { namespace: 'shop', name },
  spec: {
    endpoints: hosts.map((dnsName) => ({ dnsName, recordType: 'A', recordTTL: 60, targets: ['192.0.2.1'] }) as const),
  },
})
const http = {
  paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
}

describe.each(environmentKinds)('examples/deploy/admission.yaml on $name', ({ isMissing, start }) => {
  it.skipIf(isMissing)('refuses names without a grant, with the rights of the examples', async () => {
    await using environment = await start()
    const { client } = environment
    await applyExample(client, 'deploy/seamark.yaml')
    await applyExample(client, 'deploy/admission.yaml')
    await client.create(Namespace, { metadata: { name: 'shop' } })
    const port = await freePort()
    const { webhooks } = await client.get(Configuration, 'seamark')
    // No Service has a proxy here: the API server gets the address.
    await client.patch(
      Configuration,
      'seamark',
      'json',
      webhooks.map(({ clientConfig }, index) => ({
        op: 'replace',
        path: `/webhooks/${index}/clientConfig`,
        value: { url: `https://localhost:${port}${clientConfig.service?.path}` },
      })),
    )
    // Written before the grants were enforced.
    await client.create(DNSEndpoint, endpoint('old', 'www.other.example.com'))

    const refused: string[] = []
    const cluster = connect(configFromText(await environment.userKubeconfig(ACCOUNT, GROUPS)), {
      fieldManager: 'contour-plus',
      observer: {
        request({ method, code }) {
          if (code === '403') refused.push(method)
        },
      },
    })
    const stop = new AbortController()
    const config = AdmissionConfig.parse({ address: `127.0.0.1:${port}`, dnsNames: ['localhost'] })
    const done = runApp(
      {
        cluster,
        mode: 'enforce',
        namespace: 'seamark',
        grants,
        publish: unified,
        admission: { config },
        leader: { lease: 'seamark', namespace: 'seamark' },
      },
      stop.signal,
    )
    const write = async (attempt: () => Promise<unknown>): Promise<string> => {
      try {
        await attempt()
        return 'admitted'
      } catch (error) {
        return String(error)
      }
    }
    const create = async (object: ReturnType<typeof endpoint>): Promise<string> =>
      await write(async () => client.apply(DNSEndpoint, object, { dryRun: true, force: true }))
    try {
      const message = await eventually(
        'a refusal',
        async () => create(endpoint('new', 'a.shop.example.com', 'WWW.other.example.com.')),
        (text) => text !== 'admitted',
      )
      expect(message).toContain(NOT_GRANTED)
      expect(message).not.toContain('a.shop.example.com is not granted')
      expect(await create(endpoint('new', 'shop.example.com', '*.shop.example.com'))).toBe('admitted')
      const { webhooks: injected } = await client.get(Configuration, 'seamark')
      const { data } = await client.get(Secret, 'seamark/seamark-admission')
      expect(new Set(injected.map(({ clientConfig }) => clientConfig.caBundle))).toEqual(new Set([data?.['ca.crt']]))

      // What an object had before is not checked: it can be changed, and lose the name.
      expect(await create(endpoint('old', 'www.other.example.com', 'new.shop.example.com'))).toBe('admitted')
      expect(await create(endpoint('old', 'www.other.example.com', 'a.other.example.com'))).toContain(
        'a.other.example.com is not granted',
      )

      const metadata = { namespace: 'shop', name: 'web' }
      const sources: Record<string, (host: string) => Promise<unknown>> = {
        HTTPProxy: async (fqdn) =>
          client.create(HTTPProxy, { metadata, spec: { virtualhost: { fqdn }, routes: [] } as never }),
        Ingress: async (host) => client.create(Ingress, { metadata, spec: { rules: [{ host, http }] } } as never),
        'a certificate name of an Ingress': async (host) =>
          client.create(Ingress, {
            metadata: { ...metadata, name: 'named', annotations: { 'cert-manager.io/alt-names': host } },
            spec: { rules: [{ host: 'shop.example.com', http }] },
          } as never),
        HTTPRoute: async (host) =>
          client.create(HTTPRoute, { metadata, spec: { hostnames: [host], parentRefs: [{ name: 'edge' }] } }),
        Service: async (host) =>
          client.create(Service, {
            metadata: { ...metadata, annotations: { 'external-dns.alpha.kubernetes.io/hostname': host } },
            spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
          } as never),
      }
      for (const [what, request] of Object.entries(sources)) {
        const answers = [
          await write(async () => request('www.other.example.com')),
          await write(async () => request('shop.example.com')),
        ]
        expect({ what, answers }).toEqual({ what, answers: [expect.stringContaining(NOT_GRANTED), 'admitted'] })
      }
    } finally {
      stop.abort()
      await done
      await cluster.close()
    }
    expect(refused).toEqual([])
  })
})
