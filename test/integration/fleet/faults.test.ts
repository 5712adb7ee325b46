/** What may fail between a hub and its members: restarts, lost members, rotated and deleted credentials. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Ingress, Secret } from '@seamark/kube'
import { Cluster, DNSLoadBalancerEndpoint, LeafIngress } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { FleetWorld, patience, root } from './world.ts'

const ready = async (world: FleetWorld, name: string) =>
  (await world.hub.client.get(Cluster, name)).status?.conditions?.find(({ type }) => type === 'Ready')?.status

async function startServing(): Promise<FleetWorld> {
  const world = await FleetWorld.start(['eu1', 'us1'])
  for (const name of ['eu1', 'us1']) {
    await world.register(name)
    await world.deploy(name)
  }
  await world.hub.client.create(
    Ingress,
    root('shop', 'shop.example.com', { annotations: { 'seamark.io/drain-seconds': '1', 'seamark.io/ttl': '1' } }),
  )
  return world
}

async function admitBoth(world: FleetWorld): Promise<void> {
  await world.admit('eu1', 'shop/shop', '192.0.2.1')
  await world.admit('us1', 'shop/shop', '192.0.2.2')
  for (const name of ['eu1', 'us1'])
    await expect.poll(async () => world.judge(name, { healthy: true, active: true }), patience).toBe(1)
  await expect.poll(async () => world.phases(), patience).toBe('eu1 Active, us1 Active')
}

describe('the fleet under faults', () => {
  it('drains a cluster across a restart in every step, and never withdraws the only leaf', async () => {
    await using world = await startServing()
    const { client } = world.hub
    let app = world.run()
    const restart = async () => {
      await app.stop()
      app = world.run()
    }
    await admitBoth(world)
    await restart()
    await client.patch(Cluster, 'us1', 'merge', { spec: { drain: { enabled: true } } })
    await expect.poll(async () => world.phases(), patience).toBe('eu1 Active, us1 Draining')
    await restart()
    const drains = async () =>
      (await client.list(DNSLoadBalancerEndpoint)).items
        .map(({ spec }) => `${spec.ipaddress} ${spec.drain === true}`)
        .sort()
    await expect.poll(drains, patience).toEqual(['192.0.2.1 false', '192.0.2.2 true'])
    // DNS still answers it: nothing is deleted, however long it takes.
    expect(await world.exists('us1', Ingress, 'shop/shop')).toBe(true)
    await world.judge('us1', { healthy: true, active: false })
    const started = async () => (await client.find(LeafIngress, 'shop/ingress-shop--us1'))?.status?.drainStartedAt
    await expect
      .poll(async () => (await started()) ?? (await world.phases()), patience)
      .not.toBe('eu1 Active, us1 Draining')
    await restart()
    await expect.poll(async () => world.phases(), patience).toBe('eu1 Active')
    expect(await world.exists('us1', Ingress, 'shop/shop')).toBe(false)
    expect((await client.get(Ingress, 'shop/shop')).status?.loadBalancer?.ingress).toEqual([{ ip: '192.0.2.1' }])
    await restart()
    // The last one is to drain: it stays, with a reason.
    await client.patch(Cluster, 'eu1', 'merge', { spec: { drain: { enabled: true } } })
    await expect.poll(async () => world.phases(), patience).toBe('eu1 Draining')
    await expect.poll(drains, patience).toEqual(['192.0.2.1 false'])
    const degraded = async () =>
      (await world.global())?.status?.conditions?.find(({ type }) => type === 'Degraded')?.message
    await expect.poll(degraded, patience).toContain('eu1: no other leaf serves')
    await client.patch(Cluster, 'us1', 'merge', { spec: { drain: { enabled: false } } })
    await expect.poll(async () => world.exists('us1', Ingress, 'shop/shop'), patience).toBe(true)
    await app.stop()
  })

  it('keeps what a lost member serves, takes rotated credentials, and removes nothing with a Secret', async () => {
    await using world = await startServing()
    const { client } = world.hub
    world.run()
    await admitBoth(world)
    const uid = (await world.member('us1').client.get(Ingress, 'shop/shop')).metadata.uid
    // Rotation: the same server, other credentials.
    const secret = await client.get(Secret, 'manager/us1')
    await client.update(Secret, { ...secret, metadata: { ...secret.metadata, annotations: { rotated: 'yes' } } })
    await client.delete(Secret, 'manager/us1')
    await expect.poll(async () => ready(world, 'us1'), patience).toBe('False')
    await expect
      .poll(
        async () => (await world.global())?.status?.leaves?.find(({ cluster }) => cluster === 'us1')?.stale,
        patience,
      )
      .toBe(true)
    expect(await world.phases()).toBe('eu1 Active, us1 Active')
    expect((await world.member('us1').client.get(Ingress, 'shop/shop')).metadata.uid).toBe(uid)
    expect((await client.get(Ingress, 'shop/shop')).status?.loadBalancer?.ingress).toEqual([
      { ip: '192.0.2.1' },
      { ip: '192.0.2.2' },
    ])
    await world.registerSecret('us1', world.member('us1').kubeconfig)
    await expect.poll(async () => ready(world, 'us1'), patience).toBe('True')
    await expect
      .poll(async () => (await world.global())?.status?.leaves?.some(({ stale }) => stale === true), patience)
      .toBe(false)

    // The member is gone: what it serves stays in DNS until the probes say otherwise.
    await world.member('us1').stop()
    await expect.poll(async () => ready(world, 'us1'), patience).toBe('False')
    expect(await world.phases()).toBe('eu1 Active, us1 Active')
    await world.judge('us1', { healthy: false, active: true })
    await expect.poll(async () => world.phases(), patience).toBe('eu1 Active, us1 Unhealthy')
    // A root is deleted while a member is gone: the rest goes, and the leaf waits for the member.
    await client.patch(Ingress, 'shop/shop', 'merge', {
      metadata: { annotations: { 'seamark.io/force-delete': 'true' } },
    })
    await client.delete(Ingress, 'shop/shop')
    await expect.poll(async () => client.find(Ingress, 'shop/shop'), patience).toBeUndefined()
    await expect.poll(async () => world.exists('eu1', Ingress, 'shop/shop'), patience).toBe(false)
    const orphans = async () =>
      (await client.get(Cluster, 'us1')).status?.orphans?.map(({ kind, name }) => `${kind} ${name}`)
    await expect.poll(orphans, patience).toEqual(['Ingress shop'])
    await expect
      .poll(async () => world.events('shop'), patience)
      .toEqual(expect.arrayContaining(['RootDeleted', 'LeafOrphaned']))
  })

  it('takes rotated credentials over without a new list or watch, and uses them for the next write', async () => {
    await using world = await startServing()
    const { client } = world.hub
    const member = world.member('us1')
    const kubeconfigOf = (user: string) => member.embedded?.userKubeconfig(user, ['system:masters']) ?? ''
    const secretOf = (user: string) => ({ data: { kubeconfig: Buffer.from(kubeconfigOf(user)).toString('base64') } })
    await client.patch(Secret, 'manager/us1', 'merge', secretOf('old'))
    world.run()
    await admitBoth(world)
    const faults = member.embedded?.server.faults
    // Every list and new watch is refused from now on, and every request with the old credentials.
    faults?.fail({ verb: 'list' }, { status: 500 })
    faults?.fail({ verb: 'watch' }, { status: 500 })
    faults?.fail({ user: 'old' }, { status: 401 })
    await client.patch(Secret, 'manager/us1', 'merge', secretOf('new'))
    await client.patch(Ingress, 'shop/shop', 'json', [
      { op: 'replace', path: '/spec/rules/0/http/paths/0/path', value: '/rotated' },
    ])
    const path = async () => (await member.client.get(Ingress, 'shop/shop')).spec?.rules?.[0]?.http?.paths[0]?.path
    await expect.poll(path, patience).toBe('/rotated')
    // The watch of before still reports.
    await world.admit('us1', 'shop/shop', '192.0.2.22')
    const addresses = async () =>
      (await client.get(LeafIngress, 'shop/ingress-shop--us1')).status?.addresses?.map(({ value }) => value)
    await expect.poll(addresses, patience).toEqual(['192.0.2.22'])
    expect(await ready(world, 'us1')).toBe('True')
  })

  it('says what a member answers that is no API server, and that another one is too slow; others go on', async () => {
    await using world = await startServing()
    const { client } = world.hub
    const garbage = createServer((_request, response) => response.end('{"kind":"List","items":[{"metadata":7'))
    const silent = createServer(() => undefined)
    const sockets = [garbage, silent]
    try {
      for (const [index, server] of sockets.entries()) {
        await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
        const { port } = server.address() as AddressInfo
        // Plain HTTP is refused; behind TLS they would be as silent.
        const kubeconfig = world.member('eu1').kubeconfig.replace(/server: .*/, `server: https://127.0.0.1:${port}`)
        await world.registerSecret(`odd${index}`, kubeconfig)
        await client.create(Cluster, { metadata: { name: `odd${index}` } } as Cluster)
      }
      world.run()
      await admitBoth(world)
      for (const name of ['odd0', 'odd1']) await expect.poll(async () => ready(world, name), patience).toBe('False')
      expect(await world.phases()).toBe('eu1 Active, us1 Active')
    } finally {
      for (const server of sockets) {
        server.closeAllConnections()
        server.close()
      }
    }
  })
})
