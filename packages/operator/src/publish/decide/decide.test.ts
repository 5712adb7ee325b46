/** The acceptance suite of contour-plus, as far as it concerns decisions; test/integration/publish-*.test.ts runs it on API servers. */
import { describe, expect, it } from 'vitest'
import { findingsOf } from './decide.ts'
import { unified } from '../options.ts'
import {
  annotated,
  behind,
  decideProxy,
  httpProxy,
  outcome,
  withClass,
  withHost,
  withVirtualHost,
} from '../../../testing/publish-fixture.ts'

const CP = 'contour-plus.cybozu.com/'
const CM = 'cert-manager.io/'

describe('the objects of fixture F', () => {
  it('U01: a DNSEndpoint and a Certificate, and no delegation', () => {
    const decision = decideProxy(httpProxy(), { namePrefix: 'test-' })
    const metadata = {
      name: 'test-foo',
      namespace: 'ns',
      annotations: { [`${CP}owned-by`]: 'ns/foo' },
      ownerReferences: [
        {
          apiVersion: 'projectcontour.io/v1',
          kind: 'HTTPProxy',
          name: 'foo',
          uid: 'uid-foo',
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    }
    expect(outcome(decision, 'dns')).toEqual({
      apiVersion: 'externaldns.k8s.io/v1alpha1',
      kind: 'DNSEndpoint',
      metadata,
      spec: { endpoints: [{ dnsName: 'test.example.com', recordType: 'A', recordTTL: 3600, targets: ['10.0.0.0'] }] },
    })
    expect(outcome(decision, 'delegation')).toBe('unwanted')
    expect(outcome(decision, 'certificate')).toEqual({
      apiVersion: 'cert-manager.io/v1',
      kind: 'Certificate',
      metadata,
      spec: {
        dnsNames: ['test.example.com'],
        commonName: 'test.example.com',
        secretName: 'test-secret',
        issuerRef: { kind: 'Issuer', name: 'test-issuer' },
        usages: ['digital signature', 'key encipherment', 'server auth'],
      },
    })
    expect(outcome(decision, 'tls-delegation')).toBe('unwanted')
    expect(findingsOf(decision)).toEqual([])
  })

  it('U02, D21: exclude "true" leaves everything unchanged; any other value has no effect', () => {
    const decision = decideProxy(httpProxy(annotated({ [`${CP}exclude`]: 'true' })))
    expect(outcome(decision, 'dns')).toBe('held')
    expect(outcome(decision, 'certificate')).toBe('held')
    expect(decision.findings.map((finding) => finding.reason)).toEqual(['Excluded'])
    expect(outcome(decideProxy(httpProxy(annotated({ [`${CP}exclude`]: 'True' }))), 'dns')).toBeTypeOf('object')
  })
})

describe('delegation', () => {
  const domain = { defaultDelegatedDomain: 'acme.example.com' }
  const asked = annotated({ [`${CP}delegated-domain`]: 'test.acme.example.com' })
  const target = (proxy = httpProxy(), changes = {}): unknown => {
    const object = outcome(decideProxy(proxy, changes), 'delegation')
    return typeof object === 'string' ? object : (object as { spec?: { endpoints: unknown[] } }).spec?.endpoints
  }
  const cname = (suffix: string): unknown[] => [
    {
      dnsName: '_acme-challenge.test.example.com',
      recordType: 'CNAME',
      recordTTL: 3600,
      targets: [`_acme-challenge.test.example.com.${suffix}`],
    },
  ]

  it.each([
    ['U03: the default domain', httpProxy(), domain, 'acme.example.com'],
    [
      'U04: an allowed annotation',
      httpProxy(asked),
      { ...domain, allowCustomDelegations: true, allowedDelegatedDomains: ['test.acme.example.com'] },
      'test.acme.example.com',
    ],
    ['U05: an empty allow-list', httpProxy(asked), { ...domain, allowCustomDelegations: true }, 'acme.example.com'],
    [
      'U06: annotations not allowed at all',
      httpProxy(asked),
      { ...domain, allowedDelegatedDomains: ['test.acme.example.com'] },
      'acme.example.com',
    ],
  ])('%s', (_, proxy, changes, suffix) => {
    expect(target(proxy, changes)).toEqual(cname(suffix))
  })

  it('an annotation outside the allow-list is reported, and the default domain is used', () => {
    const decision = decideProxy(httpProxy(asked), domain)
    expect(findingsOf(decision).map(({ reason }) => reason)).toEqual(['DelegationNotAllowed'])
    expect(findingsOf(decideProxy(httpProxy(), domain))).toEqual([])
  })

  it('a target longer than a name may be is held with a reason', () => {
    const host = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.example.com`
    expect(target(httpProxy(withHost(host)), { defaultDelegatedDomain: `${'d'.repeat(60)}.example.com` })).toBe(
      'held DelegationInvalid',
    )
  })
})

interface Cert {
  metadata: { name: string; namespace: string; annotations: Record<string, string>; labels?: Record<string, string> }
  spec: Record<string, unknown>
}

function certificate(...input: Parameters<typeof decideProxy>): Cert {
  return outcome(decideProxy(...input), 'certificate') as unknown as Cert
}

describe('the Certificate', () => {
  it.each([
    [
      'U07: default kind ClusterIssuer',
      {},
      { defaultIssuerKind: 'ClusterIssuer' },
      { kind: 'ClusterIssuer', name: 'test-issuer' },
    ],
    ['U08: annotation issuer', { [`${CM}issuer`]: 'custom' }, {}, { kind: 'Issuer', name: 'custom' }],
    [
      'U09: cluster-issuer wins over issuer',
      { [`${CM}issuer`]: 'custom', [`${CM}cluster-issuer`]: 'wide' },
      {},
      { kind: 'ClusterIssuer', name: 'wide' },
    ],
    [
      'U13: annotation without a default',
      { [`${CM}issuer`]: 'custom' },
      { defaultIssuerName: '' },
      { kind: 'Issuer', name: 'custom' },
    ],
  ] as const)('%s', (_, annotations, changes, expected) => {
    expect(certificate(httpProxy(annotated(annotations)), changes).spec['issuerRef']).toEqual(expected)
  })

  it.each([
    ['U10: Certificate is not among the kinds', httpProxy(), { children: ['DNSEndpoint'] }, 'held'],
    ['U12: tls-acme is not "true"', httpProxy(annotated({ 'kubernetes.io/tls-acme': 'aaa' })), {}, 'unwanted'],
    ['tls-acme "1" is not "true"', httpProxy(annotated({ 'kubernetes.io/tls-acme': '1' })), {}, 'unwanted'],
    ['U14: no issuer is named', httpProxy(), { defaultIssuerName: '' }, 'held IssuerNotNamed'],
    [
      'D15: TLS is passed through',
      httpProxy(withVirtualHost({ fqdn: 'a.example', tls: { passthrough: true } })),
      {},
      'unwanted TLSPassthrough',
    ],
    ['D17: the issuer annotation is empty', httpProxy(annotated({ [`${CM}issuer`]: '' })), {}, 'held IssuerNotNamed'],
    [
      'D18: the revision limit is not a number',
      httpProxy(annotated({ [`${CM}revision-history-limit`]: 'abc' })),
      {},
      'held AnnotationInvalid',
    ],
    [
      'the revision limit is 0, which the webhook refuses',
      httpProxy(annotated({ [`${CM}revision-history-limit`]: '0' })),
      {},
      'held AnnotationInvalid',
    ],
    [
      'the key algorithm is unknown',
      httpProxy(annotated({ [`${CM}private-key-algorithm`]: 'rsa' })),
      {},
      'held AnnotationInvalid',
    ],
    ['no TLS block', httpProxy(withVirtualHost({ fqdn: 'a.example' })), {}, 'unwanted'],
    [
      'Q15: the Secret belongs to another namespace',
      httpProxy(withVirtualHost({ fqdn: 'a.example', tls: { secretName: 'other/tls' } })),
      {},
      'unwanted SecretNotLocal',
    ],
    [
      'the name of the Secret is not an object name',
      httpProxy(withVirtualHost({ fqdn: 'a.example', tls: { secretName: 'My Secret' } })),
      {},
      'unwanted SecretNameInvalid',
    ],
  ] as const)('is not made when %s', (_, proxy, changes, expected) => {
    expect(outcome(decideProxy(proxy, changes), 'certificate')).toBe(expected)
  })

  it('U11: is created alone when DNSEndpoint is not among the kinds', () => {
    const decision = decideProxy(httpProxy(), { children: ['Certificate'] })
    expect(outcome(decision, 'dns')).toBe('held')
    expect((outcome(decision, 'certificate') as unknown as Cert).spec['secretName']).toBe('test-secret')
  })

  it.each([
    ['U17: the flag', {}, 1, 1],
    ['U18: the annotation', { [`${CM}revision-history-limit`]: '2' }, 0, 2],
    ['U19: the annotation over the flag', { [`${CM}revision-history-limit`]: '2' }, 1, 2],
    ['neither', {}, 0, undefined],
  ])('revisionHistoryLimit by %s', (_, annotations, revisionHistoryLimit, expected) => {
    expect(certificate(httpProxy(annotated(annotations)), { revisionHistoryLimit }).spec['revisionHistoryLimit']).toBe(
      expected,
    )
  })

  it.each([
    ['U20: algorithm alone', { algorithm: 'ECDSA' }, { algorithm: 'ECDSA' }],
    ['U21: algorithm and size', { algorithm: 'ECDSA', size: '384' }, { algorithm: 'ECDSA', size: 384 }],
    ['U22: a size that is not a number', { algorithm: 'RSA', size: 'four thousand ninty six' }, { algorithm: 'RSA' }],
    ['D19: a size without algorithm', { size: '384' }, undefined],
  ])('privateKey, %s', (_, keys, expected) => {
    const annotations = Object.fromEntries(
      Object.entries(keys).map(([key, value]) => [`${CM}private-key-${key}`, value]),
    )
    expect(certificate(httpProxy(annotated(annotations))).spec['privateKey']).toEqual(expected)
  })

  it('D32: a common name of 65 bytes is omitted and reported; one of 64 is kept', () => {
    const long = `${'a'.repeat(53)}.example.com`
    expect(certificate(httpProxy(withHost(long.slice(1)))).spec['commonName']).toBe(long.slice(1))
    const decision = decideProxy(httpProxy(withHost(long)))
    expect((outcome(decision, 'certificate') as unknown as Cert).spec).not.toHaveProperty('commonName')
    expect(findingsOf(decision).map((finding) => finding.reason)).toEqual(['CommonNameOmitted'])
  })

  it('D16: a wildcard host is taken verbatim', () => {
    const decision = decideProxy(httpProxy(withHost('*.x.io')))
    expect((outcome(decision, 'certificate') as unknown as Cert).spec).toMatchObject({
      dnsNames: ['*.x.io'],
      commonName: '*.x.io',
    })
    expect(outcome(decision, 'dns')).toMatchObject({ spec: { endpoints: [{ dnsName: '*.x.io' }] } })
  })
})

describe('propagation', () => {
  const key = 'example.com/propagate-me'
  const proxy = httpProxy(annotated({ [key]: 'yes', 'example.com/other': 'no' }), ({ metadata }) => {
    metadata.labels = { [key]: 'label', other: 'no' }
  })

  it('U23: only listed annotations, in contour-plus mode with owned-by in the secretTemplate', () => {
    const changes = { propagatedAnnotations: [key] }
    const owned = { [`${CP}owned-by`]: 'ns/foo', [key]: 'yes' }
    expect(certificate(proxy, changes).metadata.annotations).toEqual(owned)
    expect(certificate(proxy, changes).spec['secretTemplate']).toEqual({ annotations: owned })
    expect(outcome(decideProxy(proxy, changes), 'dns')).toMatchObject({ metadata: { annotations: owned } })
    const without = certificate(proxy, { ...changes, ownedByInSecretTemplate: unified.ownedByInSecretTemplate })
    expect(without.spec['secretTemplate']).toEqual({ annotations: { [key]: 'yes' } })
  })

  it('U24: only listed labels; nothing to propagate leaves the maps out', () => {
    expect(certificate(proxy, { propagatedLabels: [key] }).metadata.labels).toEqual({ [key]: 'label' })
    expect(certificate(proxy, { propagatedLabels: [key] }).spec['secretTemplate']).toEqual({
      labels: { [key]: 'label' },
    })
    expect(certificate(httpProxy(), { propagatedLabels: [key] }).metadata).not.toHaveProperty('labels')
    expect(certificate(httpProxy(), { propagatedLabels: [key] }).spec).not.toHaveProperty('secretTemplate')
  })

  it("keeps cert-manager's own annotations out of the secretTemplate, which its webhook would refuse", () => {
    const issuer = `${CM}issuer`
    const decision = decideProxy(httpProxy(annotated({ [issuer]: 'x' })), { propagatedAnnotations: [issuer] })
    expect(outcome(decision, 'certificate')).toMatchObject({ metadata: { annotations: { [issuer]: 'x' } } })
    expect((outcome(decision, 'certificate') as unknown as Cert).spec).not.toHaveProperty('secretTemplate')
    expect(findingsOf(decision).map((finding) => finding.reason)).toEqual(['AnnotationNotPropagated'])
  })
})

describe('children in other namespaces', () => {
  it('U25, U26: an allowed dns-namespace takes both DNSEndpoints, without owner references', () => {
    const changes = { allowedDnsNamespaces: ['dns'], defaultDelegatedDomain: 'acme.example.com' }
    const decision = decideProxy(httpProxy(annotated({ [`${CP}dns-namespace`]: 'dns' })), changes)
    const metadata = { namespace: 'dns', annotations: { [`${CP}owned-by`]: 'ns/foo' } }
    expect(outcome(decision, 'dns')).toMatchObject({ metadata: { ...metadata, name: 'ns-foo' } })
    expect(outcome(decision, 'dns')).not.toHaveProperty('metadata.ownerReferences')
    expect(outcome(decision, 'delegation')).toMatchObject({ metadata: { ...metadata, name: 'ns-foo-delegation' } })
  })

  it('U27: an allowed issuer-namespace takes Certificate and TLSCertificateDelegation and sets the secretName', () => {
    const proxy = httpProxy(annotated({ [`${CP}issuer-namespace`]: 'certs' }), withVirtualHost({ fqdn: 'a.example' }))
    const decision = decideProxy(proxy, { allowedIssuerNamespaces: ['certs'] })
    expect(outcome(decision, 'certificate')).toMatchObject({
      metadata: { name: 'ns-foo', namespace: 'certs' },
      spec: { secretName: 'ns-foo' },
    })
    expect(outcome(decision, 'tls-delegation')).toMatchObject({
      metadata: { name: 'ns-foo', namespace: 'certs' },
      spec: { delegations: [{ secretName: 'ns-foo', targetNamespaces: ['ns'] }] },
    })
    expect(decision.secretName).toBe('certs/ns-foo')
  })

  it('U28, U29, Q4: a namespace that is not allowed gets nothing; the objects stay in their own namespace under the foreign name, with a finding', () => {
    const proxy = httpProxy(annotated({ [`${CP}dns-namespace`]: 'dns', [`${CP}issuer-namespace`]: 'certs' }))
    const decision = decideProxy(proxy)
    expect(outcome(decision, 'dns')).toMatchObject({ metadata: { name: 'ns-foo', namespace: 'ns' } })
    expect(outcome(decision, 'certificate')).toMatchObject({
      metadata: { name: 'ns-foo', namespace: 'ns' },
      spec: { secretName: 'ns-foo' },
    })
    expect(outcome(decision, 'tls-delegation')).toBe('unwanted')
    expect(decision.secretName).toBeUndefined()
    expect(findingsOf(decision).map((finding) => finding.reason)).toEqual([
      'NamespaceNotAllowed',
      'NamespaceNotAllowed',
    ])
  })

  it('Q5: a request for the own namespace has no effect', () => {
    const proxy = httpProxy(annotated({ [`${CP}issuer-namespace`]: 'ns', [`${CP}dns-namespace`]: 'ns' }))
    const decision = decideProxy(proxy, { allowedIssuerNamespaces: ['ns'], allowedDnsNamespaces: ['ns'] })
    expect(outcome(decision, 'certificate')).toMatchObject({
      metadata: { name: 'foo' },
      spec: { secretName: 'test-secret' },
    })
    expect(outcome(decision, 'dns')).toMatchObject({ metadata: { name: 'foo' } })
    expect(decision.secretName).toBeUndefined()
  })

  it.each([
    ['Q6: a proxy without a virtual host', withVirtualHost(null)],
    ['Q7: passthrough', withVirtualHost({ fqdn: 'a.example', tls: { passthrough: true } })],
    ['Q7: no tls-acme', annotated({ 'kubernetes.io/tls-acme': 'false' })],
  ])('%s is never patched', (_, modify) => {
    const proxy = httpProxy(annotated({ [`${CP}issuer-namespace`]: 'certs' }), modify)
    const decision = decideProxy(proxy, { allowedIssuerNamespaces: ['certs'] })
    expect(decision.secretName).toBeUndefined()
    expect(outcome(decision, 'tls-delegation')).toMatch(/^unwanted/)
  })

  it('Q8: nor with Certificate disabled', () => {
    const proxy = httpProxy(annotated({ [`${CP}issuer-namespace`]: 'certs' }))
    const decision = decideProxy(proxy, { allowedIssuerNamespaces: ['certs'], children: ['DNSEndpoint'] })
    expect(decision.secretName).toBeUndefined()
  })
})

describe('the DNSEndpoint', () => {
  const endpoints = (...input: Parameters<typeof decideProxy>): unknown => {
    const object = outcome(decideProxy(...input), 'dns')
    return typeof object === 'string' ? object : (object as { spec?: { endpoints: unknown } }).spec?.endpoints
  }

  it('D01: A with both addresses in the order of the status, then AAAA', () => {
    const target = behind({ ip: '203.0.113.9' }, { ip: '2001:db8::1' }, { ip: '203.0.113.1' })
    expect(endpoints(httpProxy(), {}, target)).toEqual([
      { dnsName: 'test.example.com', recordType: 'A', recordTTL: 3600, targets: ['203.0.113.9', '203.0.113.1'] },
      { dnsName: 'test.example.com', recordType: 'AAAA', recordTTL: 3600, targets: ['2001:db8::1'] },
    ])
  })

  it('D02, D03: IPv6 alone is one AAAA in canonical form', () => {
    expect(endpoints(httpProxy(), {}, behind({ ip: '2001:DB8:0::1' }))).toEqual([
      { dnsName: 'test.example.com', recordType: 'AAAA', recordTTL: 3600, targets: ['2001:db8::1'] },
    ])
  })

  it('D04, Q3: a host name alone holds the DNSEndpoint in contour-plus mode, delegation and Certificate are written', () => {
    const decision = decideProxy(
      httpProxy(),
      { defaultDelegatedDomain: 'acme.example.com' },
      behind({ hostname: 'lb.example.net' }),
    )
    expect(outcome(decision, 'dns')).toBe('held HostnameTargetIgnored')
    expect(outcome(decision, 'delegation')).toBeTypeOf('object')
    expect(outcome(decision, 'certificate')).toBeTypeOf('object')
  })

  it('hostname-targets makes it a CNAME', () => {
    expect(endpoints(httpProxy(), { hostnameTargets: true }, behind({ hostname: 'LB.example.net.' }))).toEqual([
      { dnsName: 'test.example.com', recordType: 'CNAME', recordTTL: 3600, targets: ['lb.example.net'] },
    ])
  })

  it('D05: without an address the published records are held', () => {
    expect(endpoints(httpProxy(), {}, behind())).toBe('held NoLoadBalancerAddress')
    expect(endpoints(httpProxy(), {}, behind({ ip: '' }))).toBe('held NoLoadBalancerAddress')
  })

  it('Q13: an invalid address is skipped and reported', () => {
    const decision = decideProxy(httpProxy(), {}, behind({ ip: 'nonsense' }, { ip: '10.0.0.1' }))
    expect(outcome(decision, 'dns')).toMatchObject({ spec: { endpoints: [{ targets: ['10.0.0.1'] }] } })
    expect(findingsOf(decision).map((finding) => finding.reason)).toEqual(['TargetInvalid'])
  })

  it('U42: null virtualhost and null tls are no error; a source without a host is reported as such', () => {
    expect(decideProxy(httpProxy(withVirtualHost(null))).findings.map(({ reason }) => reason)).toEqual(['HostMissing'])
    expect(endpoints(httpProxy(withVirtualHost(null)))).toBe('unwanted')
    expect(endpoints(httpProxy(withVirtualHost({ fqdn: 'a.example', tls: null })))).toBeTypeOf('object')
    expect(endpoints({ metadata: { namespace: 'ns', name: 'bare' } })).toBe('unwanted')
  })

  it.each(['a..example', '*shop.example', `${'a'.repeat(64)}.example`])('the host %s is held and reported', (host) => {
    const decision = decideProxy(httpProxy(withHost(host)))
    expect(outcome(decision, 'dns')).toBe('held')
    expect(decision.findings.map(({ reason }) => reason)).toEqual(['HostInvalid'])
  })
})

describe('the class', () => {
  const flag = { ingressClassName: 'class-name' }
  const k8s = (value: string) => annotated({ 'kubernetes.io/ingress.class': value })
  const contour = (value: string) => annotated({ 'projectcontour.io/ingress.class': value })

  it.each([
    ['none set', [], false],
    ['empty spec', [withClass('')], false],
    ['both annotations match', [k8s('class-name'), contour('class-name')], true],
    ['all three match', [k8s('class-name'), contour('class-name'), withClass('class-name')], true],
    ['one annotation wrong', [k8s('wrong'), contour('class-name')], false],
    ['one annotation wrong though the spec matches', [k8s('wrong'), withClass('class-name')], false],
    ['only the Kubernetes annotation, right', [k8s('class-name')], true],
    ['only the Kubernetes annotation, wrong', [k8s('wrong')], false],
    ["only Contour's annotation, right", [contour('class-name')], true],
    ["only Contour's annotation, wrong", [contour('wrong')], false],
    ['only the spec, right', [withClass('class-name')], true],
    ['only the spec, wrong', [withClass('wrong')], false],
  ] as const)('U31, U15, U16: %s', (_, modifiers, isServed) => {
    const decision = decideProxy(httpProxy(...modifiers), flag)
    expect(typeof outcome(decision, 'certificate') === 'object').toBe(isServed)
    expect(typeof outcome(decision, 'dns') === 'object').toBe(isServed)
  })

  it('without a flag every class is served', () => {
    expect(outcome(decideProxy(httpProxy(k8s('any'))), 'dns')).toBeTypeOf('object')
  })
})
