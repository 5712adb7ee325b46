import type { Kind } from '@seamark/kube/object'
import { describe, expect, it } from 'vitest'
import { Certificate } from '../../api/certificate.ts'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { FINALIZER } from '../annotation-keys.ts'
import { decide, desiredChildren } from './decide.ts'
import type { PublishOptions } from '../options.ts'
import { type Child, type Observed, type OwnedChild, planCleanup, planWrites, type Step } from './plan.ts'
import { fromHTTPProxy } from '../sources/http-proxy.ts'
import {
  annotated,
  behind,
  httpProxy,
  type Modifier,
  options,
  withVirtualHost,
} from '../../../testing/publish-fixture.ts'

const CP = 'contour-plus.cybozu.com/'

interface Fixture {
  proxy?: Modifier[]
  options?: Partial<PublishOptions>
  /** Objects that exist. */
  objects?: { kind: Kind<Child>; object: Child; isOurs?: boolean }[]
  alive?: string[]
  secretHolder?: string
}

function plan({ proxy = [], options: changes = {}, objects = [], alive = [], secretHolder }: Fixture) {
  const source = fromHTTPProxy(httpProxy(...proxy))
  const settings = options(changes)
  const decision = decide(
    { source, target: behind({ ip: '10.0.0.0' }), claims: new Map(), publications: new Map(), published: [] },
    settings,
  )
  const observed: Observed = {
    find: (kind, key) =>
      objects.find(
        (item) => item.kind === kind && `${item.object.metadata.namespace}/${item.object.metadata.name}` === key,
      )?.object,
    owned: objects.filter((item) => item.isOurs !== false).map(({ kind, object }): OwnedChild => ({ kind, object })),
    isAlive: (owner) => alive.includes(owner),
    isBalanced: () => false,
    findSecretHolder: () => secretHolder,
  }
  return { ...planWrites(source, decision, observed, settings), cleanup: planCleanup(source, observed), decision }
}

function describeStep(step: Step): string {
  if (step.type === 'apply')
    return `apply ${step.desired.object.kind} ${step.desired.object.metadata.namespace}/${step.desired.object.metadata.name}${step.isRetarget ? ' retarget' : ''}`
  if (step.type === 'delete')
    return `delete ${step.child.kind.kind} ${step.child.object.metadata.namespace}/${step.child.object.metadata.name}`
  return step.type
}

const steps = (fixture: Fixture): string[] => plan(fixture).steps.map(describeStep)

function dns(
  namespace: string,
  name: string,
  changes: Partial<DNSEndpoint['metadata']> = {},
  targets = ['10.0.0.0'],
): Fixture['objects'] {
  const metadata = {
    namespace,
    name,
    annotations: { [`${CP}owned-by`]: 'ns/foo' },
    ...(namespace === 'ns' && {
      ownerReferences: [
        { apiVersion: 'projectcontour.io/v1', kind: 'HTTPProxy', name: 'foo', uid: 'uid-foo', controller: true },
      ],
    }),
    ...changes,
  }
  return [
    {
      kind: DNSEndpoint,
      object: {
        metadata,
        spec: { endpoints: [{ dnsName: 'test.example.com', recordType: 'A', recordTTL: 3600, targets }] },
      },
    },
  ]
}

const noTls: Modifier = annotated({ 'kubernetes.io/tls-acme': 'false' })

