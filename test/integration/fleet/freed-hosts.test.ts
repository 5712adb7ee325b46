/** A host that another root or object frees is taken at once: no root waits for a change of its own. */
import { ConfigMap, Event, Ingress } from '@seamark/kube'
import { HostClaim } from '@seamark/operator'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { FleetEnvironment, root } from './test-environment.ts'

/** Far less than any periodic pass. */
const SOON = { timeout: 30_000, interval: 20 }

let environment: FleetEnvironment
beforeEach(async () => {
  // Without a registered cluster nothing but roots and claims changes.
  environment = await FleetEnvironment.start([])
  await environment.namespace(environment.hub.client, 'blog')
})
afterEach(async () => environment[Symbol.asyncDispose]())

const hosts = async (namespace: string): Promise<string[]> => {
  const { items } = await environment.hub.client.list(HostClaim)
  return items.flatMap(({ spec }) => (spec.namespace === namespace ? [spec.host] : []))
}
const inBlog = (name: string, host: string) => root(name, host, { namespace: 'blog' })

it('a wildcard frees the names that it covers, and a name the wildcard that covers it', async () => {
  environment.run()
  const { client } = environment.hub
  for (const [first, second] of [
    ['*.example.com', 'shop.example.com'],
    ['shop.example.com', '*.example.com'],
  ] as const) {
    await client.create(Ingress, root('first', first))
    await expect.poll(async () => hosts('shop'), SOON).toEqual([first])
    await client.create(Ingress, inBlog('second', second))
    await expect.poll(async () => environment.events('second'), SOON).toContain('HostConflict')
    await client.patch(Ingress, 'shop/first', 'merge', {
      metadata: { annotations: { 'seamark.io/delete': 'Immediate' } },
    })
    await client.delete(Ingress, 'shop/first')
    await expect.poll(async () => hosts('blog'), SOON).toEqual([second])
    await client.patch(Ingress, 'blog/second', 'merge', {
      metadata: { annotations: { 'seamark.io/delete': 'Immediate' } },
    })
    await client.delete(Ingress, 'blog/second')
    await expect.poll(async () => hosts('blog'), SOON).toEqual([])
  }
})

it('an older root without a claim frees its host when it is deleted, and when it names another one', async () => {
  const { client } = environment.hub
  for (const name of ['first', 'second']) {
    // Its policy is refused, so that it takes no claim.
    await client.create(
      Ingress,
      root(name, `${name}.example.com`, {
        annotations: { 'seamark.io/ttl': 'no number' },
      }),
    )
  }
  await untilLater((await client.get(Ingress, 'shop/second')).metadata.creationTimestamp ?? '', async () => {
    const { metadata } = await client.create(ConfigMap, { metadata: { namespace: 'blog', generateName: 'later-' } })
    return metadata.creationTimestamp ?? ''
  })
  for (const name of ['first', 'second']) await client.create(Ingress, inBlog(name, `${name}.example.com`))
  environment.run()
  const refused = async (): Promise<number> => {
    const { items } = await client.list(Event)
    return items.filter(({ reason, regarding }) => reason === 'HostConflict' && regarding?.namespace === 'blog').length
  }
  await expect.poll(refused, SOON).toBe(2)
  expect(await hosts('blog')).toEqual([])
  await client.delete(Ingress, 'shop/first')
  await expect.poll(async () => hosts('blog'), SOON).toEqual(['first.example.com'])
  const { spec } = root('second', 'other.example.com')
  await client.patch(Ingress, 'shop/second', 'merge', { spec })
  await expect
    .poll(async () => (await hosts('blog')).toSorted(), SOON)
    .toEqual(['first.example.com', 'second.example.com'])
})

/** Until the server gives an object another time of creation, in seconds. */
async function untilLater(time: string, create: () => Promise<string>): Promise<void> {
  await expect.poll(async () => (await create()) > time, SOON).toBe(true)
}
