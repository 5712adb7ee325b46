/** Two managers of one hub, of which the holder of the Lease writes, and two hubs that place leaves on one member. */
import { Ingress, Lease } from '@seamark/kube'
import { Cluster, GlobalIngress } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { FleetWorld, patience, root } from './world.ts'

const LEASE = { lease: 'seamark', namespace: 'manager', retryPeriodMs: 200 }

describe('two managers of one hub', () => {
  it('write one at a time, and the second goes on with a drain where the first stopped', async () => {
    await using world = await FleetWorld.start(['eu1', 'us1'])
    const { client } = world.hub
    for (const name of ['eu1', 'us1']) {
      await world.register(name)
      await world.deploy(name)
    }
    const annotations = { 'seamark.io/drain-seconds': '0', 'seamark.io/ttl': '1' }
    await client.create(Ingress, root('shop', 'shop.example.com', { annotations }))
    const first = world.run({}, { leader: { ...LEASE, identity: 'first' } })
    const holder = async () => (await client.find(Lease, 'manager/seamark'))?.spec?.holderIdentity
    await expect.poll(holder, patience).toBe('first')
    const second = world.run({}, { leader: { ...LEASE, identity: 'second' } })
    await world.admit('eu1', 'shop/shop', '192.0.2.1')
    await world.admit('us1', 'shop/shop', '192.0.2.2')
    for (const name of ['eu1', 'us1'])
      await expect.poll(async () => world.judge(name, { healthy: true, active: true }), patience).toBe(1)
    await expect.poll(async () => world.phases(), patience).toBe('eu1 Active, us1 Active')
    await client.patch(Cluster, 'us1', 'merge', { spec: { drain: { enabled: true } } })
    await expect.poll(async () => world.phases(), patience).toBe('eu1 Active, us1 Draining')
    expect(second.writes).toEqual([])
    await first.stop()
    await expect.poll(holder, patience).toBe('second')
    const written = first.writes.length
    await world.judge('us1', { healthy: true, active: false })
    await expect.poll(async () => world.phases(), patience).toBe('eu1 Active')
    expect(await world.exists('us1', Ingress, 'shop/shop')).toBe(false)
    expect(second.writes.length).toBeGreaterThan(0)
    expect(first.writes).toHaveLength(written)
  })
})

describe('two hubs with one member', () => {
  it('leave each other what they own, say what to do, and the second takes over what the first deletes', async () => {
    await using world = await FleetWorld.start(['eu1'])
    await using other = await world.startSecondHub()
    await world.deploy('eu1')
    const leaf = async () => world.member('eu1').client.find(Ingress, 'shop/shop')
    for (const hub of [world, other]) {
      await hub.register('eu1')
      hub.run()
    }
    await world.hub.client.create(Ingress, root('shop', 'shop.example.com'))
    await expect.poll(leaf, patience).toBeDefined()
    const { uid, labels } = (await leaf())?.metadata ?? {}
    await other.hub.client.create(Ingress, root('shop', 'other.example.com'))
    const synced = async () => {
      const [global] = (await other.hub.client.list(GlobalIngress)).items
      return global?.status?.conditions?.find(({ type }) => type === 'Synced')?.message
    }
    const hubId = labels?.['seamark.io/hub']
    await expect
      .poll(synced, patience)
      .toBe(
        `eu1: Ingress shop/shop exists and belongs to hub ${hubId}; remove the cluster from the placement of the root on one of the hubs, or set the annotation seamark.io/adopt: "true" on the root to take it over`,
      )
    expect((await leaf())?.metadata.uid).toBe(uid)
    expect((await leaf())?.spec?.rules?.[0]?.host).toBe('shop.example.com')
    // The second gives up its root: what the first owns stays.
    await other.hub.client.delete(Ingress, 'shop/shop')
    await expect.poll(async () => other.hub.client.find(Ingress, 'shop/shop'), patience).toBeUndefined()
    expect((await leaf())?.metadata.uid).toBe(uid)
    // The first gives up: the second, which waits again, applies its own.
    await other.hub.client.create(Ingress, root('shop', 'other.example.com'))
    await expect.poll(synced, patience).toContain(`belongs to hub ${hubId}`)
    await world.hub.client.delete(Ingress, 'shop/shop')
    await expect.poll(async () => (await leaf())?.spec?.rules?.[0]?.host, patience).toBe('other.example.com')
    expect((await leaf())?.metadata.labels?.['seamark.io/hub']).not.toBe(hubId)
  })
})
