/** The wire side of packages/kube against a real kube-apiserver: GOAWAY, stream limits, paging, WatchList, 410, RBAC, CRDs. */
import { createHttpSource, createRest, Reflector, type Source, Store } from '@seamark/kube/testing/parts'
import { needs } from '@seamark/kit'
import {
  AlreadyExists,
  apiError,
  ConfigMap,
  configFromText,
  Conflict,
  connect,
  CustomResourceDefinition,
  Forbidden,
  Gone,
  Invalid,
  kind,
  Namespace,
  NotFound,
  type Cluster,
  type ConnectOptions,
  type Obj,
} from '@seamark/kube'
import { ControlPlane, type User } from '@seamark/kube/testing'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'

let plane: ControlPlane
const cleanups: (() => Promise<void>)[] = []

const map = (name: string, data: Record<string, string> = {}): ConfigMap => ({
  metadata: { name, namespace: 'default' },
  data,
})

function clusterOf(options: ConnectOptions = {}, user?: User): { cluster: Cluster; start: () => void } {
  const cluster = connect(configFromText(plane.kubeconfig(user)), { fieldManager: 'wire', ...options })
  const stop = new AbortController()
  let running: Promise<void> | undefined
  cleanups.push(async () => {
    stop.abort()
    await running
    await cluster.close()
  })
  const start = () => {
    running = cluster.informers.start(stop.signal)
  }
  return { cluster, start }
}

async function until(what: string, isTrue: () => boolean | Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await isTrue())) {
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

async function inParallel(count: number, width: number, run: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (next < count) await run(next++)
    }),
  )
}

