import { Forbidden, Ingress, Secret } from '@seamark/kube'
import { memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import { LeafIngress } from '../../api/leaf-ingress.ts'
import { HUB_LABEL, SYNC_LABEL } from '../names.ts'
import { MANAGED_LABEL } from '../../hosts/root.ts'
import { TlsSecrets } from './tls-secrets.ts'

function leafOf(name: string, cluster: string, phase: 'Active' | 'Drained' = 'Active'): LeafIngress {
  const ingress = { apiVersion: 'v1', kind: 'Ingress', metadata: { name }, spec: { tls: [{ secretName: 'cert' }] } }
  return {
    metadata: { namespace: 'shop', name, uid: `uid-${name}` },
    spec: { cluster, lifecycle: 'Active', specHash: '', manifests: [ingress] },
    status: { phase },
  } as unknown as LeafIngress
}

function hubWith(secret: Partial<Secret>, ...leaves: LeafIngress[]): TlsSecrets {
  const hub = memoryCluster()
  const metadata = { namespace: 'shop', name: 'cert', labels: { [SYNC_LABEL]: 'true' } }
  hub.put(Secret, { metadata, type: 'kubernetes.io/tls', ...secret })
  for (const leaf of leaves) hub.put(LeafIngress, leaf)
  return new TlsSecrets({ cluster: hub, client: hub.client } as never, () => undefined)
}

it.each([
  { others: 'no other leaf', leaves: [], isUnused: true },
  { others: 'a leaf of the same cluster', leaves: [leafOf('b', 'eu1')], isUnused: false },
  { others: 'a leaf of another cluster', leaves: [leafOf('b', 'us1')], isUnused: true },
  { others: 'a drained leaf of the same cluster', leaves: [leafOf('b', 'eu1', 'Drained')], isUnused: true },
])('a copy that $others names is deleted with its leaf: $isUnused', async ({ leaves, isUnused }) => {
  const leaf = leafOf('a', 'eu1')
  const unused = await hubWith({}, leaf, ...leaves).unusedBy(leaf, AbortSignal.timeout(10_000))
  expect(unused.map(({ key }) => key)).toEqual(isUnused ? ['shop/cert'] : [])
})

it('a copy is kept for a leaf that the cache has lost', async () => {
  const leaf = leafOf('a', 'eu1')
  const hub = memoryCluster()
  hub.put(LeafIngress, leafOf('b', 'eu1'))
  const secrets = new TlsSecrets({ cluster: memoryCluster(), client: hub.client } as never, () => undefined)
  expect(await secrets.unusedBy(leaf, AbortSignal.timeout(10_000))).toEqual([])
})

it('copies the certificate, its key and its CA, and nothing else', () => {
  const data = { 'tls.crt': 'Yw==', 'tls.key': 'aw==', 'ca.crt': 'YQ==', password: 'cA==' }
  const [copy] = hubWith({ data }).copiesFor(leafOf('a', 'eu1'), 'hub')
  expect(copy).toMatchObject({ kind: 'Secret', data: { 'tls.crt': 'Yw==', 'tls.key': 'aw==', 'ca.crt': 'YQ==' } })
  expect(JSON.stringify(copy)).not.toContain('cA==')
})

it('does not copy a Secret without the label, and reports one of another type', () => {
  const leaf = leafOf('a', 'eu1')
  expect(hubWith({ metadata: { namespace: 'shop', name: 'cert' } }).copiesFor(leaf, 'hub')).toEqual([])
  expect(hubWith({ type: 'Opaque' }).copiesFor(leaf, 'hub')).toEqual([
    'Secret shop/cert has the type Opaque; only kubernetes.io/tls is copied to clusters',
  ])
})

/** The member eu1 with copies of two Secrets, of which its leaf names `cert`, and a Secret of another owner. */
function memberWithCopies() {
  const member = memoryCluster('eu1')
  const labels = { [MANAGED_LABEL]: 'true', [HUB_LABEL]: 'hub' }
  for (const name of ['cert', 'former']) member.put(Secret, { metadata: { namespace: 'shop', name, labels } })
  member.put(Secret, { metadata: { namespace: 'shop', name: 'foreign' } })
  member.put(Secret, { metadata: { namespace: 'shop', name: 'of-other-hub', labels: { ...labels, [HUB_LABEL]: 'b' } } })
  const { signal } = new AbortController()
  const ctx = {
    cluster: 'eu1',
    client: member.client,
    log: member.log,
    signal,
    list: member.informers.list.bind(member.informers),
  }
  const names = () => member.informers.list(Secret).map(({ metadata }) => metadata.name)
  return { member, ctx, names }
}

it('a sweep deletes the copy that a leaf named before, and nothing of others', async () => {
  const { ctx, names } = memberWithCopies()
  await hubWith({}, leafOf('a', 'eu1')).sweep(ctx, 'hub')
  expect(names()).toEqual(['cert', 'foreign', 'of-other-hub'])
})

it('a sweep deletes no copy that is named by a leaf which only the server has', async () => {
  const { ctx, names } = memberWithCopies()
  const server = memoryCluster()
  const lost = leafOf('b', 'eu1')
  const manifests = [{ spec: { tls: [{ secretName: 'former' }] } }]
  server.put(LeafIngress, { ...lost, spec: { ...lost.spec, manifests: manifests as never } })
  const cache = memoryCluster()
  cache.put(LeafIngress, leafOf('a', 'eu1'))
  await new TlsSecrets({ cluster: cache, client: server.client } as never, () => undefined).sweep(ctx, 'hub')
  expect(names()).toContain('former')
})

it('a sweep deletes no copy that one of our Ingresses names whose leaf is gone, because its deletion may be held', async () => {
  const { member, ctx, names } = memberWithCopies()
  const labels = { [MANAGED_LABEL]: 'true', [HUB_LABEL]: 'hub' }
  const spec = { tls: [{ secretName: 'former' }] }
  member.put(Ingress, { metadata: { namespace: 'shop', name: 'held', labels }, spec })
  await hubWith({}, leafOf('a', 'eu1')).sweep(ctx, 'hub')
  expect(names()).toContain('former')
})

it('a sweep without the right to list Secrets says what to grant', async () => {
  const { member, ctx, names } = memberWithCopies()
  member.intercept = ({ verb }) => {
    if (verb === 'list')
      throw new Forbidden('Forbidden', 'secrets is forbidden', 403, { apiVersion: 'v1', kind: 'Status' })
  }
  await hubWith({}, leafOf('a', 'eu1')).sweep(ctx, 'hub')
  expect(names()).toHaveLength(4)
  expect(member.lines.join()).toContain('grant list of secrets')
})
