/**
 * Random objects of tenants that declare hosts, and the model that says whose each host is. Nothing runs: the worlds of
 * decisions.test.ts pass them to the decisions themselves, so that thousands of them cost as much as some processes.
 *
 * The model shares no line with the decisions that it judges, but for `mayUse` of world.ts, which is the other model's.
 */
import type { DNSEndpoint, DNSLoadBalancer } from '@seamark/operator'
import type { Obj } from '@seamark/kube/object'
import { object, service } from '@seamark/gateway/testing'
import fc from 'fast-check'
import { type Grant, mayUse } from './world.ts'

/** Below the zone of the fixture of plans, a.test. */
const TENANTS = ['anna', 'bert', 'carl'] as const
export const HOSTS = ['x.a.test', 'y.a.test', 'b.y.a.test', '*.y.a.test', '*.a.test'] as const
const DOMAINS = ['a.test', ...HOSTS] as const
const KINDS = ['DNSEndpoint', 'Ingress', 'HTTPProxy', 'DNSLoadBalancer', 'Root'] as const

export interface Declared {
  readonly kind: (typeof KINDS)[number]
  readonly tenant: string
  readonly name: string
  readonly host: string
  /** Of its creation: ties are frequent. */
  readonly second: number
}

export interface DeclaredWorld {
  readonly grants: readonly Grant[]
  readonly objects: readonly Declared[]
}

const idOf = ({ kind, tenant, name }: Declared): string => `${kind} ${tenant}/${name}`

export const declaredWorlds: fc.Arbitrary<DeclaredWorld> = fc.record({
  grants: fc.array(
    fc.record({
      namespace: fc.constantFrom(...TENANTS, '*'),
      domains: fc.uniqueArray(fc.constantFrom(...DOMAINS), { minLength: 1, maxLength: 3 }),
    }),
    { maxLength: 4 },
  ),
  objects: fc.uniqueArray(
    fc.record({
      kind: fc.constantFrom(...KINDS),
      tenant: fc.constantFrom(...TENANTS),
      name: fc.constantFrom('one', 'two'),
      host: fc.constantFrom(...HOSTS),
      second: fc.integer({ min: 0, max: 3 }),
    }),
    { selector: idOf, minLength: 1, maxLength: 12 },
  ),
})

export const addressOf = (declared: Declared): string =>
  `192.0.2.${1 + 10 * TENANTS.findIndex((each) => each === declared.tenant) + (declared.name === 'one' ? 0 : 1)}`

const createdAt = ({ second }: Declared): string => `2026-01-01T00:00:0${second}Z`

const metadataOf = (declared: Declared) => ({
  namespace: declared.tenant,
  name: declared.name,
  uid: idOf(declared),
  creationTimestamp: createdAt(declared),
})

export const endpointOf = (declared: Declared): DNSEndpoint => ({
  metadata: metadataOf(declared),
  spec: {
    endpoints: [{ dnsName: declared.host, recordType: 'A', recordTTL: 60, targets: [addressOf(declared)] }],
  },
})

export const balancerOf = (declared: Declared): DNSLoadBalancer => ({
  metadata: metadataOf(declared),
  spec: { DNSName: declared.host },
})

export const claimantOf = (declared: Declared) => ({
  kind: 'Ingress',
  namespace: declared.tenant,
  name: declared.name,
  uid: idOf(declared),
  createdAt: createdAt(declared),
})

/** An Ingress or an HTTPProxy with one route to a Service of its namespace. */
export function routeOf(declared: Declared): Obj {
  const { kind, tenant, name, host } = declared
  const meta = { creationTimestamp: createdAt(declared), uid: idOf(declared) }
  if (kind === 'HTTPProxy') {
    const routes = [{ conditions: [{ prefix: '/' }], services: [{ name: 'web', port: 80 }] }]
    return object('HTTPProxy', `${tenant}/${name}`, { spec: { virtualhost: { fqdn: host }, routes } }, meta)
  }
  const backend = { service: { name: 'web', port: { number: 80 } } }
  const rules = [{ host, http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }]
  return object('Ingress', `${tenant}/${name}`, { spec: { rules } }, meta)
}

export const services: readonly Obj[] = TENANTS.map((tenant) => service(`${tenant}/web`))

/** Creation time, then namespace and name: one kind at a time, so that the kind decides nothing. */
export function oldestOf(objects: readonly Declared[]): Declared | undefined {
  const rank = ({ second, tenant, name }: Declared): string => `${second} ${tenant} ${name}`
  return objects.toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1))[0]
}

/** The objects of a kind that name the host, of those that may. */
export function namingOf({ objects, grants }: DeclaredWorld, kind: Declared['kind'], host: string): Declared[] {
  return objects.filter((each) => each.kind === kind && each.host === host && mayUse(grants, each.tenant, host))
}