describe('the plan of a source', () => {
  it('applies the desired children; D14: without a finalizer when all are in the namespace of the source', () => {
    expect(steps({})).toEqual(['apply DNSEndpoint ns/foo', 'apply Certificate ns/foo'])
  })

  it('adds the finalizer before the first child in another namespace', () => {
    expect(
      steps({
        proxy: [annotated({ [`${CP}dns-namespace`]: 'dns' }), noTls],
        options: { allowedDnsNamespaces: ['dns'] },
      }),
    ).toEqual(['add-finalizer', 'apply DNSEndpoint dns/ns-foo'])
  })

  it('adds the finalizer also before a child in another namespace is deleted: the guard may hold the deletion', () => {
    const changes = { prune: true, allowedDnsNamespaces: ['dns'] }
    const objects = dns('dns', 'ns-foo') ?? []
    const wanted = ['add-finalizer', 'apply DNSEndpoint ns/foo', 'delete DNSEndpoint dns/ns-foo']
    const finalized: Modifier = ({ metadata }) => void (metadata.finalizers = [FINALIZER])
    expect(steps({ proxy: [noTls], objects, options: changes })).toEqual(wanted)
    const before = { proxy: [noTls, finalized], objects, options: changes }
    expect(steps(before)).toEqual(wanted.slice(1))
  })

  it('U27: sets the secretName after Certificate and delegation, and only while it differs', () => {
    const changes = { allowedIssuerNamespaces: ['certs'], children: ['Certificate'] as const }
    const asked = annotated({ [`${CP}issuer-namespace`]: 'certs' })
    expect(steps({ proxy: [asked], options: changes })).toEqual([
      'add-finalizer',
      'apply Certificate certs/ns-foo',
      'apply TLSCertificateDelegation certs/ns-foo',
      'set-secret-name',
    ])
    const patched = withVirtualHost({ fqdn: 'test.example.com', tls: { secretName: 'certs/ns-foo' } })
    expect(steps({ proxy: [asked, patched], options: changes })).not.toContain('set-secret-name')
    // Another Certificate writes the Secret, so none is made for this source.
    const claimed = { ...changes, foreign: 'refuse' as const }
    expect(steps({ proxy: [asked], options: claimed, secretHolder: 'other' })).toEqual([
      'add-finalizer',
      'apply TLSCertificateDelegation certs/ns-foo',
    ])
  })

  it('D13: deletes children in other namespaces, then removes the finalizer', () => {
    const fixture = {
      proxy: [
        annotated({ [`${CP}exclude`]: 'true' }),
        ({ metadata }: Parameters<Modifier>[0]) => void (metadata.finalizers = [FINALIZER]),
      ],
      objects: [...(dns('dns', 'ns-foo') ?? []), ...(dns('ns', 'foo') ?? [])],
    }
    expect(plan(fixture).cleanup.steps.map(describeStep)).toEqual(['delete DNSEndpoint dns/ns-foo', 'remove-finalizer'])
  })

  it('D20: without pruning nothing is deleted while the source exists; with pruning, children that are not desired are', () => {
    const certificate = {
      kind: Certificate,
      object: {
        metadata: dns('ns', 'foo')?.[0]?.object.metadata ?? {},
        spec: { dnsNames: [], secretName: 's', issuerRef: { kind: '', name: '' }, usages: [] },
      },
    }
    const fixture = { proxy: [noTls], objects: [...(dns('ns', 'foo') ?? []), certificate] }
    expect(steps(fixture)).toEqual(['apply DNSEndpoint ns/foo'])
    expect(steps({ ...fixture, options: { prune: true } })).toEqual([
      'apply DNSEndpoint ns/foo',
      'delete Certificate ns/foo',
    ])
  })

  it('prunes nothing of a kind whose child is held', () => {
    const fixture = {
      proxy: [annotated({ [`${CP}exclude`]: 'true' })],
      objects: dns('ns', 'old'),
      options: { prune: true },
    }
    expect(steps({ ...fixture, objects: dns('ns', 'old') ?? [] })).toEqual([])
  })

  it('prunes no child of another source of the same name', () => {
    const stale =
      dns('ns', 'old', {
        ownerReferences: [{ apiVersion: 'v1', kind: 'HTTPProxy', name: 'foo', uid: 'another', controller: true }],
      }) ?? []
    expect(steps({ proxy: [noTls], objects: stale, options: { prune: true } })).toEqual(['apply DNSEndpoint ns/foo'])
  })

  it('of a source that changed to another class prunes only what this instance wrote', () => {
    const left: Fixture = {
      options: { prune: true, ingressClassName: 'a' },
      proxy: [annotated({ 'kubernetes.io/ingress.class': 'b' })],
    }
    expect(steps({ ...left, objects: dns('ns', 'foo') ?? [] })).toEqual([])
    const annotations = { [`${CP}owned-by`]: 'ns/foo', 'seamark.io/class': 'b' }
    expect(steps({ ...left, objects: dns('ns', 'foo', { annotations }) ?? [] })).toEqual([])
    expect(
      steps({ ...left, objects: dns('ns', 'foo', { annotations: { ...annotations, 'seamark.io/class': 'a' } }) ?? [] }),
    ).toEqual(['delete DNSEndpoint ns/foo'])
  })

  it('removes a finalizer that is no longer needed, and keeps that of an excluded source', () => {
    const finalized: Modifier = ({ metadata }) => void (metadata.finalizers = [FINALIZER])
    expect(steps({ proxy: [finalized, noTls] })).toEqual(['apply DNSEndpoint ns/foo', 'remove-finalizer'])
    expect(steps({ proxy: [finalized, annotated({ [`${CP}exclude`]: 'true' })] })).toEqual([])
    expect(steps({ proxy: [finalized, noTls], objects: dns('dns', 'ns-foo') ?? [] })).toEqual([
      'apply DNSEndpoint ns/foo',
    ])
  })

  it('D23: an object with another controller is not changed, one without is adopted or refused as configured', () => {
    const other =
      dns('ns', 'foo', {
        annotations: {},
        ownerReferences: [{ apiVersion: 'v1', kind: 'Other', name: 'x', uid: 'other', controller: true }],
      }) ?? []
    const orphan = dns('ns', 'foo', { annotations: {}, ownerReferences: [] }) ?? []
    const foreign = (objects: Fixture['objects']) => objects?.map((item) => ({ ...item, isOurs: false })) ?? []
    for (const mode of ['take', 'refuse'] as const) {
      const refused = plan({ proxy: [noTls], objects: foreign(other), options: { foreign: mode } })
      expect([refused.steps, refused.findings.map((finding) => finding.reason)]).toEqual([[], ['ForeignObject']])
    }
    expect(steps({ proxy: [noTls], objects: foreign(orphan) })).toEqual(['apply DNSEndpoint ns/foo'])
    expect(steps({ proxy: [noTls], objects: foreign(orphan), options: { foreign: 'refuse' } })).toEqual([])
  })

  it('of two existing sources with one child name the second is refused, even when adoption is allowed', () => {
    const theirs = (dns('ns', 'foo', { annotations: { [`${CP}owned-by`]: 'n/s-foo' }, ownerReferences: [] }) ?? []).map(
      (item) => ({ ...item, isOurs: false }),
    )
    expect(steps({ proxy: [noTls], objects: theirs, alive: ['HTTPProxy/n/s-foo'] })).toEqual([])
    expect(steps({ proxy: [noTls], objects: theirs })).toEqual(['apply DNSEndpoint ns/foo'])
  })

  it('a second Certificate for one Secret is not created', () => {
    const refused = plan({ secretHolder: 'shim', options: { foreign: 'refuse' } })
    expect(refused.steps.map(describeStep)).toEqual(['apply DNSEndpoint ns/foo'])
    expect(refused.findings.map(({ reason }) => reason)).toEqual(['SecretClaimed'])
    expect(steps({ secretHolder: 'shim' })).toEqual(['apply DNSEndpoint ns/foo', 'apply Certificate ns/foo'])
  })

  it('distinguishes a retarget from a new name', () => {
    expect(steps({ proxy: [noTls], objects: dns('ns', 'foo', {}, ['10.9.9.9']) ?? [] })).toEqual([
      'apply DNSEndpoint ns/foo retarget',
    ])
    expect(steps({ proxy: [noTls], objects: dns('ns', 'foo') ?? [] })).toEqual(['apply DNSEndpoint ns/foo'])
  })

  it('every desired object has the role it was decided for', () => {
    expect(desiredChildren(plan({}).decision).map((item) => item.role)).toEqual(['dns', 'certificate'])
  })
})
