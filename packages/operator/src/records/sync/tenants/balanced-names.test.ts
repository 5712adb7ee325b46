import { expect, it } from 'vitest'
import { nameRule } from '@seamark/dialects'
import { DNSLoadBalancer } from '../../../api/dns-load-balancer.ts'
import { nameAmong } from './tenant-rules.ts'

const balancer = (namespace: string, day: number, DNSName: unknown, metadata: object = {}) =>
  ({
    kind: DNSLoadBalancer.kind,
    metadata: {
      namespace,
      name: 'lb',
      uid: `${namespace}-1`,
      creationTimestamp: `2026-01-0${day}T00:00:00Z`,
      ...metadata,
    },
    spec: { DNSName },
  }) as unknown as DNSLoadBalancer

/** The namespaces whose load balancer has the name. */
function holders(balancers: readonly DNSLoadBalancer[], rule = nameRule([])): string[] {
  const nameOf = nameAmong(balancers, rule)
  return ['a', 'b', 'c'].filter((namespace) => nameOf(`${namespace}/lb`, `${namespace}-1`) === 'ring.test.')
}

it('the oldest load balancer with a name has it', () => {
  expect(
    holders([balancer('a', 2, 'ring.test'), balancer('b', 1, 'Ring.test.'), balancer('c', 3, 'other.test')]),
  ).toEqual(['b'])
})

it('one that is being deleted, has no grant or no name has none', () => {
  const deleted = balancer('a', 1, 'ring.test', { deletionTimestamp: '2026-01-02T00:00:00Z' })
  expect(holders([deleted, balancer('b', 2, 'ring.test')])).toEqual(['b'])
  const granted = nameRule([{ namespace: 'b', domains: ['ring.test'] }])
  expect(holders([balancer('a', 1, 'ring.test'), balancer('b', 2, 'ring.test')], granted)).toEqual(['b'])
  expect(holders([balancer('a', 1, 7), balancer('b', 2, '..')])).toEqual([])
})
