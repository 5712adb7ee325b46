import { type AnswerPolicy, createZone, fqdn, policyText } from '@seamark/dns'
import { expect, it } from 'vitest'
import { zoneAnswerOf } from './answer-shares.ts'

const ORIGIN = fqdn('demo.test')
const NAME = fqdn('shop.demo.test')

function shares(values: readonly string[], policy?: Omit<AnswerPolicy, 'type'>, type = 'A'): Record<string, number> {
  const soa = { name: ORIGIN, type: 'SOA', ttl: 60, values: ['ns1.demo.test. host.demo.test. 1 60 60 60 60'] }
  const set = { name: NAME, type, ttl: 30, values }
  const policies =
    policy === undefined ? [] : [{ ...set, type: 'TYPE65401', values: [policyText({ type, ...policy })] }]
  return Object.fromEntries(zoneAnswerOf(createZone(ORIGIN, [soa, set, ...policies]), NAME).shares)
}

it('without a policy every value is in every answer: each has the same share', () => {
  expect(shares(['203.0.113.1', '203.0.113.2'])).toEqual({ '203.0.113.1': 0.5, '203.0.113.2': 0.5 })
  expect(shares(['eu.demo.test.'], undefined, 'CNAME')).toEqual({ 'eu.demo.test': 1 })
})

it('shares follow the weights, and those of weight 0 have none unless all have it', () => {
  const weighted = (...weights: number[]) =>
    shares(
      weights.map((_, index) => `203.0.113.${index + 1}`),
      { mode: 'weighted', entries: weights.map((weight, index) => ({ value: `203.0.113.${index + 1}`, weight })) },
    )
  expect(weighted(3, 1)).toEqual({ '203.0.113.1': 0.75, '203.0.113.2': 0.25 })
  expect(weighted(0, 5)).toEqual({ '203.0.113.1': 0, '203.0.113.2': 1 })
  expect(weighted(0, 0)).toEqual({ '203.0.113.1': 0.5, '203.0.113.2': 0.5 })
})

it('a worse priority has no share', () => {
  const entries = [
    { value: '203.0.113.1', priority: 0 },
    { value: '203.0.113.2', priority: 1 },
  ]
  expect(shares(['203.0.113.1', '203.0.113.2'], { mode: 'shuffle', entries })).toEqual({ '203.0.113.1': 1 })
})

it('clients of each region, and those of none, count the same', () => {
  const entries = [{ value: '203.0.113.1', regions: ['eu'] }, { value: '203.0.113.2' }]
  expect(shares(['203.0.113.1', '203.0.113.2'], { mode: 'shuffle', entries })).toEqual({
    '203.0.113.1': 0.5,
    '203.0.113.2': 0.5,
  })
})

it('a name without records has none', () => {
  const soa = { name: ORIGIN, type: 'SOA', ttl: 60, values: ['ns1.demo.test. host.demo.test. 1 60 60 60 60'] }
  expect(zoneAnswerOf(createZone(ORIGIN, [soa]), NAME)).toEqual({ shares: new Map(), values: [], ttl: undefined })
})
