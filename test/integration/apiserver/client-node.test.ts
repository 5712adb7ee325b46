/** The official JavaScript client on the embedded server: typed and untyped calls, server-side apply, watch, informer. */
import {
  ApiException,
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  KubernetesObjectApi,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  Watch,
  type V1ConfigMap,
} from '@kubernetes/client-node'
import { BOAT, customResource } from '@seamark/kit/custom-resource'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { startEmbeddedServer, type EmbeddedServer } from './embedded-server.ts'

const namespace = 'default'
const crd = customResource(BOAT, {
  type: 'object',
  properties: { spec: { type: 'object', properties: { length: { type: 'integer' } } } },
})

describe('@kubernetes/client-node', () => {
  let embedded: EmbeddedServer
  let config: KubeConfig
  let core: CoreV1Api
  beforeAll(async () => {
    embedded = await startEmbeddedServer()
    config = new KubeConfig()
    config.loadFromString(embedded.kubeconfig)
    core = config.makeApiClient(CoreV1Api)
  })
  afterAll(async () => embedded?.stop())

  const configMap = (name: string, data: Record<string, string>): V1ConfigMap => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace, labels: { suite: 'client-node', name } },
    data,
  })

  it('creates, reads, lists by label, replaces and deletes', async () => {
    const created = await core.createNamespacedConfigMap({ namespace, body: configMap('plain', { a: '1' }) })
    expect(created.metadata?.creationTimestamp).toBeInstanceOf(Date)
    const read = await core.readNamespacedConfigMap({ name: 'plain', namespace })
    expect(read.data).toEqual({ a: '1' })
    await core.replaceNamespacedConfigMap({ name: 'plain', namespace, body: Object.assign(read, { data: { a: '2' } }) })
    const { items } = await core.listNamespacedConfigMap({ namespace, labelSelector: 'name=plain' })
    expect(items.map(({ metadata, data }) => [metadata?.name, data])).toEqual([['plain', { a: '2' }]])
    const stale = core.replaceNamespacedConfigMap({
      name: 'plain',
      namespace,
      body: Object.assign(read, { data: { a: '3' } }),
    })
    await expect(stale).rejects.toMatchObject({ code: 409 })
    await core.deleteNamespacedConfigMap({ name: 'plain', namespace })
    const gone = core.readNamespacedConfigMap({ name: 'plain', namespace })
    await expect(gone).rejects.toBeInstanceOf(ApiException)
    await expect(gone).rejects.toMatchObject({ code: 404 })
  })

  it('applies server-side, with owners of fields and conflicts', async () => {
    const objects = KubernetesObjectApi.makeApiClient(config)
    const apply = async (data: Record<string, string>, manager: string, isForced = false) =>
      objects.patch(configMap('applied', data), undefined, undefined, manager, isForced, PatchStrategy.ServerSideApply)
    await apply({ a: '1', b: '1' }, 'one')
    await expect(apply({ a: '2' }, 'two')).rejects.toMatchObject({ code: 409 })
    const forced = await apply({ a: '2' }, 'two', true)
    expect(forced.metadata?.managedFields?.map(({ manager, operation }) => [manager, operation])).toEqual([
      ['one', 'Apply'],
      ['two', 'Apply'],
    ])
    const patched = await core.patchNamespacedConfigMap(
      { name: 'applied', namespace, body: { data: { b: null, c: '3' } } },
      setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
    )
    expect(patched.data).toEqual({ a: '2', c: '3' })
  })

  it('works with custom resources as soon as their definition is there', async () => {
    const objects = KubernetesObjectApi.makeApiClient(config)
    await objects.create(crd)
    const custom = config.makeApiClient(CustomObjectsApi)
    const kind = { group: 'harbour.test', version: 'v1', namespace, plural: 'boats' }
    const boat = {
      apiVersion: 'harbour.test/v1',
      kind: 'Boat',
      metadata: { name: 'ann' },
      spec: { length: 9, sail: 1 },
    }
    await custom.createNamespacedCustomObject({ ...kind, body: boat })
    const list: unknown = await custom.listNamespacedCustomObject(kind)
    expect(list).toMatchObject({ items: [{ metadata: { name: 'ann' }, spec: { length: 9 } }] })
    const wrong = custom.createNamespacedCustomObject({
      ...kind,
      body: { ...boat, metadata: { name: 'bob' }, spec: { length: 'long' } },
    })
    await expect(wrong).rejects.toMatchObject({ code: 422 })
  })

  it('watches', async () => {
    const seen: string[] = []
    const { metadata } = await core.listNamespacedConfigMap({ namespace })
    const request = await new Watch(config).watch(
      `/api/v1/namespaces/${namespace}/configmaps`,
      { resourceVersion: metadata?.resourceVersion, allowWatchBookmarks: true },
      (type, object: V1ConfigMap) => seen.push(`${type} ${object.metadata?.name}`),
      () => undefined,
    )
    await core.createNamespacedConfigMap({ namespace, body: configMap('seen', {}) })
    await core.deleteNamespacedConfigMap({ name: 'seen', namespace })
    await vi.waitFor(() => expect(seen).toEqual(['ADDED seen', 'DELETED seen']))
    request.abort()
  })

  it('keeps an informer in step, through a lost stream and a compacted history', async () => {
    const path = `/api/v1/namespaces/${namespace}/configmaps`
    const list = async () => core.listNamespacedConfigMap({ namespace, labelSelector: 'suite=client-node' })
    const informer = makeInformer(config, path, list, 'suite=client-node')
    const seen: string[] = []
    for (const event of ['add', 'update', 'delete'] as const) {
      informer.on(event, ({ metadata }) => void seen.push(`${event} ${metadata?.name}`))
    }
    // Stopping aborts the watch, which is an error too: an informer started again then would reconnect without end.
    let isStopping = false
    informer.on('error', () => void (isStopping || informer.start()))
    await informer.start()
    await core.createNamespacedConfigMap({ namespace, body: configMap('kept', { a: '1' }) })
    await vi.waitFor(() => expect(seen).toContain('add kept'))

    embedded.server.faults.compact()
    embedded.server.faults.cut({ resource: 'configmaps' })
    await core.replaceNamespacedConfigMap({ name: 'kept', namespace, body: configMap('kept', { a: '2' }) })
    await vi.waitFor(() => expect(informer.get('kept', namespace)?.data).toEqual({ a: '2' }), { timeout: 5_000 })
    await core.deleteNamespacedConfigMap({ name: 'kept', namespace })
    await vi.waitFor(() => expect(seen).toContain('delete kept'))
    isStopping = true
    await informer.stop()
  })
})
