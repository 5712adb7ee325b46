/** What may fail between a hub and its members: restarts, lost members, rotated and deleted credentials. */
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
    // The last one is asked to drain: it stays, and says why.
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
})
