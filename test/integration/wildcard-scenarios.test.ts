/** W01–W16: wildcards that follow the nodes of registered clusters, on the embedded and on a real API server as hub. */
import { type Client, Node, Secret } from '@seamark/kube'
import { configFromText, connect } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { DNSEndpoint, runApp, wildcardDefaults, type WildcardOptions } from '@seamark/operator'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startEmbeddedServer } from './embedded-server.ts'
import { createNamespace, crdsInUse, eventually, type World, worldKinds } from './publish-world.ts'

interface UserCluster {
  readonly client: Client
  readonly kubeconfig: string
  readonly stop: () => Promise<void>
}

async function startUserCluster(): Promise<UserCluster> {
  const server = await startEmbeddedServer()
  const cluster = connect(configFromText(server.kubeconfig))
  const stop = async (): Promise<void> => {
    await cluster.close()
    await server.stop()
  }
  return { client: cluster.client, kubeconfig: server.kubeconfig, stop }
}

interface NodeShape {
  ready?: 'True' | 'False' | 'Unknown'
  external?: string[]
  internal?: string[]
  labels?: Record<string, string>
}

async function addNode(
  client: Client,
  name: string,
  { ready = 'True', external = [], internal = [], labels = {} }: NodeShape,
): Promise<void> {
  await client.create(Node, { metadata: { name, labels } })
  const addresses = [
    ...internal.map((address) => ({ type: 'InternalIP' as const, address })),
    ...external.map((address) => ({ type: 'ExternalIP' as const, address })),
  ]
  await client.patch(
    Node,
    name,
    'merge',
    { status: { addresses, conditions: [{ type: 'Ready', status: ready }] } },
    { subresource: 'status' },
  )
}

async function setReady(client: Client, name: string, status: 'True' | 'False' | 'Unknown'): Promise<void> {
  await client.patch(
    Node,
    name,
    'merge',
    { status: { conditions: [{ type: 'Ready', status }] } },
    { subresource: 'status' },
  )
}

