import { decodePolicy, POLICY_TYPE, rdataFromText } from '@seamark/dns'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { policySettings, policyValue } from '../../rrset/answer-policy.ts'
import { AnswerShares } from './answer-shares.ts'
import type { Candidate } from './endpoints.ts'

const candidate = (name: string, more: Partial<Candidate> = {}): Candidate => ({
  key: `web/${name}`,
  name,
  target: { type: 'A', value: '192.0.2.1' },
  host: '192.0.2.1',
  weight: 1,
  priority: 0,
  isDraining: false,
  wasLeftOut: false,
  ...more,
})
const setOf = (...values: string[]) => ({ name: 'shop.example.test.', type: 'A', ttl: 30, values })
const decoded = (text: string | undefined) =>
  text === undefined ? undefined : decodePolicy(rdataFromText(POLICY_TYPE, text))

describe('the shares of endpoints in the answers of a name', () => {
  it('are no policy while every endpoint has the same weight and no region', () => {
    const shares = new AnswerShares()
    shares.add(candidate('a', { weight: 3 }), ['192.0.2.1'])
    shares.add(candidate('b', { weight: 3 }), ['192.0.2.2'])
    const set = setOf('192.0.2.1', '192.0.2.2')
    expect(shares.withPolicy(set, false)).toEqual(set)
    expect(decoded(shares.withPolicy(set, true).policy)).toMatchObject({ mode: 'shuffle' })
  })

  it('are weights in the smallest whole numbers, and a host name shares its weight among its addresses', () => {
    const shares = new AnswerShares()
    shares.add(candidate('a', { weight: 3 }), ['192.0.2.1'])
    shares.add(candidate('b', { weight: 1 }), ['192.0.2.2', '192.0.2.3'])
    shares.add(candidate('c', { weight: 1 }), ['192.0.2.3'])
    expect(decoded(shares.withPolicy(setOf('192.0.2.1', '192.0.2.2', '192.0.2.3'), false).policy)).toEqual({
      type: 'A',
      mode: 'weighted',
      entries: [
        { value: '192.0.2.1', weight: 6, priority: 0, regions: [] },
        { value: '192.0.2.2', weight: 1, priority: 0, regions: [] },
        { value: '192.0.2.3', weight: 3, priority: 0, regions: [] },
      ],
    })
  })

  it('are the regions of all endpoints with an address, and none for a name that is no region', () => {
    const shares = new AnswerShares()
    shares.add(candidate('a', { geo: 'eu' }), ['192.0.2.1'])
    shares.add(candidate('b', { geo: 'EU', priority: 1 }), ['192.0.2.2'])
    shares.add(candidate('d', { geo: 'us', priority: 1 }), ['192.0.2.2'])
    shares.add(candidate('c', { geo: 'no such region!' }), ['192.0.2.3'])
    expect(decoded(shares.withPolicy(setOf('192.0.2.1', '192.0.2.2', '192.0.2.3'), false).policy)).toMatchObject({
      mode: 'weighted',
      entries: [
        { value: '192.0.2.1', regions: ['eu'], priority: 0 },
        { value: '192.0.2.2', regions: ['eu', 'us'], priority: 1 },
        { value: '192.0.2.3', regions: [], priority: 0 },
      ],
    })
  })

  it('become settings of a DNSEndpoint that mean the same, and fit 16 bits', () => {
    const endpoint = fc.record({
      weight: fc.integer({ min: 0, max: 1000 }),
      priority: fc.integer({ min: 0, max: 1000 }),
      geo: fc.constantFrom('eu', 'us', 'ap-south_1', '', 'x y'),
      addresses: fc.uniqueArray(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 7 }),
    })
    fc.assert(
      fc.property(fc.array(endpoint, { minLength: 1, maxLength: 6 }), fc.boolean(), (endpoints, hasPolicy) => {
        const shares = new AnswerShares()
        const values = new Set<string>()
        for (const { addresses, ...more } of endpoints) {
          const texts = addresses.map((last) => `192.0.2.${last}`)
          shares.add(candidate('x', more), texts)
          for (const text of texts) values.add(text)
        }
        const set = setOf(...values)
        const { policy } = shares.withPolicy(set, hasPolicy)
        fc.pre(policy !== undefined)
        expect(policyValue(policySettings(policy), set)).toBe(policy)
      }),
    )
  })
})
