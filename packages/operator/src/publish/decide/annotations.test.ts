/** Annotations beyond contour-plus: each value is accepted or refused as a whole, with a reason. */
import { describe, expect, it } from 'vitest'
import { findingsOf } from './decide.ts'
import { annotated, behind, decideProxy, httpProxy, outcome } from '../../../testing/publish-fixture.ts'

const CM = 'cert-manager.io/'
const on = { annotations: true, exclude: true }

function spec(role: 'dns' | 'certificate', annotations: Record<string, string>, changes = on): unknown {
  const object = outcome(decideProxy(httpProxy(annotated(annotations)), changes), role)
  return typeof object === 'string' ? object : (object as { spec?: unknown }).spec
}

function reasons(annotations: Record<string, string>): string[] {
  return findingsOf(decideProxy(httpProxy(annotated(annotations)), on)).map((finding) => finding.reason)
}

describe('ExternalDNS annotations', () => {
  it.each(['external-dns.kubernetes.io/', 'external-dns.alpha.kubernetes.io/'])(
    'TTL, target, set identifier and provider settings under %s',
    (prefix) => {
      const annotations = {
        [`${prefix}ttl`]: '2m',
        [`${prefix}target`]: '192.0.2.9, 2001:DB8::9',
        [`${prefix}set-identifier`]: 'blue',
        [`${prefix}aws-weight`]: '10',
        [`${prefix}cloudflare-proxied`]: 'true',
        [`${prefix}alias`]: 'true',
      }
      const common = {
        dnsName: 'test.example.com',
        recordTTL: 120,
        setIdentifier: 'blue',
        providerSpecific: [
          { name: 'alias', value: 'true' },
          { name: 'aws/weight', value: '10' },
          { name: 'external-dns.alpha.kubernetes.io/cloudflare-proxied', value: 'true' },
        ],
      }
      expect(spec('dns', annotations)).toEqual({
        endpoints: [
          { ...common, recordType: 'A', targets: ['192.0.2.9'] },
          { ...common, recordType: 'AAAA', targets: ['2001:db8::9'] },
        ],
      })
    },
  )

  it('the new prefix wins; without the setting, nothing is read', () => {
    const both = { 'external-dns.kubernetes.io/ttl': '10', 'external-dns.alpha.kubernetes.io/ttl': '20' }
    expect(spec('dns', both)).toMatchObject({ endpoints: [{ recordTTL: 10 }] })
    expect(spec('dns', both, { annotations: false, exclude: false })).toMatchObject({
      endpoints: [{ recordTTL: 3600 }],
    })
  })

  it('a target annotation replaces a load balancer without an address, as CNAME for a host name', () => {
    const proxy = httpProxy(annotated({ 'external-dns.kubernetes.io/target': 'LB.example.net.' }))
    expect(outcome(decideProxy(proxy, on, behind()), 'dns')).toMatchObject({
      spec: { endpoints: [{ recordType: 'CNAME', targets: ['lb.example.net'] }] },
    })
  })

  it.each(['0', '-1', '2147483648', '1.5s', 'x', ''])('TTL %j is refused and the default stays', (ttl) => {
    expect(spec('dns', { 'external-dns.kubernetes.io/ttl': ttl })).toMatchObject({ endpoints: [{ recordTTL: 3600 }] })
    expect(reasons({ 'external-dns.kubernetes.io/ttl': ttl })).toEqual(['AnnotationInvalid'])
  })

  it.each([
    '',
    '0.0.0.0',
    '::',
    'a b',
    '*.example',
    '1.2.3',
    'a.example,b.example',
    '192.0.2.1,a.example',
    '999.1.1.1',
    'a..b',
    'x\r\ny',
  ])('target %j is refused and the load balancer stays', (target) => {
    expect(spec('dns', { 'external-dns.kubernetes.io/target': target })).toMatchObject({
      endpoints: [{ targets: ['10.0.0.0'] }],
    })
    expect(reasons({ 'external-dns.kubernetes.io/target': target })).toEqual(['AnnotationInvalid'])
  })
})

