/**
 * A kind from one declaration: the CRD that `defineKind` makes is accepted by a real kube-apiserver and by the embedded one,
 * which both apply its defaults and refuse what its schema and rules forbid.
 */
import { needs } from '@seamark/kit'
import { configFromText, connect, Invalid, type Condition } from '@seamark/kube'
import { conditionsSchema, customResourceDefinition, defineKind, type ObjectOf } from '@seamark/kube/crd'
import { ControlPlane } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { startEmbeddedPlane } from '../apiserver/embedded-server.ts'

const spec = z
  .object({
    host: z.string().regex(/^[a-z0-9.-]+$/),
    replicas: z.int().min(1).max(9).default(2),
    mode: z.enum(['Fast', 'Slow']).default('Fast'),
    port: z.union([z.int(), z.string()]).default('http'),
    ratio: z.number().gt(0).exactOptional(),
    limits: z.object({ burst: z.int().default(10) }).prefault({}),
    labels: z.record(z.string(), z.string().max(10)).exactOptional(),
    extra: z.looseObject({ known: z.string().exactOptional() }).exactOptional(),
    since: z.iso.datetime().exactOptional(),
    note: z.string().nullable().exactOptional(),
    paths: z
      .array(z.object({ path: z.string(), weight: z.int().default(1) }))
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['path'] })
      .max(20)
      .exactOptional(),
  })
  .meta({
    'x-kubernetes-validations': [
      { rule: "self.mode == 'Fast' || self.replicas < 5", message: 'Slow sites have at most four replicas' },
    ],
  })

const Site = defineKind({
  group: 'example.test',
  version: 'v1',
  kind: 'Site',
  plural: 'sites',
  shortNames: ['st'],
  categories: ['edge'],
  namespaced: true,
  description: 'A page under a host name.',
  spec,
  status: z.object({ conditions: conditionsSchema.exactOptional() }),
  printerColumns: [
    { name: 'Host', type: 'string', jsonPath: '.spec.host' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
  ],
  rules: [{ rule: "self.metadata.name != 'forbidden'", message: 'no site is called forbidden' }],
})
type Site = ObjectOf<typeof Site>

const Global = defineKind({
  group: 'example.test',
  version: 'v1',
  kind: 'GlobalSite',
  plural: 'globalsites',
  namespaced: false,
  spec: z.object({ host: z.string().default('any') }).prefault({}),
})

const crds = [customResourceDefinition(Site), customResourceDefinition(Global)]

/** As a user writes it, without what the server adds. */
function site(name: string, more: Record<string, unknown> = {}): Site {
  return { metadata: { name, namespace: 'default' }, spec: { host: 'shop.test', ...more } } as Site
}

describe('the CRD of a defined kind', () => {
  it.skipIf(!needs('kube-apiserver', 'etcd'))('works on a real server', async () => {
    await using plane = await ControlPlane.start({ crds })
    await check(plane)
  })

  it('works on the embedded server', async () => {
    await using plane = await startEmbeddedPlane(crds)
    await check(plane)
  })

  async function check(plane: ControlPlane): Promise<void> {
    const cluster = connect(configFromText(plane.kubeconfig()), { fieldManager: 'test' })
    const { client } = cluster
    try {
      const paths = [{ path: '/' }]
      const made = await client.create(
        Site,
        site('shop', { paths, extra: { kept: { deep: 1 } }, unknown: 'pruned', note: null }),
      )
      expect(made.spec).toEqual({
        host: 'shop.test',
        replicas: 2,
        mode: 'Fast',
        port: 'http',
        limits: { burst: 10 },
        extra: { kept: { deep: 1 } },
        note: null,
        paths: [{ path: '/', weight: 1 }],
      })
      expect((await client.create(Global, { metadata: { name: 'one' } } as ObjectOf<typeof Global>)).spec).toEqual({
        host: 'any',
      })

      const refusals: [string, Record<string, unknown>, string][] = [
        ['bad-host', { host: 'UPPER' }, 'spec.host'],
        ['too-many', { replicas: 10 }, 'spec.replicas'],
        ['fraction', { replicas: 1.5 }, 'spec.replicas'],
        ['bad-mode', { mode: 'Lazy' }, 'spec.mode'],
        ['bad-port', { port: true }, 'spec.port'],
        ['zero', { ratio: 0 }, 'spec.ratio'],
        ['long-label', { labels: { a: 'x'.repeat(11) } }, 'spec.labels'],
        ['bad-time', { since: 'yesterday' }, 'spec.since'],
        ['twice', { paths: [{ path: '/' }, { path: '/' }] }, 'spec.paths'],
        ['by-rule', { mode: 'Slow', replicas: 5 }, 'Slow sites have at most four replicas'],
        ['forbidden', {}, 'no site is called forbidden'],
      ]
      for (const [name, more, message] of refusals) {
        const refused = await client.create(Site, site(name, more)).catch((error: unknown) => error)
        expect(refused, name).toBeInstanceOf(Invalid)
        expect(String(refused), name).toContain(message)
      }
      await expect(client.create(Site, { metadata: { name: 'none', namespace: 'default' } } as Site)).rejects.toThrow(
        'spec',
      )

      // Conditions are a map: two managers own one each. The status is a subresource.
      const condition = (type: string): Condition => ({
        type,
        status: 'True',
        reason: 'Rendered',
        message: '',
        lastTransitionTime: '2030-01-01T00:00:00Z',
      })
      for (const fieldManager of ['one', 'two']) {
        const status = { conditions: [condition(fieldManager === 'one' ? 'Ready' : 'Served')] }
        const intent = { ...site('shop'), status } as Site
        await client.apply(Site, intent, { fieldManager, subresource: 'status' })
      }
      const stored = await client.get(Site, 'default/shop')
      expect(stored.status?.conditions?.map(({ type }) => type)).toEqual(['Ready', 'Served'])
      expect(stored.spec.replicas).toBe(2)

      const table = await client.request({
        method: 'GET',
        path: '/apis/example.test/v1/namespaces/default/sites',
        headers: { accept: 'application/json;as=Table;g=meta.k8s.io;v=v1' },
      })
      const { columnDefinitions, rows } = JSON.parse(table.body.toString()) as {
        columnDefinitions: { name: string }[]
        rows: { cells: unknown[] }[]
      }
      expect(columnDefinitions.map(({ name }) => name)).toEqual(['Name', 'Host', 'Ready'])
      expect(rows[0]?.cells).toEqual(['shop', 'shop.test', 'True'])
    } finally {
      await cluster.close()
    }
  }
})
