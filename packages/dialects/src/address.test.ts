import { isIPv6 } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseAddress, sortAddresses } from './address.ts'

describe('addresses', () => {
  it.each([
    ['10.0.0.1', '10.0.0.1'],
    ['2001:DB8:0::1', '2001:db8::1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:c000:0201', '192.0.2.1'],
    ['0:0:0:0:0:0:0:0', '::'],
    ['fe80::1%eth0', undefined],
    ['10.0.0.01', undefined],
    ['256.1.1.1', undefined],
    ['[::1]', undefined],
    ['example.com', undefined],
    ['', undefined],
  ])('%j is %j', (text, expected) => {
    expect(parseAddress(text)?.text).toBe(expected)
  })

  it('every spelling of an IPv6 address has one canonical form, which is its own', () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        const parsed = parseAddress(text)
        if (parsed === undefined) throw new Error(`${text} is no address`)
        expect(parseAddress(parsed.text)).toEqual(parsed)
        if (parsed.family === 6) expect(isIPv6(parsed.text)).toBe(true)
        expect(parseAddress(text.toUpperCase())).toEqual(parsed)
      }),
    )
  })

  it('sorts by family, keeps order, sets aside what is no address', () => {
    const entries = [
      { ip: '10.0.0.2' },
      { hostname: 'LB.example.' },
      { ip: 'x' },
      { ip: '::1' },
      { ip: '10.0.0.1' },
      { hostname: 'a_b' },
      { hostname: '192.0.2.7' },
      { hostname: '2001:DB8::7' },
      { ip: 'y', hostname: '192.0.2.8' },
      {},
    ]
    expect(sortAddresses(entries)).toEqual({
      v4: ['10.0.0.2', '10.0.0.1'],
      v6: ['::1'],
      inHostname: { v4: ['192.0.2.7', '192.0.2.8'], v6: ['2001:db8::7'] },
      hostnames: ['lb.example'],
      invalid: ['x', 'a_b', 'y'],
    })
  })
})