describe('exclude per child', () => {
  it.each([
    ['dns', 'unwanted Excluded', 'object'],
    ['tls', 'object', 'unwanted Excluded'],
    ['dns, tls', 'unwanted Excluded', 'unwanted Excluded'],
    ['other', 'object', 'object'],
  ])('%j', (value, dns, certificate) => {
    const decision = decideProxy(httpProxy(annotated({ 'seamark.io/exclude': value })), on)
    const short = (role: 'dns' | 'certificate'): string => {
      const found = outcome(decision, role)
      return typeof found === 'string' ? found : 'object'
    }
    expect([short('dns'), short('certificate')]).toEqual([dns, certificate])
  })
})

describe("cert-manager's annotations", () => {
  it.each<[string, Record<string, string>, object]>([
    [
      'duration and renew-before',
      { duration: '2160h', 'renew-before': '360h' },
      { duration: '2160h', renewBefore: '360h' },
    ],
    ['renew-before-percentage', { 'renew-before-percentage': '30' }, { renewBeforePercentage: 30 }],
    ['usages', { usages: 'server auth, client auth' }, { usages: ['server auth', 'client auth'] }],
    [
      'alt-names',
      { 'alt-names': 'B.example, *.c.example' },
      { dnsNames: ['test.example.com', 'b.example', '*.c.example'] },
    ],
    ['ip-sans', { 'ip-sans': '192.0.2.1' }, { ipAddresses: ['192.0.2.1'] }],
    [
      'common-name',
      { 'common-name': 'other.example' },
      { commonName: 'other.example', dnsNames: ['test.example.com'] },
    ],
    [
      'key handling without an algorithm',
      { 'private-key-encoding': 'PKCS8', 'private-key-rotation-policy': 'Always' },
      { privateKey: { encoding: 'PKCS8', rotationPolicy: 'Always' } },
    ],
    [
      'secret-template',
      { 'secret-template': '{"labels":{"a":"b"},"annotations":{"x/y":"z"}}' },
      { secretTemplate: { labels: { a: 'b' }, annotations: { 'x/y': 'z' } } },
    ],
  ])('%s', (_, annotations, expected) => {
    const prefixed = Object.fromEntries(Object.entries(annotations).map(([key, value]) => [`${CM}${key}`, value]))
    expect(spec('certificate', prefixed)).toMatchObject(expected)
    expect(spec('certificate', prefixed, { annotations: false, exclude: false })).toEqual(spec('certificate', {}))
  })

  it.each([
    ['duration', '59m'],
    ['duration', '90d'],
    ['duration', '3600'],
    ['duration', '9999999999h'],
    ['renew-before', '4m'],
    ['renew-before', '2160h'],
    ['renew-before-percentage', '0'],
    ['renew-before-percentage', '100'],
    ['usages', 'server auth, typing'],
    ['alt-names', 'a..b'],
    ['alt-names', Array.from({ length: 101 }, (_, index) => `h${index}.example`).join(',')],
    ['ip-sans', '1.2.3'],
    ['common-name', 'under_score.example'],
    ['private-key-encoding', 'PKCS7'],
    ['private-key-rotation-policy', 'Sometimes'],
    ['private-key-algorithm', 'DSA'],
    ['secret-template', '{'],
    ['secret-template', '{"data":{}}'],
    ['secret-template', '{"labels":{"a":"not valid!"}}'],
    ['secret-template', '{"annotations":{"cert-manager.io/x":"y"}}'],
    ['secret-template', '{"annotations":{"a/b/c":"y"}}'],
  ])('%s %j is refused with a reason', (key, value) => {
    expect(spec('certificate', { [`${CM}${key}`]: value })).toBe('held AnnotationInvalid')
  })

  it('an RSA key of 1024 bits and an ECDSA key of 300 are refused', () => {
    for (const [algorithm, size] of [
      ['RSA', '1024'],
      ['ECDSA', '300'],
      ['RSA', '16384'],
    ] as const) {
      expect(spec('certificate', { [`${CM}private-key-algorithm`]: algorithm, [`${CM}private-key-size`]: size })).toBe(
        'held AnnotationInvalid',
      )
    }
  })
})