describe.each(worldKinds)(`wildcard on $name, ${crdsInUse}`, ({ isMissing, start }) => {
  let world: World
  let user: UserCluster
  const cleanups: (() => Promise<void>)[] = []

  beforeAll(async () => {
    if (isMissing) return
    world = await start()
    await createNamespace(world.client, 'manager')
  })
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
    for (const kind of [Secret, DNSEndpoint]) {
      const { items } = await world.client.list<Obj>(kind, { namespace: 'manager' })
      for (const { metadata } of items)
        await world.client.delete<Obj>(kind, `manager/${metadata.name}`).catch(() => undefined)
    }
  })
  afterAll(async () => world?.[Symbol.asyncDispose]())

  async function userCluster(): Promise<UserCluster> {
    user = await startUserCluster()
    cleanups.push(user.stop)
    return user
  }

  function run(changes: Partial<WildcardOptions> = {}): { stop: () => Promise<void>; writes: { count: number } } {
    const { cluster, writes } = world.connect('contour-plus')
    const controller = new AbortController()
    const wildcard = {
      ...wildcardDefaults,
      zone: 'clusters.example.com',
      removalDelayMs: 400,
      coalesceMs: 0,
      ...changes,
    }
    const done = runApp(
      { cluster, wildcard, namespace: 'manager', mode: 'enforce', allowLoopback: true },
      controller.signal,
    )
    const stop = async (): Promise<void> => {
      if (controller.signal.aborted) return
      controller.abort()
      await done
      await cluster.close()
    }
    cleanups.push(stop)
    return { stop, writes }
  }

  async function register(
    name: string,
    { kubeconfig }: UserCluster,
    annotations: Record<string, string> = {},
  ): Promise<void> {
    const data = { kubeconfig: Buffer.from(kubeconfig).toString('base64') }
    await world.client.create(Secret, {
      metadata: { namespace: 'manager', name, labels: { 'seamark.io/cluster': name }, annotations },
      data,
    })
  }

  const read = async (name: string): Promise<DNSEndpoint | undefined> =>
    world.client.find(DNSEndpoint, `manager/${name}-wildcard`)
  const lines = (object: DNSEndpoint): string =>
    object.spec.endpoints
      .map((item) => `${item.dnsName} ${item.recordTTL} ${item.recordType} ${item.targets.join(',')}`)
      .join('; ')
  async function expectLines(name: string, expected: string): Promise<DNSEndpoint> {
    return eventually(
      `wildcard of ${name}`,
      async () => read(name),
      (object) => lines(object) === expected,
    )
  }

  const wild = '*.fra1.clusters.example.com 60 A'
  const nodes = { a: { external: ['192.0.2.1'] }, b: { external: ['192.0.2.2'] }, c: { external: ['192.0.2.3'] } }

  async function three(): Promise<UserCluster> {
    const cluster = await userCluster()
    for (const [name, shape] of Object.entries(nodes)) await addNode(cluster.client, name, shape)
    return cluster
  }

  it.skipIf(isMissing)(
    'W01, W15: three ready nodes are three sorted targets; owner, manager and name are right',
    async () => {
      const cluster = await three()
      run({ zone: 'Clusters.Example.com.' })
      await register('fra1', cluster)
      const object = await expectLines('fra1', `${wild} 192.0.2.1,192.0.2.2,192.0.2.3`)
      const secret = await world.client.get(Secret, 'manager/fra1')
      expect(object.metadata.ownerReferences).toMatchObject([
        { kind: 'Secret', name: 'fra1', uid: secret.metadata.uid, controller: true },
      ])
      expect(object.metadata.managedFields?.map((entry) => entry.manager)).toEqual(['seamark-wildcard'])
    },
  )

  it.skipIf(isMissing)(
    'W02, W03, W04: a node that is not ready leaves after the delay; a shorter flap writes nothing',
    async () => {
      const cluster = await three()
      run({ removalDelayMs: 1_500 })
      await register('fra1', cluster)
      const before = await expectLines('fra1', `${wild} 192.0.2.1,192.0.2.2,192.0.2.3`)
      await setReady(cluster.client, 'a', 'False')
      await addNode(cluster.client, 'd', { external: ['192.0.2.4'] })
      const grown = await expectLines('fra1', `${wild} 192.0.2.1,192.0.2.2,192.0.2.3,192.0.2.4`)
      await setReady(cluster.client, 'a', 'True')
      await setReady(cluster.client, 'b', 'Unknown')
      const shrunk = await expectLines('fra1', `${wild} 192.0.2.1,192.0.2.3,192.0.2.4`)
      expect([before, grown, shrunk].map((object) => object.metadata.generation)).toEqual([1, 2, 3])
    },
  )

  it.skipIf(isMissing)('W05: a cordoned node leaves at once, unless the switch keeps it', async () => {
    const cluster = await three()
    const { stop } = run()
    await register('fra1', cluster)
    await cluster.client.patch(Node, 'b', 'merge', { spec: { unschedulable: true } })
    await expectLines('fra1', `${wild} 192.0.2.1,192.0.2.3`)
    await stop()
    run({ excludeUnschedulable: false })
    await expectLines('fra1', `${wild} 192.0.2.1,192.0.2.2,192.0.2.3`)
  })

  it.skipIf(isMissing)('W06, W07, W10: internal addresses by permission, both families, equal ones once', async () => {
    const cluster = await userCluster()
    await addNode(cluster.client, 'a', { external: ['192.0.2.1', '2001:db8::1'], internal: ['10.0.0.1'] })
    await addNode(cluster.client, 'b', { internal: ['10.0.0.2'] })
    await addNode(cluster.client, 'c', { external: ['192.0.2.1'] })
    const { stop } = run()
    await register('fra1', cluster)
    await expectLines('fra1', `${wild} 10.0.0.2,192.0.2.1; *.fra1.clusters.example.com 60 AAAA 2001:db8::1`)
    await stop()
    run({ allowInternal: false })
    await expectLines('fra1', `${wild} 192.0.2.1; *.fra1.clusters.example.com 60 AAAA 2001:db8::1`)
  })

  it.skipIf(isMissing)('W08, W09: a deleted node leaves at once; the last one lost keeps the answer', async () => {
    const cluster = await three()
    run({ removalDelayMs: 100 })
    await register('fra1', cluster)
    await expectLines('fra1', `${wild} 192.0.2.1,192.0.2.2,192.0.2.3`)
    await cluster.client.delete(Node, 'a')
    await cluster.client.delete(Node, 'b')
    const last = await expectLines('fra1', `${wild} 192.0.2.3`)
    await setReady(cluster.client, 'c', 'False')
    await addNode(cluster.client, 'slow', { ready: 'False', external: ['192.0.2.9'] })
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect((await read('fra1'))?.metadata.resourceVersion).toBe(last.metadata.resourceVersion)
  })

  it.skipIf(isMissing)('W11, W13: a restart writes nothing; another selector is followed at once', async () => {
    const cluster = await userCluster()
    await addNode(cluster.client, 'a', { external: ['192.0.2.1'], labels: { role: 'router' } })
    await addNode(cluster.client, 'b', { external: ['192.0.2.2'] })
    const first = run()
    await register('fra1', cluster)
    const { metadata } = await expectLines('fra1', `${wild} 192.0.2.1,192.0.2.2`)
    await first.stop()
    const second = run()
    await new Promise((resolve) => setTimeout(resolve, 400))
    expect(second.writes.count).toBe(0)
    expect((await read('fra1'))?.metadata.resourceVersion).toBe(metadata.resourceVersion)
    await second.stop()
    run({ nodeSelector: 'role=router' })
    await expectLines('fra1', `${wild} 192.0.2.1`)
  })

  it.skipIf(isMissing)(
    'W12, W14: two clusters are two objects without cross-talk; the zone may be the cluster’s own',
    async () => {
      const [one, two] = [await three(), await userCluster()]
      await addNode(two.client, 'x', { external: ['198.51.100.1'] })
      run()
      await register('fra1', one)
      await register('iad1', two, { 'seamark.io/zone': 'us.example.org' })
      await expectLines('fra1', `${wild} 192.0.2.1,192.0.2.2,192.0.2.3`)
      const other = await expectLines('iad1', '*.iad1.us.example.org 60 A 198.51.100.1')
      await one.client.delete(Node, 'a')
      await expectLines('fra1', `${wild} 192.0.2.2,192.0.2.3`)
      expect((await read('iad1'))?.metadata.resourceVersion).toBe(other.metadata.resourceVersion)
      await world.client.delete(Secret, 'manager/iad1')
      // Garbage collection is the server's; a real kube-apiserver alone has no collector, so only the reference is checked there.
      expect(other.metadata.ownerReferences).toMatchObject([{ kind: 'Secret', name: 'iad1' }])
      if (world.server === undefined) return
      await eventually('the wildcard to go', async () => ((await read('iad1')) === undefined ? true : undefined))
    },
  )

  it.skipIf(isMissing)('W16: a manual edit is reverted', async () => {
    const cluster = await three()
    run()
    await register('fra1', cluster)
    await expectLines('fra1', `${wild} 192.0.2.1,192.0.2.2,192.0.2.3`)
    await world.client.patch(DNSEndpoint, 'manager/fra1-wildcard', 'merge', { spec: { endpoints: [] } })
    await expectLines('fra1', `${wild} 192.0.2.1,192.0.2.2,192.0.2.3`)
  })

  it.skipIf(isMissing)('an unreachable cluster and a hostile kubeconfig hold what is published', async () => {
    const cluster = await three()
    run()
    await register('fra1', cluster)
    const { metadata } = await expectLines('fra1', `${wild} 192.0.2.1,192.0.2.2,192.0.2.3`)
    const hostile = JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      users: [{ name: 'a', user: { exec: { command: 'sh' } } }],
    })
    await register('evil', { ...cluster, kubeconfig: hostile })
    await cluster.stop()
    cleanups.splice(cleanups.indexOf(cluster.stop), 1)
    await world.client.patch(Secret, 'manager/fra1', 'merge', { metadata: { annotations: { touched: 'yes' } } })
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect((await read('fra1'))?.metadata.resourceVersion).toBe(metadata.resourceVersion)
    expect(await read('evil')).toBeUndefined()
  })

  it.skipIf(isMissing)('the local cluster has a wildcard by name, and the apex when asked', async () => {
    await addNode(world.client, 'local-node', { external: ['203.0.113.7'] })
    cleanups.push(async () => world.client.delete(Node, 'local-node'))
    run({ localCluster: 'hub', apex: true })
    await expectLines('hub', '*.hub.clusters.example.com 60 A 203.0.113.7; hub.clusters.example.com 60 A 203.0.113.7')
  })
})
