/** The creation of a HostClaim is the lock of a host: of two roots that take it at the same time, exactly one gets it. */
import { Ingress } from '@seamark/kube'
import { fleetCrds, HostClaim } from '@seamark/operator'
import { Claims, ingressRoot } from '@seamark/operator/testing'
import { expect, it } from 'vitest'
import { startEmbedded } from './world.ts'

const RACES = 1000
const CONCURRENT = 50

/** A process whose caches know neither claims nor rivals yet: only the server decides. */
function contextOf(client: unknown): { claims: Claims; ctx: Parameters<Claims['take']>[3] } {
  const manager = { index: (kind: unknown, name: string) => ({ kind, name }) }
  const claims = new Claims(manager as unknown as ConstructorParameters<typeof Claims>[0], () => true)
  const ctx = { client, get: () => undefined, by: () => [], list: () => [] }
  return { claims, ctx: ctx as unknown as Parameters<Claims['take']>[3] }
}

it('a host has exactly one owner after each of a thousand races', async () => {
  const server = await startEmbedded(fleetCrds())
  try {
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
  } finally {
    await server.stop()
  }
})
