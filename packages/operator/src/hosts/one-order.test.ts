/**
 * One `kubectl apply` creates its objects in one second: every capability has to give a host to the same one of them, whatever
 * the order in which it reads them. That the gateway does so is in its package (sources/one-order.test.ts).
 */
import type { Ingress } from '@seamark/kube'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { claimNames } from '../balance/decide/claims.ts'
import { BALANCE_DEFAULTS } from '../balance/load-balancer.ts'
import { decideClaim } from '../fleet/decide/host-claim.ts'
import { claimHost } from '../publish/sources/host-claim.ts'
import { fromIngress } from '../publish/sources/ingress.ts'
import { oldestSource } from '../records/plan/desired-table.ts'
import { sourceOf } from '../records/sync/sources/dns-endpoint-source.ts'

const HOST = 'shop.example.com'
// Of a name and one that continues it, texts joined by "/" sort in another order than the names.
const word = fc.constantFrom('a', 'a-1', 'a.b', 'b', 'shop', 'shop-2')
const second = fc.constantFrom('2026-01-01T00:00:00Z', '2026-01-01T00:00:01Z')
const metadata = fc.record({ namespace: word, name: word, uid: fc.uuid() })
const applied = fc
  .uniqueArray(metadata, { minLength: 2, maxLength: 6, selector: ({ namespace, name }) => `${namespace}/${name}` })
  .chain((all) => fc.tuple(...all.map((each) => second.map((creationTimestamp) => ({ ...each, creationTimestamp })))))
type Metadata = { namespace: string; name: string; uid: string; creationTimestamp: string }

const keyOf = ({ namespace, name }: { readonly namespace?: string; readonly name?: string }) => `${namespace}/${name}`
const ingress = (object: Metadata): Ingress => ({ metadata: object, spec: { rules: [{ host: HOST }] } })

function ofPublish(all: readonly Metadata[]): string[] {
  const sources = all.map((each) => fromIngress(ingress(each)))
  const won = sources.filter((source) => claimHost(source, sources, undefined, 0, 0).state === 'won')
  return won.map(keyOf)
}

/** Its unit is the namespace: any root of it may create the claim. */
function ofFleet(all: readonly Metadata[]): string[] {
  const rivals = all.map(({ creationTimestamp, ...each }) => ({
    ...each,
    kind: 'Ingress',
    createdAt: creationTimestamp,
  }))
  const free = {
    host: HOST,
    claim: undefined,
    overlapping: [],
    rivals,
    managedDomain: '',
    isVerified: undefined,
    findNameFault: () => undefined,
  }
  const won = rivals.filter((root) => decideClaim({ ...free, root }).state === 'create')
  return [...new Set(won.map(({ namespace }) => namespace))]
}

function ofBalance(all: readonly Metadata[]): string | undefined {
  const balancers = all.map((each) => ({ metadata: each, spec: { DNSName: HOST } }))
  return claimNames(balancers, BALANCE_DEFAULTS).get(`${HOST}.`)
}

function ofRecords(all: readonly Metadata[]): string | undefined {
  return oldestSource(all.map((each) => sourceOf({ metadata: each })))?.label.replace('DNSEndpoint ', '')
}

it('publish, fleet, balance and records give a host to the same object', () => {
  fc.assert(
    fc.property(applied, (all) => {
      const winner = ofPublish(all)
      expect(winner).toHaveLength(1)
      const [key = ''] = winner
      for (const order of [all, all.toReversed()]) {
        expect(ofPublish(order)).toEqual([key])
        expect(ofFleet(order)).toEqual([key.split('/')[0]])
        expect(ofBalance(order)).toBe(key)
        expect(ofRecords(order)).toBe(key)
      }
    }),
  )
})
