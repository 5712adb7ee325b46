import { decodePolicy } from '@seamark/dns'
import { describe, expect, it } from 'vitest'
import { policyValue } from './answer-policy.ts'

const SET = { name: 'www.example.test.', type: 'A', ttl: 60, values: ['192.0.2.1', '192.0.2.2'] }
const settings = (given: Record<string, string>) => Object.entries(given).map(([name, value]) => ({ name, value }))

function decoded(given: Record<string, string>) {
  const value = policyValue(settings(given), SET)
  if (typeof value !== 'string') return value
  const [, , hex = ''] = value.split(' ')
  return decodePolicy(Buffer.from(hex, 'hex'))
}

describe('the policy of an endpoint', () => {
  it('is none without settings of ours', () => {
    for (const given of [
      undefined,
      null,
      'text',
      [1, null, {}],
      settings({ 'aws/weight': '3', 'seamark.io/other': 'x' }),
    ])
      expect(policyValue(given, SET)).toBeUndefined()
  })

  it('has the weights, priorities and regions of its targets', () => {
    expect(
      decoded({
        'seamark.io/weights': '192.0.2.1=3, 192.0.2.2=1',
        'seamark.io/priorities': '192.0.2.2=1',
        'seamark.io/regions': '192.0.2.1=eu+us',
      }),
    ).toEqual({
      type: 'A',
      mode: 'weighted',
      entries: [
        { value: '192.0.2.1', weight: 3, priority: 0, regions: ['eu', 'us'] },
        { value: '192.0.2.2', weight: 1, priority: 1, regions: [] },
      ],
    })
    expect(decoded({ 'seamark.io/answer': 'shuffle' })).toMatchObject({ mode: 'shuffle' })
  })

  it.each([
    [{ 'seamark.io/weights': '192.0.2.9=1' }, /target of the endpoint/],
    [{ 'seamark.io/weights': '192.0.2.1' }, /TARGET=VALUE/],
    [{ 'seamark.io/weights': '192.0.2.1=-1' }, /0 to 65535/],
    [{ 'seamark.io/regions': '192.0.2.1=a b' }, /region/],
    [{ 'seamark.io/answer': 'random' }, /weighted or shuffle/],
  ])('is refused for %j', (given, why) => {
    expect(policyValue(settings(given), SET)).toMatchObject({ invalid: expect.stringMatching(why) as string })
  })
})
