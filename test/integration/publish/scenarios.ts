/**
 * The acceptance suite of contour-plus, scenario by scenario, by number: U from its own tests, D characterised from its
 * behaviour. publish-scenarios.test.ts runs every one on the embedded and on a real API server.
 */
import { ConfigMap, Service } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { Certificate, DNSEndpoint, HTTPProxy, type PublishOptions } from '@seamark/operator'
import { expect } from 'vitest'
import { type Bench, endpointsOf, SERVICE } from './bench.ts'
import { setAddresses } from './test-environment.ts'

export interface Scenario {
  readonly title: string
  readonly run: (bench: Bench) => Promise<void>
}

const CP = 'contour-plus.cybozu.com/'
const CM = 'cert-manager.io/'
const delegated = { defaultDelegatedDomain: 'acme.example.com' }

type Options = Partial<PublishOptions>

/** F with annotations, under options: the Certificate's spec. */
async function certificateSpec(
  bench: Bench,
  annotations: Record<string, string>,
  options: Options = {},
): Promise<Certificate['spec']> {
  await using _app = bench.run(options)
  await bench.proxy({ annotations })
  return (await bench.certificate('ns/foo')).spec
}

async function childrenOf(bench: Bench, annotations: Record<string, string>, options: Options = {}): Promise<string[]> {
  await using _app = bench.run(options)
  await bench.proxy({ annotations })
  await bench.settled()
  return await bench.children()
}

async function delegationTarget(
  bench: Bench,
  annotations: Record<string, string>,
  options: Options,
): Promise<string[]> {
  await using _app = bench.run(options)
  await bench.proxy({ annotations })
  return endpointsOf(await bench.dns('ns/foo-delegation'))
}

const challenge = (suffix: string) => [
  `_acme-challenge.test.example.com 3600 CNAME _acme-challenge.test.example.com.${suffix}`,
]

