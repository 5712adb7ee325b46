/** Two hubs that place leaves on one member. */
import { Ingress } from '@seamark/kube'
import { GlobalIngress } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { FleetEnvironment, POLL_OPTIONS, root } from './test-environment.ts'

describe('two hubs with one member', () => {
  it('leave each other what they own, say what to do, and the second takes over what the first deletes', async () => {
    await using environment = await FleetEnvironment.start(['eu1'])
    await using other = await environment.startSecondHub()
    await environment.deploy('eu1')
    const leaf = async () => environment.member('eu1').client.find(Ingress, 'shop/shop')
    for (const hub of [environment, other]) {
      await hub.register('eu1')
      hub.run()
    }
    await environment.hub.client.create(Ingress, root('shop', 'shop.example.com'))
    await expect.poll(leaf, POLL_OPTIONS).toBeDefined()
    const { uid, labels } = (await leaf())?.metadata ?? {}
    await other.hub.client.create(Ingress, root('shop', 'other.example.com'))
    const synced = async () => {
      const [global] = (await other.hub.client.list(GlobalIngress)).items
      return global?.status?.conditions?.find(({ type }) => type === 'Synced')?.message
    }
    const hubId = labels?.['seamark.io/hub']
    await expect
      .poll(synced, POLL_OPTIONS)
      .toBe(
        `eu1: Ingress shop/shop exists and belongs to hub ${hubId}; remove the cluster from the placement of the root on one of the hubs, or set the annotation seamark.io/adopt: "true" on the root to take it over`,
      )
    expect((await leaf())?.metadata.uid).toBe(uid)
    expect((await leaf())?.spec?.rules?.[0]?.host).toBe('shop.example.com')
    // The second gives up its root: what the first owns stays.
    await other.hub.client.delete(Ingress, 'shop/shop')
    await expect.poll(async () => other.hub.client.find(Ingress, 'shop/shop'), POLL_OPTIONS).toBeUndefined()
    expect((await leaf())?.metadata.uid).toBe(uid)
    // The first gives up: the second, which waits again, applies its own.
    await other.hub.client.create(Ingress, root('shop', 'other.example.com'))
    await expect.poll(synced, POLL_OPTIONS).toContain(`belongs to hub ${hubId}`)
    await environment.hub.client.delete(Ingress, 'shop/shop')
    await expect.poll(async () => (await leaf())?.spec?.rules?.[0]?.host, POLL_OPTIONS).toBe('other.example.com')
    expect((await leaf())?.metadata.labels?.['seamark.io/hub']).not.toBe(hubId)
  })
})
