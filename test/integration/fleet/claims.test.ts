/**
 * What the API server decides when two act at once: the creation of a HostClaim is the lock of a host, and a delete is of the
 * object that was read.
 */
import { Ingress, Namespace } from '@seamark/kube'
import { fleetCrds, HostClaim } from '@seamark/operator'
import { Claims, deleteExactly, ingressRoot } from '@seamark/operator/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Server, startEmbedded } from './test-environment.ts'

const RACES = 1000
const CONCURRENT = 50

/** A process whose caches contain neither claims nor competing roots yet: only the server decides. */
function contextOf(client: unknown): { claims: Claims; ctx: Parameters<Claims['take']>[3] } {
  const manager = { index: (kind: unknown, name: string) => ({ kind, name }) }
  const claims = new Claims(manager as unknown as ConstructorParameters<typeof Claims>[0], () => true)
  const ctx = { client, get: () => undefined, by: () => [], list: () => [] }
  return { claims, ctx: ctx as unknown as Parameters<Claims['take']>[3] }
}

let server: Server
beforeAll(async () => {
  server = await startEmbedded(fleetCrds())
})
afterAll(async () => server.stop())

it('a leaf is deleted only if it is the object that was read', async () => {
  const { client } = server
  await client.create(Namespace, { metadata: { name: 'shop' } })
  const leaf: Ingress = { metadata: { namespace: 'shop', name: 'leaf' }, spec: { rules: [{ host: 'a.example.com' }] } }
  const read = await client.create(Ingress, leaf)
  await client.delete(Ingress, 'shop/leaf')
  const { metadata } = await client.create(Ingress, leaf)
  await deleteExactly(client, Ingress, read)
  expect((await client.get(Ingress, 'shop/leaf')).metadata.uid).toBe(metadata.uid)
  await deleteExactly(client, Ingress, { metadata })
  expect(await client.find(Ingress, 'shop/leaf')).toBeUndefined()
  await deleteExactly(client, Ingress, { metadata })
})

it('a host has exactly one owner after each of a thousand races', async () => {
  const race = async (index: number): Promise<number> => {
    const taken = await Promise.all(
      ['a', 'b'].map(async (namespace) => {
        const { claims, ctx } = contextOf(server.client)
        const root: Ingress = {
          metadata: {
            namespace,
            name: 'shop',
            uid: `${namespace}-${index}`,
            creationTimestamp: '2026-01-01T00:00:00Z',
          },
          spec: { rules: [{ host: `h${index}.example.com` }] },
        }
        return claims.take(ingressRoot, root, { managedDomain: '', needsProof: false }, ctx)
      }),
    )
    return taken.reduce((sum, { owned }) => sum + owned.length, 0)
  }
  const owners: number[] = []
  for (let start = 0; start < RACES; start += CONCURRENT)
    owners.push(...(await Promise.all(Array.from({ length: CONCURRENT }, async (_, index) => race(start + index)))))
  expect(owners).toEqual(Array.from({ length: RACES }, () => 1))
  const { items } = await server.client.list(HostClaim)
  expect(items.map(({ spec }) => spec.owners.length)).toEqual(owners)
})
