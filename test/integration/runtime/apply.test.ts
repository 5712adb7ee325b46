/**
 * The apply verdict, compared with the server that it predicts: for random objects, edits and managers the verdict must equal what
 * the real and the embedded API server do, seen in whether the resourceVersion moves.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { learnDefaults, maskUids } from '@seamark/kube/testing/parts'
import { needs } from '@seamark/kit'
import { customResource } from '@seamark/kit/custom-resource'
import { createLearnedDefaults, decideApply, kind, type Kind, type Obj } from '@seamark/kube'
import { ControlPlane } from '@seamark/kube/testing'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startEmbeddedPlane } from '../apiserver/embedded-server.ts'

const crdFolder = join(import.meta.dirname, '../../../../shared/crds')
const foreignCrds = ['external-dns-dnsendpoints.yaml', 'gateway-api-httproutes.yaml', 'cert-manager-certificates.yaml']
const hasForeignCrds = foreignCrds.every((file) => existsSync(join(crdFolder, file)))

const text = { type: 'string' }
const widgetCrd = customResource(
  { group: 'apply.test', plural: 'widgets', singular: 'widget', kind: 'Widget' },
  {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: {
          size: { type: 'integer' },
          mode: { ...text, default: 'auto' },
          tags: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
          parts: {
            type: 'array',
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['name', 'zone'],
            items: {
              type: 'object',
              required: ['name'],
              properties: {
                name: text,
                zone: { ...text, default: 'a' },
                weight: { type: 'integer' },
                grade: { ...text, default: 'plain' },
              },
            },
          },
          rules: {
            type: 'array',
            items: {
              type: 'object',
              properties: {
                host: text,
                weight: { type: 'integer', default: 1 },
                to: {
                  type: 'object',
                  properties: { port: { type: 'integer' }, scheme: { ...text, default: 'https' } },
                },
              },
            },
          },
          selector: { type: 'object', 'x-kubernetes-map-type': 'atomic', additionalProperties: text },
          extra: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
    },
  },
)

interface Subject {
  kind: Kind
  /** What the managers under test send, without identity. */
  body: fc.Arbitrary<object>
}

const word = fc.constantFrom('a', 'b', 'c')
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 })
const map = fc
  .dictionary(fc.constantFrom('x', 'y', 'z'), word, { maxKeys: 3 })
  .filter((value) => Object.keys(value).length > 0)
const some = <T>(arbitrary: fc.Arbitrary<T>, selector: (value: T) => unknown = String) =>
  fc.uniqueArray(arbitrary, { minLength: 1, maxLength: 3, selector })
const owner = (uid: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  name: `owner-${uid}`,
  uid: `5ea9a8b4-0000-4000-8000-00000000000${uid}`,
})
const metadata = fc.record({
  labels: optional(map),
  annotations: optional(map),
  ownerReferences: optional(some(fc.constantFrom('1', '2', '3').map(owner), ({ uid }) => uid)),
  finalizers: optional(some(fc.constantFrom('t.test/a', 't.test/b'))),
})

