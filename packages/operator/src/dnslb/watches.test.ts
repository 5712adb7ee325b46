import { describe, expect, it } from 'vitest'
import { parseWatches } from './watches.ts'

describe('the file of --watches', () => {
  it('becomes load balancers and endpoints; unknown keys are ignored', () => {
    const text = `watches:
  - name: api.example.com
    provider: aws
    healthPath: /healthz
    statusCode: 204
    singleton: true
    targets: [{ IP: 192.0.2.1 }, { name: lb.example.net }]
`
    const [watch] = parseWatches(text) as Exclude<ReturnType<typeof parseWatches>, { invalid: string }>
    expect(watch?.loadBalancer.spec).toEqual({
      DNSName: 'api.example.com',
      healthPath: '/healthz',
      statusCode: 204,
      singleton: true,
    })
    expect(watch?.endpoints.map(({ spec }) => spec)).toEqual([
      { loadbalancer: 'api.example.com', ipaddress: '192.0.2.1' },
      { loadbalancer: 'api.example.com', cname: 'lb.example.net' },
    ])
  })

  it.each([
    ['', 'expected object'],
    ['watches: [{ targets: [] }]', 'watches.0.name'],
    ['watches: {', ''],
  ])('%j is refused', (text, where) => {
    const parsed = parseWatches(text)
    expect('invalid' in parsed).toBe(true)
    expect('invalid' in parsed && parsed.invalid).toContain(where)
  })
})