describe.skipIf(!needs('kube-apiserver', 'etcd'))(
  'on a real kube-apiserver that sends GOAWAY and allows ten streams',
  () => {
    beforeAll(async () => {
      plane = await ControlPlane.start({
        flags: [
          '--goaway-chance=0.02',
          '--http2-max-streams-per-connection=10',
          '--min-request-timeout=5',
          '--watch-cache=false',
        ],
      })
    }, 120_000)
    afterAll(async () => plane?.stop())
    afterEach(async () => {
      for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
    })

    it('every write arrives once, whatever connections are taken away, and the cache sees them all', async () => {
      const { cluster, start } = clusterOf({ pageSize: 50 })
      const informer = cluster.informers.informer(ConfigMap, { namespace: 'default' })
      start()
      await informer.synced()
      await inParallel(600, 48, async (index) => {
        const written = await cluster.client.create(ConfigMap, map(`many-${index}`, { index: String(index) }))
        // Read-your-writes: the cache is never behind a response that we received.
        expect(cluster.informers.get(ConfigMap, `default/many-${index}`)?.metadata.uid).toBe(written.metadata.uid)
      })
      const listed = await cluster.client.list(ConfigMap, { namespace: 'default' })
      expect(listed.items.filter(({ metadata }) => metadata.name?.startsWith('many-'))).toHaveLength(600)
      const versions = () =>
        new Map(cluster.informers.list(ConfigMap).map(({ metadata }) => [metadata.name, metadata.resourceVersion]))
      await until('the cache equals the list', () =>
        listed.items.every(({ metadata }) => versions().get(metadata.name ?? '') === metadata.resourceVersion),
      )
    })

    it('thirty watches and a lease renewal do not starve each other', async () => {
      const { cluster, start } = clusterOf()
      const informers = Array.from({ length: 30 }, (_, index) =>
        cluster.informers.informer(ConfigMap, { labelSelector: `watch=w${index}` }),
      )
      start()
      await Promise.all(informers.map(async (informer) => informer.synced()))
      const answer = await cluster.client.request({
        method: 'GET',
        path: '/version',
        lane: 'lease',
        deadlineMs: 10_000,
      })
      expect(answer.status).toBe(200)
      const seen = new Promise<string | undefined>((resolve) =>
        informers[29]?.subscribe((change) => resolve(change.object.metadata.name)),
      )
      await cluster.client.create(ConfigMap, {
        metadata: { name: 'labelled', namespace: 'default', labels: { watch: 'w29' } },
      })
      expect(await seen).toBe('labelled')
    })

    it('refusals are typed as the server means them', async () => {
      const { client } = clusterOf().cluster
      const first = await client.create(ConfigMap, map('typed'))
      await expect(client.create(ConfigMap, map('typed'))).rejects.toBeInstanceOf(AlreadyExists)
      await client.patch(ConfigMap, 'default/typed', 'merge', { data: { a: '1' } })
      await expect(client.update(ConfigMap, first)).rejects.toBeInstanceOf(Conflict)
      await expect(
        client.delete(ConfigMap, 'default/typed', { precondition: { uid: 'another' } }),
      ).rejects.toBeInstanceOf(Conflict)
      await expect(client.create(ConfigMap, map('Not A Name'))).rejects.toBeInstanceOf(Invalid)
      await expect(client.get(ConfigMap, 'default/absent')).rejects.toBeInstanceOf(NotFound)
      await client.apply(ConfigMap, map('typed', { a: '2' }), { fieldManager: 'other' })
      await expect(client.apply(ConfigMap, map('typed', { a: '3' }), { force: false })).rejects.toBeInstanceOf(Conflict)
      await client.patch(ConfigMap, 'default/typed', 'json', [{ op: 'replace', path: '/data/a', value: '4' }])
      expect((await client.patch(ConfigMap, 'default/typed', 'strategic', { data: { b: '5' } })).data).toEqual({
        a: '4',
        b: '5',
      })
      await client.delete(ConfigMap, 'default/typed', { precondition: { uid: first.metadata.uid ?? '' } })
      expect(await client.find(ConfigMap, 'default/typed')).toBeUndefined()
      await client.create(ConfigMap, { metadata: { name: 'swept', namespace: 'default', labels: { sweep: 'yes' } } })
      await client.deleteCollection(ConfigMap, { namespace: 'default', labelSelector: 'sweep=yes' })
      expect(await client.find(ConfigMap, 'default/swept')).toBeUndefined()
      await expect(client.get(Namespace, 'absent')).rejects.toBeInstanceOf(NotFound)
    })

    it('a watch that is denied after a good list keeps the cache true by listing, and becomes a watch when it may', async () => {
      const user = await plane.addUser('lister')
      const role = (verbs: string[]) => ({
        metadata: { name: 'lister' },
        rules: [{ apiGroups: [''], resources: ['configmaps'], verbs }],
      })
      const group = { group: 'rbac.authorization.k8s.io', version: 'v1', namespaced: false }
      const ClusterRole = kind<Obj>({ ...group, kind: 'ClusterRole', plural: 'clusterroles' })
      const ClusterRoleBinding = kind<Obj>({ ...group, kind: 'ClusterRoleBinding', plural: 'clusterrolebindings' })
      const admin = clusterOf().cluster.client
      await admin.apply(ClusterRole, role(['list']))
      await admin.apply(ClusterRoleBinding, {
        metadata: { name: 'lister' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'lister' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'lister' }],
      } as Obj)
      const { cluster, start } = clusterOf({ random: () => 0 }, user)
      const informer = cluster.informers.informer(ConfigMap)
      // RBAC is eventually consistent in the server, too.
      await until(
        'the role works',
        async () =>
          (await cluster.client.request({ method: 'GET', path: '/api/v1/configmaps', query: { limit: '1' } }))
            .status === 200,
      )
      start()
      await informer.synced()
      await expect(cluster.client.get(ConfigMap, 'default/x')).rejects.toBeInstanceOf(Forbidden)
      await admin.create(ConfigMap, map('while-denied'))
      await until('a list brings it', () => cluster.informers.get(ConfigMap, 'default/while-denied') !== undefined)
      await admin.apply(ClusterRole, role(['list', 'watch']))
      await until('the watch is open', () => informer.state === 'live' && (cluster.stats?.streams ?? 0) > 0)
      await admin.create(ConfigMap, map('while-allowed'))
      await until('the watch brings it', () => cluster.informers.get(ConfigMap, 'default/while-allowed') !== undefined)
    })

    it('a kind comes and goes with its CRD', async () => {
      interface Buoy extends Obj {
        spec?: { colour?: string }
      }
      const Buoy = kind<Buoy>({ group: 'sea.test', version: 'v1', kind: 'Buoy', plural: 'buoys', namespaced: true })
      const { cluster, start } = clusterOf({ random: () => 0 })
      const informer = cluster.informers.informer(Buoy)
      const seen: string[] = []
      informer.subscribe((change) => seen.push(`${change.type} ${change.object.metadata.name}`))
      start()
      await informer.synced()
      expect([informer.state, cluster.informers.list(Buoy)]).toEqual(['absent', []])
      const crd = {
        metadata: { name: 'buoys.sea.test' },
        spec: {
          group: 'sea.test',
          scope: 'Namespaced' as const,
          names: { kind: 'Buoy', plural: 'buoys', singular: 'buoy', listKind: 'BuoyList' },
          versions: [
            {
              name: 'v1',
              served: true,
              storage: true,
              schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
            },
          ],
        },
      }
      await cluster.client.apply(CustomResourceDefinition, crd)
      await until('the kind is served', () => informer.state === 'live')
      await cluster.client.apply(Buoy, { metadata: { name: 'red', namespace: 'default' }, spec: { colour: 'red' } })
      await until('the object is seen', () => seen.includes('added red'))
      await cluster.client.delete(CustomResourceDefinition, 'buoys.sea.test')
      await until('the kind is gone', () => informer.state === 'absent')
      expect(seen).toEqual(['added red', 'deleted red'])
      expect(cluster.informers.list(Buoy)).toEqual([])
    })

    it('a metadata watch carries nothing but metadata', async () => {
      const { cluster, start } = clusterOf()
      await cluster.client.apply(ConfigMap, map('only-metadata', { secret: 'x' }))
      const informer = cluster.informers.informer(ConfigMap, { projection: 'metadata' })
      start()
      await informer.synced()
      const object = cluster.informers.get(ConfigMap, 'default/only-metadata')
      expect(Object.keys(object ?? {})).toEqual(['apiVersion', 'kind', 'metadata'])
      expect([object?.apiVersion, object?.kind, object?.metadata.managedFields]).toEqual(['v1', 'ConfigMap', undefined])
    })

    it('a WatchList stream is one stream: the objects, the end bookmark, and what follows', async () => {
      const { cluster } = clusterOf()
      await inParallel(120, 16, async (index) => cluster.client.apply(ConfigMap, map(`streamed-${index}`)))
      const rest = createRest(configFromText(plane.kubeconfig()))
      cleanups.push(rest.close)
      const states: string[] = []
      const store = new Store<ConfigMap>(() => undefined)
      const reflector = new Reflector(createHttpSource(rest, ConfigMap, { namespace: 'default' }), store, {
        onState: ({ at }) => states.push(at),
      })
      const stop = new AbortController()
      const running = reflector.run(stop.signal)
      await until(
        'it is complete',
        () => store.list().filter(({ metadata }) => metadata.name?.startsWith('streamed-')).length === 120,
      )
      const later = await cluster.client.apply(ConfigMap, map('streamed-later'))
      await until('what follows', () => store.get('default/streamed-later')?.metadata.uid === later.metadata.uid)
      expect(states).toEqual(['stream', 'watch'])
      stop.abort()
      await running
    })

    it('a version that was compacted away is answered with Gone, and a reflector lists again', async () => {
      const { cluster } = clusterOf()
      const { client } = cluster
      const { metadata } = await client.apply(ConfigMap, map('compacted', { at: 'first' }))
      for (const at of ['between', 'later']) await client.apply(ConfigMap, map('compacted', { at }))
      const latest = await client.apply(ConfigMap, map('compacted', { at: 'second' }))
      const body = JSON.stringify({ revision: latest.metadata.resourceVersion, physical: true })
      expect((await fetch(`${plane.etcdUrl}/v3/kv/compaction`, { method: 'POST', body })).status).toBe(200)
      const watch = async () => {
        for await (const event of client.watch(ConfigMap, { resourceVersion: metadata.resourceVersion ?? '' }))
          expect(event).toBeUndefined()
      }
      await expect(watch()).rejects.toBeInstanceOf(Gone)

      const rest = createRest(configFromText(plane.kubeconfig()))
      cleanups.push(rest.close)
      const real = createHttpSource(rest, ConfigMap)
      let syncs = 0
      const source: Source<ConfigMap> = {
        ...real,
        async watch(request, ...others) {
          // No stream of the whole set: this is about a list and the watch behind it.
          const status = { kind: 'Status', apiVersion: 'v1', code: 422, reason: 'Invalid' } as const
          if (request.version === undefined) throw apiError('watch', 422, status)
          await real.watch(request, ...others)
        },
        // The first list claims to be as old as the version that is gone.
        async list(request, each, signal) {
          if (request.continueToken === undefined) syncs++
          const page = await real.list(request, each, signal)
          return syncs === 1 ? { ...page, resourceVersion: metadata.resourceVersion ?? '' } : page
        },
      }
      const failures: string[] = []
      const store = new Store<ConfigMap>(() => undefined)
      const reflector = new Reflector(source, store, {
        random: () => 0,
        onFailure: (failure) => failures.push(failure),
      })
      const stop = new AbortController()
      const running = reflector.run(stop.signal)
      await until('it lists again', () => syncs >= 2 && reflector.state.at === 'watch')
      stop.abort()
      await running
      expect(failures).toContain('expired')
      expect(store.get('default/compacted')?.data).toEqual({ at: 'second' })
    })
  },
)