const subjects: Record<string, Subject> = {
  ConfigMap: {
    kind: kind({ group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true }),
    body: fc.record({ metadata, data: optional(map) }),
  },
  Service: {
    kind: kind({ group: '', version: 'v1', kind: 'Service', plural: 'services', namespaced: true }),
    body: fc.record({
      metadata,
      spec: fc.record({
        selector: optional(map),
        externalIPs: optional(some(fc.constantFrom('192.0.2.1', '192.0.2.2'))),
        ports: some(
          fc.record({
            name: fc.constantFrom('p', 'q', 'r'),
            port: fc.constantFrom(80, 53),
            protocol: optional(fc.constantFrom('TCP', 'UDP')),
          }),
          ({ port, protocol }) => `${port}${protocol ?? 'TCP'}`,
        ).map((ports) => ports.map((port, index) => ({ ...port, name: `${port.name}${index}` }))),
      }),
    }),
  },
  Widget: {
    kind: kind({ group: 'apply.test', version: 'v1', kind: 'Widget', plural: 'widgets', namespaced: true }),
    body: fc.record({
      metadata,
      spec: fc.record({
        size: optional(fc.nat(2)),
        mode: optional(word),
        tags: optional(some(word)),
        parts: optional(
          some(
            fc.record({
              name: word,
              zone: optional(fc.constantFrom('a', 'b')),
              weight: optional(fc.nat(1)),
              grade: optional(word),
            }),
            ({ name, zone }) => `${name}${zone ?? 'a'}`,
          ),
        ),
        rules: optional(
          fc.array(
            fc.record({
              host: optional(word),
              weight: optional(fc.nat(2)),
              to: optional(fc.record({ port: fc.nat(1), scheme: optional(word) })),
            }),
            { maxLength: 2 },
          ),
        ),
        selector: optional(map),
        extra: optional(fc.record({ deep: map, list: fc.array(word, { maxLength: 2 }) })),
      }),
    }),
  },
  ...(hasForeignCrds
    ? {
        DNSEndpoint: {
          kind: kind({
            group: 'externaldns.k8s.io',
            version: 'v1alpha1',
            kind: 'DNSEndpoint',
            plural: 'dnsendpoints',
            namespaced: true,
          }),
          body: fc.record({
            metadata,
            spec: fc.record({
              endpoints: fc.array(
                fc.record({
                  dnsName: word.map((name) => `${name}.test`),
                  recordType: fc.constantFrom('A', 'CNAME'),
                  recordTTL: optional(fc.constantFrom(60, 300)),
                  targets: some(fc.constantFrom('192.0.2.1', '192.0.2.2')),
                  labels: optional(map),
                }),
                { minLength: 1, maxLength: 2 },
              ),
            }),
          }),
        },
        Certificate: {
          kind: kind({
            group: 'cert-manager.io',
            version: 'v1',
            kind: 'Certificate',
            plural: 'certificates',
            namespaced: true,
          }),
          body: fc.record({
            metadata,
            spec: fc.record({
              secretName: word,
              issuerRef: fc.record({ name: word, kind: optional(fc.constantFrom('Issuer', 'ClusterIssuer')) }),
              dnsNames: optional(some(word)),
              usages: optional(some(fc.constantFrom('server auth', 'client auth'))),
              privateKey: optional(fc.record({ algorithm: fc.constantFrom('ECDSA', 'RSA') })),
            }),
          }),
        },
        HTTPRoute: {
          kind: kind({
            group: 'gateway.networking.k8s.io',
            version: 'v1',
            kind: 'HTTPRoute',
            plural: 'httproutes',
            namespaced: true,
          }),
          body: fc.record({
            metadata,
            spec: fc.record({
              hostnames: optional(some(word.map((name) => `${name}.test`))),
              parentRefs: optional(
                some(
                  fc.record({ name: word, namespace: optional(word) }),
                  ({ name, namespace }) => `${namespace}/${name}`,
                ),
              ),
              rules: optional(
                fc.array(
                  fc.record({
                    matches: optional(fc.constantFrom([{ path: { type: 'Exact', value: '/a' } }], [{ method: 'GET' }])),
                    backendRefs: optional(
                      some(
                        fc.record({ name: word, port: fc.constantFrom(80, 81), weight: optional(fc.nat(2)) }),
                        ({ name, port }) => `${name}${port}`,
                      ),
                    ),
                  }),
                  { minLength: 1, maxLength: 2 },
                ),
              ),
            }),
          }),
        },
      }
    : {}),
}

const runs = Number(process.env['APPLY_RUNS'] ?? 25)

const servers = [
  {
    name: 'a real kube-apiserver',
    isThere: needs('kube-apiserver', 'etcd'),
    start: async (crds: readonly (string | object)[]) => ControlPlane.start({ crds }),
  },
  { name: 'the embedded API server', isThere: true, start: startEmbeddedPlane },
]

