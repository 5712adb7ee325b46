/** Two hubs that place leaves on one member. */
import { Ingress } from '@seamark/kube'
import { GlobalIngress } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { FleetWorld, patience, root } from './world.ts'

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
