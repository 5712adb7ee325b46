import { Forbidden, Invalid } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import { describe, expect, it } from 'vitest'
import { annotated, behind, httpProxy, options } from '../../../testing/publish-fixture.ts'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { FINALIZER } from '../annotation-keys.ts'
import { decide } from '../decide/decide.ts'
import { type Child, planWrites, type Step } from '../decide/plan.ts'
import type { SourceDecision } from '../decide/source-decision.ts'
import { fromHTTPProxy } from '../sources/http-proxy.ts'
import { act, type ActDeps } from './act.ts'

const settings = options({ allowedIssuerNamespaces: ['certs'] })
/** Its Certificate is in another namespace, so its `tls.secretName` has to be set. */
const proxy = httpProxy(
  annotated({ 'contour-plus.cybozu.com/issuer-namespace': 'certs' }),
  ({ metadata }) => void Object.assign(metadata, { resourceVersion: '7', finalizers: [FINALIZER] }),
)

function decided(steps?: readonly Step[]): SourceDecision {
  const source = fromHTTPProxy(proxy)
  const decision = decide(
    { source, target: behind({ ip: '10.0.0.0' }), claims: new Map(), publications: new Map(), published: [] },
    settings,
  )
  const observed = {
    find: () => undefined,
    owned: [],
    isAlive: () => false,
    isBalanced: () => false,
    findSecretHolder: () => undefined,
  }
  const plan = planWrites(source, decision, observed, settings)
  return {
    source,
    object: proxy,
    decision,
    plan: steps === undefined ? plan : { ...plan, steps },
    owned: [],
    findings: [],
    unconfirmed: [],
    conflicts: [],
    publications: new Map(),
  }
}

/** Acts, and returns what was written. `refuse` throws for the objects that the server does not accept. */
async function run(
  decision: SourceDecision,
  refuse: (what: string) => void = () => undefined,
  changes: Partial<ActDeps> = {},
) {
  const written: string[] = []
  const patches: unknown[] = []
  const write = (verb: string, { metadata, kind }: Child): void => {
    const what = `${verb} ${kind} ${metadata.namespace}/${metadata.name}`
    refuse(what)
    written.push(what)
  }
  const result = await act(decision, {
    writer: {
      apply: async (_kind: unknown, object: Child) => {
        write('apply', object)
        return { ...object, metadata: { ...object.metadata, resourceVersion: '1' } }
      },
      delete: async (_kind: unknown, object: Child) => write('delete', object),
    } as unknown as ActDeps['writer'],
    client: {
      patch: async (_kind: unknown, key: string, _type: string, body: unknown) => {
        written.push(`patch ${key}`)
        patches.push(body)
      },
    } as unknown as ActDeps['client'],
    informers: { get: () => undefined, ownFields: () => undefined },
    kind: HTTPProxy,
    secondWriter: { check: () => undefined, note: () => undefined },
    guard: undefined,
    isRetargetGuarded: false,
    isServed: () => true,
    onCertificateApplied: () => undefined,
    enqueue: () => false,
    ...changes,
  })
  return { written, patches, ...result }
}

const refusing =
  (start: string, error: Error) =>
  (what: string): void => {
    if (what.startsWith(start)) throw error
  }
const invalid = Object.assign(Object.create(Invalid.prototype) as Invalid, { message: 'not valid' })
const forbidden = Object.assign(Object.create(Forbidden.prototype) as Forbidden, { message: 'not allowed' })

describe('the Secret of a source', () => {
  it('is set after its Certificate and the delegation are written, if the source is as it was read', async () => {
    const { written, patches } = await run(decided())
    expect(written).toEqual([
      'apply DNSEndpoint ns/foo',
      'apply Certificate certs/ns-foo',
      'apply TLSCertificateDelegation certs/ns-foo',
      'patch ns/foo',
    ])
    expect(patches).toMatchObject([
      { metadata: { resourceVersion: '7' }, spec: { virtualhost: { tls: { secretName: 'certs/ns-foo' } } } },
    ])
  })

  it.each([
    ['the server refuses the Certificate', refusing('apply Certificate', invalid), {}],
    ['the server refuses the delegation', refusing('apply TLSCertificateDelegation', invalid), {}],
    ['the Certificate cannot be written now', refusing('apply Certificate', new Error('timeout')), {}],
    ['the CRD of the delegation is absent', undefined, { isServed: ({ kind }) => kind !== 'TLSCertificateDelegation' }],
  ] satisfies [string, ((what: string) => void) | undefined, Partial<ActDeps>][])(
    'is not set when %s: the source keeps the Secret it has',
    async (_title, refuse, changes) => {
      const { written } = await run(decided(), refuse, changes)
      expect(written).not.toContain('patch ns/foo')
      expect(written).toContain('apply DNSEndpoint ns/foo')
    },
  )

  it('is set although the server refuses the DNSEndpoint', async () => {
    expect((await run(decided(), refusing('apply DNSEndpoint', invalid))).written).toContain('patch ns/foo')
  })
})

it('an object that the role does not allow is a finding, and is tried again with back-off', async () => {
  const { findings, errors } = await run(decided(), refusing('apply DNSEndpoint', forbidden))
  expect(findings.map(({ reason }) => reason)).toEqual(['ApplyRejected'])
  expect(errors).toEqual([forbidden])
})

describe('the finalizer of a source', () => {
  const object = { ...DNSEndpoint, kind: 'DNSEndpoint', metadata: { namespace: 'dns', name: 'ns-foo' } }
  const child = { kind: DNSEndpoint, object: object as unknown as DNSEndpoint }
  const cleanup = decided([{ type: 'delete', child }, { type: 'remove-finalizer' }])

  it('is removed after its children in other namespaces are deleted', async () => {
    expect((await run(cleanup)).written).toEqual(['delete DNSEndpoint dns/ns-foo', 'patch ns/foo'])
  })

  it('stays while a deletion fails, so that the child is not forgotten', async () => {
    const { written, errors } = await run(cleanup, refusing('delete', new Error('timeout')))
    expect(written).toEqual([])
    expect(errors).toHaveLength(1)
  })
})
