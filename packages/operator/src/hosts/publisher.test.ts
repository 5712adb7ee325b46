import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type HostBalancer, publisherOf, publishesRoots } from './publisher.ts'

const aged = (namespace: string, second: number, kind = 'DNSLoadBalancer') => ({
  createdAt: `2026-01-01T00:00:0${second}Z`,
  namespace,
  name: 'shop',
  kind,
})
const balancer = (namespace: string, second: number, isOfSource = false): HostBalancer => ({
  age: aged(namespace, second),
  isOfSource,
})
const source = aged('web', 5, 'Ingress')

describe('who publishes a host', () => {
  it.each([
    { why: 'no load balancer has', balancers: [], by: 'publish' },
    { why: 'a load balancer of the namespace has, also a younger one', balancers: [balancer('web', 9)], by: 'balance' },
    {
      why: 'an older one of another namespace has',
      balancers: [balancer('other', 1)],
      by: 'balance',
      isConflict: true,
    },
    { why: 'a younger one of another namespace names', balancers: [balancer('other', 9)], by: 'publish' },
    { why: 'the source refers to', balancers: [balancer('other', 9, true)], by: 'balance', isConflict: false },
    {
      why: 'a load balancer of the namespace has beside a younger one of another',
      balancers: [balancer('web', 9), balancer('other', 7)],
      by: 'balance',
      isConflict: false,
    },
    {
      why: 'the older of two, of another namespace, has',
      balancers: [balancer('web', 9), balancer('other', 1)],
      by: 'balance',
      isConflict: true,
    },
  ])('$by publishes the host that $why', ({ balancers, by, isConflict }) => {
    const publisher = publisherOf({ source, isRoot: false, publishesRoots: false, balancers })
    expect(publisher.by).toBe(by)
    if (isConflict !== undefined) expect(publisher).toMatchObject({ isConflict })
  })

  it('balance publishes a root, before its load balancer exists and against another one', () => {
    const root = { source, isRoot: true, publishesRoots: false }
    expect(publisherOf({ ...root, balancers: [] })).toMatchObject({ by: 'balance', holder: undefined })
    expect(publisherOf({ ...root, balancers: [balancer('other', 1)] })).toMatchObject({
      by: 'balance',
      isConflict: true,
    })
  })

  it('a younger load balancer of another namespace does not have the host of a root', () => {
    const root = { source, isRoot: true, publishesRoots: false }
    expect(publisherOf({ ...root, balancers: [balancer('other', 9)] })).toEqual({
      by: 'balance',
      holder: undefined,
      isConflict: false,
    })
  })

  it('publish publishes a root where it does so, unless a load balancer has the host', () => {
    const root = { source, isRoot: true, publishesRoots: true }
    expect(publisherOf({ ...root, balancers: [] })).toEqual({ by: 'publish' })
    expect(publisherOf({ ...root, balancers: [balancer('web', 9)] })).toMatchObject({ by: 'balance' })
  })

  it('does not depend on the order in which load balancers are read', () => {
    const any = fc.record({ namespace: fc.constantFrom('web', 'a', 'b'), second: fc.integer({ min: 0, max: 9 }) })
    fc.assert(
      fc.property(fc.array(any, { maxLength: 4 }), fc.boolean(), (all, isRoot) => {
        const balancers = all.map(({ namespace, second }) => balancer(namespace, second))
        const facts = { source, isRoot, publishesRoots: false }
        expect(publisherOf({ ...facts, balancers: balancers.toReversed() })).toEqual(
          publisherOf({ ...facts, balancers }),
        )
      }),
    )
  })
})

describe('roots that no load balancer has', () => {
  it.each([
    { parts: { fleet: { dns: true }, balance: true }, auto: false },
    { parts: { fleet: { dns: true }, balance: false }, auto: true },
    { parts: { fleet: { dns: false }, balance: true }, auto: true },
    { parts: { fleet: undefined, balance: true }, auto: false },
    { parts: { fleet: undefined, balance: false }, auto: false },
  ])('$parts', ({ parts, auto }) => {
    expect(publishesRoots('auto', parts)).toBe(auto)
    expect(publishesRoots('always', parts)).toBe(true)
    expect(publishesRoots('never', parts)).toBe(false)
  })
})