export const scenarios: readonly Scenario[] = [
  {
    title: 'U01: DNSEndpoint and Certificate, no delegation',
    async run(bench) {
      await using _app = bench.run({ namePrefix: 'test-' })
      await bench.proxy()
      expect(endpointsOf(await bench.dns('ns/test-foo'))).toEqual(['test.example.com 3600 A 10.0.0.0'])
      const { spec } = await bench.certificate('ns/test-foo')
      expect(spec).toEqual({
        dnsNames: ['test.example.com'],
        commonName: 'test.example.com',
        secretName: 'test-secret',
        issuerRef: { kind: 'Issuer', name: 'test-issuer' },
        usages: ['digital signature', 'key encipherment', 'server auth'],
      })
      await bench.settled()
      expect(await bench.children()).toEqual(['Certificate ns/test-foo', 'DNSEndpoint ns/test-foo'])
    },
  },
  {
    title: 'U02: exclude "true" makes nothing',
    run: async (bench) => expect(await childrenOf(bench, { [`${CP}exclude`]: 'true' })).toEqual([]),
  },
  {
    title: 'U03: the default delegated domain',
    run: async (bench) => expect(await delegationTarget(bench, {}, delegated)).toEqual(challenge('acme.example.com')),
  },
  {
    title: 'U04: an allowed custom delegation',
    async run(bench) {
      const options = { ...delegated, allowCustomDelegations: true, allowedDelegatedDomains: ['test.acme.example.com'] }
      expect(await delegationTarget(bench, { [`${CP}delegated-domain`]: 'test.acme.example.com' }, options)).toEqual(
        challenge('test.acme.example.com'),
      )
    },
  },
  {
    title: 'U05: an empty allow-list ignores the annotation',
    async run(bench) {
      const options = { ...delegated, allowCustomDelegations: true }
      expect(await delegationTarget(bench, { [`${CP}delegated-domain`]: 'test.acme.example.com' }, options)).toEqual(
        challenge('acme.example.com'),
      )
    },
  },
  {
    title: 'U06: custom delegations off ignores the annotation',
    run: async (bench) =>
      expect(
        await delegationTarget(
          bench,
          { [`${CP}delegated-domain`]: 'x.example.com' },
          { ...delegated, allowedDelegatedDomains: ['x.example.com'] },
        ),
      ).toEqual(challenge('acme.example.com')),
  },
  {
    title: 'U07: default kind ClusterIssuer',
    run: async (bench) =>
      expect((await certificateSpec(bench, {}, { defaultIssuerKind: 'ClusterIssuer' })).issuerRef).toMatchObject({
        kind: 'ClusterIssuer',
        name: 'test-issuer',
      }),
  },
  {
    title: 'U08: the issuer annotation',
    run: async (bench) =>
      expect((await certificateSpec(bench, { [`${CM}issuer`]: 'custom-issuer' })).issuerRef).toMatchObject({
        kind: 'Issuer',
        name: 'custom-issuer',
      }),
  },
  {
    title: 'U09: cluster-issuer wins over issuer',
    run: async (bench) =>
      expect(
        (await certificateSpec(bench, { [`${CM}issuer`]: 'a', [`${CM}cluster-issuer`]: 'custom-cluster-issuer' }))
          .issuerRef,
      ).toMatchObject({ kind: 'ClusterIssuer', name: 'custom-cluster-issuer' }),
  },
  {
    title: 'U10: crds=DNSEndpoint',
    run: async (bench) =>
      expect(await childrenOf(bench, {}, { children: ['DNSEndpoint'] })).toEqual(['DNSEndpoint ns/foo']),
  },
  {
    title: 'U11: crds=Certificate',
    async run(bench) {
      await using _app = bench.run({ children: ['Certificate'] })
      await bench.proxy()
      expect((await bench.certificate('ns/foo')).spec.secretName).toBe('test-secret')
      expect(await bench.children()).toEqual(['Certificate ns/foo'])
    },
  },
  {
    title: 'U12: tls-acme "aaa" makes no Certificate',
    run: async (bench) =>
      expect(await childrenOf(bench, { 'kubernetes.io/tls-acme': 'aaa' })).toEqual(['DNSEndpoint ns/foo']),
  },
  {
    title: 'U13: no default issuer, annotation issuer',
    run: async (bench) =>
      expect(
        (await certificateSpec(bench, { [`${CM}issuer`]: 'custom-issuer' }, { defaultIssuerName: '' })).issuerRef,
      ).toMatchObject({ kind: 'Issuer', name: 'custom-issuer' }),
  },
  {
    title: 'U14: no issuer at all makes no Certificate',
    run: async (bench) =>
      expect(await childrenOf(bench, {}, { defaultIssuerName: '' })).toEqual(['DNSEndpoint ns/foo']),
  },
  {
    title: 'U15: a wrong class and no class make nothing',
    async run(bench) {
      await using _app = bench.run({ ingressClassName: 'class-name' })
      await bench.proxy({ annotations: { 'kubernetes.io/ingress.class': 'wrong' } })
      await bench.proxy({ metadata: { name: 'bar' } })
      await bench.settled()
      expect(await bench.children()).toEqual([])
    },
  },
  {
    title: 'U16: the right class',
    async run(bench) {
      await using _app = bench.run({ ingressClassName: 'class-name' })
      await bench.proxy({ annotations: { 'kubernetes.io/ingress.class': 'class-name' } })
      await bench.certificate('ns/foo')
      await bench.dns('ns/foo')
    },
  },
  {
    title: 'U17: csr-revision-limit',
    run: async (bench) =>
      expect((await certificateSpec(bench, {}, { revisionHistoryLimit: 1 })).revisionHistoryLimit).toBe(1),
  },
  {
    title: 'U18: the revision annotation',
    run: async (bench) =>
      expect((await certificateSpec(bench, { [`${CM}revision-history-limit`]: '2' })).revisionHistoryLimit).toBe(2),
  },
  {
    title: 'U19: annotation over flag',
    run: async (bench) =>
      expect(
        (await certificateSpec(bench, { [`${CM}revision-history-limit`]: '2' }, { revisionHistoryLimit: 1 }))
          .revisionHistoryLimit,
      ).toBe(2),
  },
  {
    title: 'U20: key algorithm',
    run: async (bench) =>
      expect((await certificateSpec(bench, { [`${CM}private-key-algorithm`]: 'ECDSA' })).privateKey).toEqual({
        algorithm: 'ECDSA',
      }),
  },
  {
    title: 'U21: key size',
    run: async (bench) =>
      expect(
        (await certificateSpec(bench, { [`${CM}private-key-algorithm`]: 'ECDSA', [`${CM}private-key-size`]: '384' }))
          .privateKey,
      ).toEqual({ algorithm: 'ECDSA', size: 384 }),
  },
  {
    title: 'U22: a key size that is no number',
    run: async (bench) =>
      expect(
        (
          await certificateSpec(bench, {
            [`${CM}private-key-algorithm`]: 'RSA',
            [`${CM}private-key-size`]: 'four thousand ninty six',
          })
        ).privateKey,
      ).toEqual({ algorithm: 'RSA' }),
  },
  {
    title: 'U23: propagated annotations',
    async run(bench) {
      await using _app = bench.run({ propagatedAnnotations: ['example.com/propagate-me'] })
      await bench.proxy({ annotations: { 'example.com/propagate-me': 'yes', 'example.com/other': 'no' } })
      const expected = { 'example.com/propagate-me': 'yes', [`${CP}owned-by`]: 'ns/foo' }
      const certificate = await bench.certificate('ns/foo')
      expect(certificate.metadata.annotations).toEqual(expected)
      expect(certificate.spec.secretTemplate).toEqual({ annotations: expected })
      expect((await bench.dns('ns/foo')).metadata.annotations).toEqual(expected)
    },
  },
  {
    title: 'U24: propagated labels',
    async run(bench) {
      await using _app = bench.run({ propagatedLabels: ['example.com/propagate-me'] })
      await bench.proxy({
        metadata: {
          labels: { 'example.com/propagate-me': 'yes', other: 'no' },
          annotations: { 'kubernetes.io/tls-acme': 'true' },
        },
      })
      const certificate = await bench.certificate('ns/foo')
      expect(certificate.metadata.labels).toEqual({ 'example.com/propagate-me': 'yes' })
      expect(certificate.spec.secretTemplate).toEqual({ labels: { 'example.com/propagate-me': 'yes' } })
      expect((await bench.dns('ns/foo')).metadata.labels).toEqual({ 'example.com/propagate-me': 'yes' })
    },
  },
  {
    title: 'U25, U26: DNSEndpoints in an allowed namespace, gone with the proxy',
    async run(bench) {
      await using _app = bench.run({ allowedDnsNamespaces: ['dns'], children: ['DNSEndpoint'], ...delegated })
      await bench.proxy({ annotations: { [`${CP}dns-namespace`]: 'dns' } })
      await bench.dns('dns/ns-foo')
      await bench.dns('dns/ns-foo-delegation')
      expect(await bench.children()).toEqual(['DNSEndpoint dns/ns-foo', 'DNSEndpoint dns/ns-foo-delegation'])
      await bench.client.delete(HTTPProxy, 'ns/foo')
      await bench.untilChildren(0)
      await bench.eventually('the proxy to go', async () =>
        (await bench.client.find(HTTPProxy, 'ns/foo')) === undefined ? true : undefined,
      )
    },
  },
  {
    title: 'U27: Certificate and delegation in an allowed namespace, secretName set, gone with the proxy',
    async run(bench) {
      await using _app = bench.run({ allowedIssuerNamespaces: ['certs'], children: ['Certificate'] })
      await bench.proxy({
        annotations: { [`${CP}issuer-namespace`]: 'certs' },
        spec: { virtualhost: { fqdn: 'test.example.com' } },
      })
      expect((await bench.certificate('certs/ns-foo')).spec.secretName).toBe('ns-foo')
      expect((await bench.delegation('certs/ns-foo')).spec).toEqual({
        delegations: [{ secretName: 'ns-foo', targetNamespaces: ['ns'] }],
      })
      expect(await bench.children()).toEqual(['Certificate certs/ns-foo', 'TLSCertificateDelegation certs/ns-foo'])
      const patched = await bench.eventually(
        'the patch',
        async () => bench.client.find(HTTPProxy, 'ns/foo'),
        (proxy) => proxy.spec?.virtualhost?.tls?.secretName === 'certs/ns-foo',
      )
      expect(patched.metadata.finalizers).toEqual([`${CP}finalizer`])
      await bench.client.delete(HTTPProxy, 'ns/foo')
      await bench.untilChildren(0)
    },
  },
  {
    title: 'U28: a dns-namespace that is not allowed gets nothing',
    run: async (bench) =>
      expect(await childrenOf(bench, { [`${CP}dns-namespace`]: 'dns' }, { children: ['DNSEndpoint'] })).toEqual([
        'DNSEndpoint ns/ns-foo',
      ]),
  },
  {
    title: 'U29: an issuer-namespace that is not allowed gets nothing',
    run: async (bench) =>
      expect(
        (await childrenOf(bench, { [`${CP}issuer-namespace`]: 'certs' })).filter((child) => child.includes('certs/')),
      ).toEqual([]),
  },
  {
    title: 'U30, U35–U38: with the apply limit, new and changed Certificates come through the queue, metadata at once',
    async run(bench) {
      const certificateApply = { perSecond: 10, retryBaseMs: 100, retryMaxMs: 1_000 }
      await using _app = bench.run({ certificateApply, propagatedAnnotations: ['example.com/p'] })
      await bench.proxy()
      await bench.certificate('ns/foo')
      await bench.annotate('ns/foo', { 'example.com/p': 'x' })
      await bench.certificate('ns/foo', (object) => object.metadata.annotations?.['example.com/p'] === 'x')
      await bench.annotate('ns/foo', { [`${CM}private-key-algorithm`]: 'ECDSA' })
      await bench.certificate('ns/foo', (object) => object.spec.privateKey?.algorithm === 'ECDSA')
    },
  },
  {
    title:
      'U41: on children written by contour-plus the first start writes nothing, and its own re-apply changes nothing',
    async run(bench) {
      const proxy = await bench.proxy()
      await bench.proxy({
        metadata: { name: 'far' },
        annotations: { [`${CP}dns-namespace`]: 'dns' },
        spec: { virtualhost: { fqdn: 'far.example.com' } },
      })
      const originals = originalChildren(proxy)
      for (const { kind, object } of originals)
        await bench.client.apply<Obj>(kind, object, { fieldManager: 'contour-plus', force: true })
      await bench.client.delete(HTTPProxy, 'ns/far')
      const before = await bench.versions()
      {
        await using app = bench.run({ ...delegated })
        // Its decision on a proxy made later shows that it has decided all of them.
        await bench.client.create(HTTPProxy, {
          metadata: { namespace: 'ns2', name: 'late' },
          spec: { routes: [], virtualhost: { fqdn: 'late.example.com' } } as NonNullable<HTTPProxy['spec']>,
        })
        await bench.dns('ns2/late')
        await bench.dns('ns2/late-delegation')
        bench.expectWrites(app, 2)
      }
      const after = (await bench.versions()).filter((line) => !line.includes('/late'))
      expect(after).toEqual(before)
      for (const { kind, object } of originals)
        await bench.client.apply<Obj>(kind, object, { fieldManager: 'contour-plus', force: true })
      expect((await bench.versions()).filter((line) => !line.includes('/late'))).toEqual(before)
    },
  },
  {
    title: 'U42: a proxy without a virtual host makes nothing and breaks nothing',
    async run(bench) {
      await using _app = bench.run({ allowedIssuerNamespaces: ['certs'] })
      await bench.proxy({ spec: {}, annotations: { [`${CP}issuer-namespace`]: 'certs' } })
      await bench.settled()
      expect(await bench.children()).toEqual([])
    },
  },
  {
    title: 'D01, D02, D03, D06: addresses by family and order, canonical, followed without an edit of the proxy',
    async run(bench) {
      await using _app = bench.run({ children: ['DNSEndpoint'] })
      await bench.proxy()
      await bench.dns('ns/foo')
      await setAddresses(bench.client, SERVICE, [{ ip: '203.0.113.9' }, { ip: '2001:db8::1' }, { ip: '203.0.113.1' }])
      const both = await bench.dns('ns/foo', (object) => object.spec.endpoints.length === 2)
      expect(endpointsOf(both)).toEqual([
        'test.example.com 3600 A 203.0.113.9,203.0.113.1',
        'test.example.com 3600 AAAA 2001:db8::1',
      ])
      await setAddresses(bench.client, SERVICE, [{ ip: '2001:db8::2' }])
      expect(endpointsOf(await bench.dns('ns/foo', (object) => object.spec.endpoints.length === 1))).toEqual([
        'test.example.com 3600 AAAA 2001:db8::2',
      ])
    },
  },
  {
    title: 'D04: a host name alone makes no DNSEndpoint; delegation and Certificate are made',
    async run(bench) {
      await setAddresses(bench.client, SERVICE, [{ hostname: 'lb.example.net' }])
      expect(await childrenOf(bench, {}, delegated).catch(() => bench.children())).toEqual([
        'Certificate ns/foo',
        'DNSEndpoint ns/foo-delegation',
      ])
    },
  },
  {
    title: 'D05: an address that goes away leaves the DNSEndpoint',
    async run(bench) {
      await using _app = bench.run({ ...delegated, children: ['DNSEndpoint'] })
      await bench.proxy()
      const before = await bench.dns('ns/foo')
      await setAddresses(bench.client, SERVICE, [])
      await bench.settled()
      await bench.proxy({ metadata: { name: 'late' } })
      await bench.dns('ns/late-delegation')
      expect((await bench.dns('ns/foo')).metadata.resourceVersion).toBe(before.metadata.resourceVersion)
    },
  },
  {
    title: 'D07, Q14: without the Service no DNSEndpoint, but the Certificate; it comes with the Service',
    async run(bench) {
      await bench.client.delete(Service, SERVICE)
      await using _app = bench.run()
      await bench.proxy()
      await bench.certificate('ns/foo')
      expect(await bench.children()).toEqual(['Certificate ns/foo'])
      await bench.restoreService()
      await bench.dns('ns/foo')
    },
  },
  {
    title: 'D08, D29, D30: unrelated Services, status updates and time cause no write',
    async run(bench) {
      await using app = bench.run()
      await bench.proxy()
      await bench.dns('ns/foo')
      await bench.certificate('ns/foo')
      await bench.settled()
      const { count } = app.writes
      const before = await bench.versions()
      await bench.client.create(Service, {
        metadata: { namespace: 'ns', name: 'other' },
        spec: { ports: [{ port: 80 }] },
      })
      await bench.client.delete(Service, 'ns/other')
      await bench.client.patch(
        HTTPProxy,
        'ns/foo',
        'merge',
        { status: { currentStatus: 'invalid' } },
        { subresource: 'status' },
      )
      await bench.client.patch(Service, SERVICE, 'merge', { metadata: { annotations: { touched: 'yes' } } })
      await bench.settled()
      bench.expectWrites(app, count + bench.settlingWrites)
      expect((await bench.versions()).filter((line) => !line.startsWith('HTTPProxy'))).toEqual(
        before.filter((line) => !line.startsWith('HTTPProxy')),
      )
    },
  },
  {
    title: 'D09: a changed host updates the same objects',
    async run(bench) {
      await using _app = bench.run()
      await bench.proxy()
      const { metadata } = await bench.dns('ns/foo')
      await bench.certificate('ns/foo')
      await bench.client.patch(HTTPProxy, 'ns/foo', 'merge', { spec: { virtualhost: { fqdn: 'new.example.com' } } })
      expect(
        (await bench.dns('ns/foo', (object) => object.spec.endpoints[0]?.dnsName === 'new.example.com')).metadata.uid,
      ).toBe(metadata.uid)
      await bench.certificate(
        'ns/foo',
        (object) => object.spec.dnsNames[0] === 'new.example.com' && object.spec.commonName === 'new.example.com',
      )
    },
  },
  {
    title: 'D10, D12: a deleted child comes back, an edited spec is reverted, foreign metadata stays',
    async run(bench) {
      await using _app = bench.run({ children: ['DNSEndpoint'], propagatedAnnotations: ['example.com/p'] })
      await bench.proxy({ annotations: { 'example.com/p': 'x' } })
      const { metadata } = await bench.dns('ns/foo', (object) => object.metadata.annotations?.['example.com/p'] === 'x')
      await bench.client.delete(DNSEndpoint, 'ns/foo')
      await bench.dns('ns/foo', (object) => object.metadata.uid !== metadata.uid)
      await bench.client.patch(DNSEndpoint, 'ns/foo', 'merge', {
        metadata: { labels: { mine: 'yes' }, annotations: { note: 'mine' } },
      })
      await bench.client.patch(DNSEndpoint, 'ns/foo', 'merge', { spec: { endpoints: [] } })
      const reverted = await bench.dns('ns/foo', (object) => object.spec.endpoints.length === 1)
      expect([reverted.metadata.labels, reverted.metadata.annotations?.['note']]).toEqual([{ mine: 'yes' }, 'mine'])
      await bench.annotate('ns/foo', { 'example.com/p': null })
      await bench.dns('ns/foo', (object) => object.metadata.annotations?.['example.com/p'] === undefined)
    },
  },
  {
    title: 'D11: a child in another namespace comes back too',
    async run(bench) {
      await using _app = bench.run({ children: ['DNSEndpoint'], allowedDnsNamespaces: ['dns'] })
      await bench.proxy({ annotations: { [`${CP}dns-namespace`]: 'dns' } })
      const { metadata } = await bench.dns('dns/ns-foo')
      await bench.client.delete(DNSEndpoint, 'dns/ns-foo')
      await bench.dns('dns/ns-foo', (object) => object.metadata.uid !== metadata.uid)
    },
  },
  {
    title: 'D13: an excluded proxy with a finalizer still cleans up',
    async run(bench) {
      await using _app = bench.run({ children: ['DNSEndpoint'], allowedDnsNamespaces: ['dns'] })
      await bench.proxy({ annotations: { [`${CP}dns-namespace`]: 'dns' } })
      await bench.dns('dns/ns-foo')
      await bench.annotate('ns/foo', { [`${CP}exclude`]: 'true' })
      await bench.client.delete(HTTPProxy, 'ns/foo')
      await bench.untilChildren(0)
    },
  },
  {
    title: 'D14: no finalizer while everything is at home',
    async run(bench) {
      await using _app = bench.run()
      await bench.proxy()
      await bench.dns('ns/foo')
      await bench.certificate('ns/foo')
      expect((await bench.client.get(HTTPProxy, 'ns/foo')).metadata.finalizers).toBeUndefined()
    },
  },
  {
    title: 'D15: TLS passthrough makes the DNSEndpoint only',
    async run(bench) {
      await using _app = bench.run()
      await bench.proxy({ spec: { virtualhost: { fqdn: 'a.example.com', tls: { passthrough: true } } } })
      await bench.settled()
      expect(await bench.children()).toEqual(['DNSEndpoint ns/foo'])
    },
  },
  {
    title: 'D16: a wildcard host',
    async run(bench) {
      await using _app = bench.run()
      await bench.proxy({ spec: { virtualhost: { fqdn: '*.x.io', tls: { secretName: 's' } } } })
      expect(endpointsOf(await bench.dns('ns/foo'))).toEqual(['*.x.io 3600 A 10.0.0.0'])
      expect((await bench.certificate('ns/foo')).spec).toMatchObject({ dnsNames: ['*.x.io'], commonName: '*.x.io' })
    },
  },
  {
    title: 'D17: an empty issuer annotation',
    run: async (bench) => expect(await childrenOf(bench, { [`${CM}issuer`]: '' })).toEqual(['DNSEndpoint ns/foo']),
  },
  {
    title: 'D18: a revision limit that is no number, without a retry storm',
    async run(bench) {
      await using app = bench.run()
      await bench.proxy({ annotations: { [`${CM}revision-history-limit`]: 'abc' } })
      await bench.settled()
      expect(await bench.children()).toEqual(['DNSEndpoint ns/foo'])
      // The proxy's record, the probe's record, and at most one Event each.
      if (bench.environment.isCounting) expect(app.writes.count).toBeLessThanOrEqual(4)
    },
  },
  {
    title: 'D19: a key size without an algorithm',
    run: async (bench) =>
      expect(await certificateSpec(bench, { [`${CM}private-key-size`]: '384' })).not.toHaveProperty('privateKey'),
  },
  {
    title: 'D20: tls-acme removed keeps the Certificate (strict), prunes it (improved)',
    async run(bench) {
      {
        await using _app = bench.run()
        await bench.proxy()
        await bench.certificate('ns/foo')
        await bench.annotate('ns/foo', { 'kubernetes.io/tls-acme': null })
        await bench.settled()
        expect(await bench.children()).toEqual(['Certificate ns/foo', 'DNSEndpoint ns/foo'])
      }
      await using _app = bench.run({ prune: true })
      await bench.eventually(
        'the Certificate to go',
        async () => bench.children(),
        (children) => children.join() === 'DNSEndpoint ns/foo',
      )
    },
  },
  {
    title: 'D21: exclude added later leaves the children and stops updating them',
    async run(bench) {
      await using _app = bench.run()
      await bench.proxy()
      await bench.certificate('ns/foo')
      const { metadata } = await bench.dns('ns/foo')
      await bench.annotate('ns/foo', { [`${CP}exclude`]: 'true' })
      await bench.client.patch(HTTPProxy, 'ns/foo', 'merge', { spec: { virtualhost: { fqdn: 'new.example.com' } } })
      await bench.settled()
      expect((await bench.dns('ns/foo')).metadata.resourceVersion).toBe(metadata.resourceVersion)
    },
  },
  {
    title: 'D22: owner reference, owned-by and field manager to the letter',
    async run(bench) {
      await using _app = bench.run()
      const proxy = await bench.proxy()
      for (const object of [await bench.dns('ns/foo'), await bench.certificate('ns/foo')]) {
        expect(object.metadata.ownerReferences).toEqual([
          {
            apiVersion: 'projectcontour.io/v1',
            kind: 'HTTPProxy',
            name: 'foo',
            uid: proxy.metadata.uid,
            controller: true,
            blockOwnerDeletion: true,
          },
        ])
        expect(object.metadata.annotations).toEqual({ [`${CP}owned-by`]: 'ns/foo' })
        expect(object.metadata.managedFields?.map(({ manager, operation }) => `${manager} ${operation}`)).toEqual([
          'contour-plus Apply',
        ])
      }
    },
  },
  {
    title: 'D23: an ownerless Certificate is taken over, one with another controller is left alone',
    async run(bench) {
      const spec = {
        dnsNames: ['x.example.com'],
        secretName: 'x',
        issuerRef: { kind: 'Issuer', name: 'x' },
        usages: ['server auth'],
      }
      await bench.client.create(Certificate, { metadata: { namespace: 'ns', name: 'foo' }, spec })
      const owner = await bench.client.create(ConfigMap, { metadata: { namespace: 'ns', name: 'other' } })
      const ownerReferences = [
        { apiVersion: 'v1', kind: 'ConfigMap', name: 'other', uid: owner.metadata.uid ?? '', controller: true },
      ]
      await bench.client.create(Certificate, { metadata: { namespace: 'ns', name: 'bar', ownerReferences }, spec })
      await using _app = bench.run()
      await bench.proxy()
      await bench.proxy({ metadata: { name: 'bar' } })
      await bench.certificate('ns/foo', (object) => object.spec.secretName === 'test-secret')
      await bench.dns('ns/bar')
      await bench.settled()
      expect((await bench.client.get(Certificate, 'ns/bar')).spec.secretName).toBe('x')
      await bench.client.delete(ConfigMap, 'ns/other')
    },
  },
  {
    title: 'D31: two proxies of one host get two of each',
    async run(bench) {
      await using _app = bench.run()
      await bench.proxy()
      await bench.proxy({ metadata: { name: 'bar' } })
      for (const key of ['ns/foo', 'ns/bar']) await Promise.all([bench.dns(key), bench.certificate(key)])
      expect((await bench.children()).length).toBe(4)
    },
  },
  {
    title: 'D32: a host of more than 64 bytes has no common name',
    async run(bench) {
      await using _app = bench.run()
      const fqdn = `${'a'.repeat(60)}.example.com`
      await bench.proxy({ spec: { virtualhost: { fqdn, tls: { secretName: 's' } } } })
      const { spec } = await bench.certificate('ns/foo')
      expect([spec.dnsNames, spec.commonName]).toEqual([[fqdn], undefined])
    },
  },
  {
    title: 'D33: ten new proxies under a limit of 5 a second: none before the base delay, then spread',
    async run(bench) {
      await using _app = bench.run({
        children: ['Certificate'],
        certificateApply: { perSecond: 5, retryBaseMs: 300, retryMaxMs: 1_000 },
      })
      const { waiting } = bench.environment
      const started = waiting.now()
      for (let index = 0; index < 10; index++) await bench.proxy({ metadata: { name: `p${index}` } })
      await bench.untilChildren(10)
      // Burst 5, then five more at five a second.
      expect(waiting.now() - started).toBeGreaterThanOrEqual(300 + 900)
    },
  },
]