describe.each(servers)('apply verdict on $name', ({ isThere, start }) => {
  let plane: ControlPlane
  let serial = 0

  beforeAll(async () => {
    if (isThere)
      plane = await start([widgetCrd, ...(hasForeignCrds ? foreignCrds.map((file) => join(crdFolder, file)) : [])])
  })
  afterAll(async () => {
    if (isThere) await plane.stop()
  })

  it.skipIf(!hasForeignCrds)('also judges DNSEndpoint, Certificate and HTTPRoute (CRDs in ../shared/crds)', () => {
    expect(Object.keys(subjects)).toHaveLength(6)
  })

  it.skipIf(!isThere).each(Object.entries(subjects))(
    'equals what the server does to a %s',
    async (_name, { kind, body }) => {
      const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`
      const defaults = createLearnedDefaults()
      const seen = { noop: 0, sent: 0 }
      const step = fc.oneof(
        { weight: 3, arbitrary: fc.record({ by: fc.constant('us'), with: fc.nat(2) }) },
        { weight: 1, arbitrary: fc.record({ by: fc.constantFrom('applier', 'editor'), with: fc.nat(2) }) },
      )
      // An intent without fields leaves no entry, so there is nothing to compare: it is always sent.
      const some = body.filter((value) => JSON.stringify(value) !== '{"metadata":{}}')
      const scenario = fc.record({
        bodies: fc.tuple(some, some, some),
        steps: fc.array(step, { minLength: 4, maxLength: 9 }),
      })

      await fc.assert(
        fc.asyncProperty(scenario, async ({ bodies, steps }) => {
          const name = `object-${serial++}`
          const path = `${root}/namespaces/default/${kind.plural}/${name}`
          const intentOf = (index: number) => {
            const { metadata: extra, ...rest } = bodies[index] as Obj
            return {
              apiVersion: root.replace(/^\/apis?\//, ''),
              kind: kind.kind,
              ...rest,
              metadata: { ...extra, name, namespace: 'default' },
            } as Obj
          }
          const send = async (manager: string, intent: Obj) => {
            const isEdit = manager === 'editor'
            const type = isEdit ? 'application/merge-patch+json' : 'application/apply-patch+yaml'
            const query = `fieldManager=${manager}${isEdit ? '' : '&force=true'}`
            return plane.request('PATCH', `${path}?${query}`, intent, { type })
          }
          const read = async () => {
            const { status, body: live } = await plane.request('GET', path)
            return status === 200 ? (live as Obj) : undefined
          }
          for (const { by, with: index } of steps) {
            const intent = intentOf(index)
            const live = await read()
            if (by !== 'us') {
              if (live !== undefined) await send(by, intent)
              continue
            }
            const entry = live?.metadata.managedFields?.find(
              ({ manager, operation }) => manager === 'us' && operation === 'Apply',
            )
            const fields = entry === undefined ? undefined : JSON.stringify(entry.fieldsV1)
            const verdict = decideApply({ kind, fields, want: intent, live, defaults })
            const { status, body: written } = await send('us', intent)
            // A value the server refuses in this combination (a finalizer with a deletion, two names of a port) moves nothing.
            if (status >= 300) continue
            const after = written as Obj
            const moved = after.metadata.resourceVersion !== live?.metadata.resourceVersion
            seen[verdict.noop ? 'noop' : 'sent']++
            // An undecided one is sent; what the answer teaches must then decide it.
            const isUndecided = !verdict.noop && verdict.reason === 'Undecided'
            learnDefaults(defaults, kind, intent, after, 'us')
            const decided =
              isUndecided && !moved ? decideApply({ kind, fields, want: intent, live, defaults }) : verdict
            const context = `${JSON.stringify(verdict)}\nfields ${fields}\nwant ${JSON.stringify(intent)}\nlive ${JSON.stringify(live)}\nafter ${JSON.stringify(after)}`
            expect(decided.noop, context).toBe(!moved)
            // What informers keep: the same text with its UIDs masked. It may ask for a write too many, never for one too few.
            const masked = decideApply({
              kind,
              fields: fields === undefined ? undefined : maskUids(fields),
              want: intent,
              live,
              defaults,
            })
            const isAsking = !masked.noop && masked.reason === 'Undecided'
            expect(isAsking ? !moved : masked.noop, context).toBe(!moved)
          }
        }),
        { numRuns: runs },
      )
      expect(seen.noop).toBeGreaterThan(10)
      expect(seen.sent).toBeGreaterThan(10)
    },
  )
})