describe.skipIf(!needs('kube-apiserver', 'etcd'))('on a real kube-apiserver with its watch cache', () => {
  beforeAll(async () => {
    plane = await ControlPlane.start({})
  }, 120_000)
  afterAll(async () => plane?.stop())
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
  })

  it('a list comes in pages where WatchList is not possible, and joins its watch without a gap', async () => {
    const writer = clusterOf().cluster.client
    await inParallel(120, 16, async (index) => writer.apply(ConfigMap, map(`paged-${index}`)))
    const requests: string[] = []
    const { cluster, start } = clusterOf({
      pageSize: 50,
      observer: { request: ({ code, method }) => requests.push(`${method} ${code}`) },
    })
    const informer = cluster.informers.informer(ConfigMap, { namespace: 'default' })
    start()
    await informer.synced()
    expect(
      cluster.informers.list(ConfigMap).filter(({ metadata }) => metadata.name?.startsWith('paged-')),
    ).toHaveLength(120)
    expect(requests.length).toBeGreaterThanOrEqual(3)
    await writer.apply(ConfigMap, map('paged-later'))
    await until('what follows', () => cluster.informers.get(ConfigMap, 'default/paged-later') !== undefined)
  })

  it('the fields we own are kept from the watch and from our own writes alike', async () => {
    const { cluster, start } = clusterOf()
    const informer = cluster.informers.informer(ConfigMap, { keepManagedFieldsOf: 'wire' })
    await cluster.client.apply(ConfigMap, map('owned', { a: '1' }))
    start()
    await informer.synced()
    const fromWatch = cluster.informers.ownFields(ConfigMap, 'default/owned', 'wire')
    expect(JSON.parse(fromWatch ?? '')).toEqual({ 'f:data': { 'f:a': {} } })
    await cluster.client.apply(ConfigMap, map('owned', { b: '2' }))
    expect(JSON.parse(cluster.informers.ownFields(ConfigMap, 'default/owned', 'wire') ?? '')).toEqual({
      'f:data': { 'f:b': {} },
    })
    expect(cluster.informers.ownFields(ConfigMap, 'default/owned', 'somebody')).toBeUndefined()
  })
})
