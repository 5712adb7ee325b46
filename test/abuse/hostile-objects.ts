/**
 * Objects that a tenant may have stored, within and outside of the schema: the CRD may be older, absent or another project's, and
 * annotations have no schema at all. For fast-check: what fails shrinks to one field of one object.
 */
import { Ingress, Service } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import type { Kind, Obj } from '@seamark/kube/object'
import { DNSEndpoint, DNSLoadBalancer, DNSLoadBalancerEndpoint } from '@seamark/operator'
import fc from 'fast-check'

export interface HostileObject {
  readonly kind: string
  readonly object: Obj
}

const HOST = 'x.example.test'
const backend = { service: { name: 'web', port: { number: 80 } } }
const address = { loadBalancer: { ingress: [{ ip: '192.0.2.9' }] } }

/** What is valid: the arbitrary replaces one part of it. */
const VALID: readonly { readonly kind: Kind; readonly spec: object; readonly status?: object }[] = [
  {
    kind: DNSEndpoint,
    spec: {
      endpoints: [
        {
          dnsName: HOST,
          recordType: 'A',
          recordTTL: 60,
          targets: ['192.0.2.9'],
          labels: { a: 'b' },
          providerSpecific: [{ name: 'a', value: 'b' }],
        },
      ],
    },
  },
  {
    kind: Ingress,
    spec: {
      ingressClassName: 'local',
      defaultBackend: backend,
      rules: [{ host: HOST, http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }],
      tls: [{ hosts: [HOST], secretName: 'cert' }],
    },
    status: address,
  },
  {
    kind: HTTPProxy,
    spec: {
      virtualhost: { fqdn: HOST, tls: { secretName: 'cert' } },
      routes: [{ conditions: [{ prefix: '/' }], services: [{ name: 'web', port: 80 }] }],
    },
    status: address,
  },
  { kind: Service, spec: { type: 'LoadBalancer', ports: [{ name: 'https', port: 443 }] }, status: address },
  {
    kind: DNSLoadBalancer,
    spec: {
      DNSName: HOST,
      healthPath: '/',
      statusCode: 200,
      endpointValidityInterval: '10m',
      healthCheck: { scheme: 'http', port: 80, host: HOST, headers: { a: 'b' }, interval: '1s' },
    },
    status: { state: 'healthy', active: [{ name: 'one', ipaddress: '192.0.2.9' }], conditions: [] },
  },
  {
    kind: DNSLoadBalancerEndpoint,
    spec: { loadbalancer: 'one', ipaddress: '192.0.2.9', cname: 'a.example.net', weight: 1, drain: false },
    status: { healthy: true, active: true, validUntil: '2026-01-01T00:00:00Z' },
  },
]

const ANNOTATIONS = [
  'kubernetes.io/ingress.class',
  'seamark.io/exclude',
  'seamark.io/ttl',
  'seamark.io/approve',
  'seamark.io/adopt',
  'seamark.io/weight.eu1',
  'loadbalancer.gardener.cloud/dnsloadbalancer',
  'external-dns.alpha.kubernetes.io/ttl',
  'external-dns.alpha.kubernetes.io/hostname',
  'cert-manager.io/issuer',
  'constructor',
] as const

const texts = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom('', '.', '*', '*.', '..', '*.*.test', '__proto__', '-1', '1e309', '%00', '/', 'a/b/c', 'xn--', '\0'),
  fc.integer({ min: 1, max: 5_000 }).map((length) => 'a.'.repeat(length)),
)
const junk = fc.oneof(fc.jsonValue({ maxDepth: 2 }), texts, fc.constantFrom(null, [], {}, [null], [[]], -1, 1e300))

/** Paths of everything in a value, itself included. */
function pathsOf(value: unknown, at: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [at]
  return [at, ...Object.entries(value).flatMap(([key, each]) => pathsOf(each, [...at, key]))]
}

function replaceAt(value: unknown, [key, ...rest]: readonly string[], by: unknown): unknown {
  if (key === undefined) return by
  const copy: unknown = structuredClone(value)
  ;(copy as Record<string, unknown>)[key] = replaceAt((value as Record<string, unknown>)[key], rest, by)
  return copy
}

export const hostileObjects: fc.Arbitrary<HostileObject> = fc
  .record({
    valid: fc.constantFrom(...VALID),
    name: fc.constantFrom('one', 'two'),
    changes: fc.array(fc.record({ at: fc.nat(), by: junk }), { minLength: 1, maxLength: 3 }),
    annotations: fc.dictionary(fc.constantFrom(...ANNOTATIONS), texts, { maxKeys: 3 }),
  })
  .map(({ valid: { kind, spec, status }, name, changes, annotations }) => {
    let content: unknown = { spec, ...(status !== undefined && { status }) }
    for (const { at, by } of changes) {
      const paths = pathsOf(content).slice(1)
      content = replaceAt(content, paths[at % Math.max(1, paths.length)] ?? ['spec'], by)
    }
    return { kind: kind.kind, object: { metadata: { namespace: 'tenant', name, annotations }, ...(content as object) } }
  })