/** As contour-plus 0.16.2 leaves them for fixture F with a delegated domain. */
function originalChildren(proxy: HTTPProxy) {
  const metadata = (name: string) => ({
    name,
    namespace: 'ns',
    annotations: { [`${CP}owned-by`]: 'ns/foo' },
    ownerReferences: [
      {
        apiVersion: 'projectcontour.io/v1',
        kind: 'HTTPProxy',
        name: 'foo',
        uid: proxy.metadata.uid ?? '',
        controller: true,
        blockOwnerDeletion: true,
      },
    ],
  })
  const host = 'test.example.com'
  return [
    {
      kind: DNSEndpoint,
      object: {
        metadata: metadata('foo'),
        spec: { endpoints: [{ dnsName: host, recordType: 'A', recordTTL: 3600, targets: ['10.0.0.0'] }] },
      },
    },
    {
      kind: DNSEndpoint,
      object: {
        metadata: metadata('foo-delegation'),
        spec: {
          endpoints: [
            {
              dnsName: `_acme-challenge.${host}`,
              recordType: 'CNAME',
              recordTTL: 3600,
              targets: [`_acme-challenge.${host}.acme.example.com`],
            },
          ],
        },
      },
    },
    {
      kind: Certificate,
      object: {
        metadata: metadata('foo'),
        spec: {
          dnsNames: [host],
          commonName: host,
          secretName: 'test-secret',
          issuerRef: { kind: 'Issuer', name: 'test-issuer' },
          usages: ['digital signature', 'key encipherment', 'server auth'],
        },
      },
    },
  ]
}
