import { describe, expect, it } from 'vitest'
import { EndpointCounts } from '../sources/endpoint-counts.ts'
import { findOverLimit } from './tenant-limits.ts'

const limits = { perObject: 10, perNamespace: 20 }
const count = (name: string, endpoints: number, createdAt?: number) => ({
  uid: `uid-${name}`,
  endpoints,
  age: {
    createdAt: createdAt === undefined ? '' : `2030-01-01T00:00:0${createdAt}Z`,
    namespace: 'web',
    name,
    kind: 'DNSEndpoint',
  },
})

describe('limits of endpoints', () => {
  it('an object with too many is beyond the limit, and does not count for its namespace', () => {
    const over = findOverLimit([count('big', 11, 1), count('a', 10, 2), count('b', 10, 3)], limits)
    expect([...over.keys()]).toEqual(['uid-big'])
    expect(over.get('uid-big')).toBe(
      'DNSEndpoint web/big has 11 endpoints, at most 10 are served; split it, or raise records.dnsEndpoints.maxPerObject',
    )
  })

  it('the oldest objects of a namespace are served, in the same order on every replica', () => {
    const objects = [count('young', 9, 3), count('old', 8, 1), count('middle', 9, 2), count('small', 3, 4)]
    for (const list of [objects, objects.toReversed()]) {
      const over = findOverLimit(list, limits)
      expect([...over.keys()]).toEqual(['uid-young'])
      expect(over.get('uid-young')).toContain('namespace web requests more than 20 endpoints')
    }
    expect([...findOverLimit([count('b', 10), count('a', 10), count('c', 1)], limits).keys()]).toEqual(['uid-c'])
  })

  it('are computed for namespaces that changed; the difference says who is beyond them, and who is not any more', () => {
    const counts = new EndpointCounts(limits, new Set(['own']))
    counts.set('web', count('a', 10, 1))
    counts.set('web', count('b', 10, 2))
    counts.set('own', count('own', 1_000, 1))
    expect(counts.update()).toEqual({ added: new Map(), removed: new Set() })
    counts.set('web', count('c', 5, 3))
    expect([...counts.update().added.keys()]).toEqual(['uid-c'])
    expect(counts.over.has('uid-c')).toBe(true)
    // Unchanged: nothing is reported again.
    counts.set('web', count('c', 5, 3))
    expect(counts.update()).toEqual({ added: new Map(), removed: new Set() })
    counts.delete('web', 'uid-a')
    expect(counts.update()).toEqual({ added: new Map(), removed: new Set(['uid-c']) })
    expect(counts.over.has('uid-c')).toBe(false)
  })
})
