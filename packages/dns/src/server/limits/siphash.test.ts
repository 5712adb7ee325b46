import { describe, expect, it } from 'vitest'
import { siphash } from './siphash.ts'
import { CookieJar } from './cookie.ts'
import { addressOctets } from '../../wire/address.ts'

describe('SipHash-2-4', () => {
  it('gives the results of the reference implementation', () => {
    const key = Uint8Array.from({ length: 16 }, (_, i) => i)
    const data = (length: number) => Uint8Array.from({ length }, (_, i) => i)
    // vectors_sip64 of the reference implementation, for inputs of 0, 1, 8 and 15 octets
    expect(Buffer.from(siphash(key, data(0))).toString('hex')).toBe('310e0edd47db6f72')
    expect(Buffer.from(siphash(key, data(1))).toString('hex')).toBe('fd67dc93c539f874')
    expect(Buffer.from(siphash(key, data(8))).toString('hex')).toBe('6224939a79f5f593')
    expect(Buffer.from(siphash(key, data(15))).toString('hex')).toBe('e545be4961ca29a1')
  })
})

describe('server cookies', () => {
  /** RFC 9018 appendix A.1: learning a new server cookie. */
  it('are those of RFC 9018', () => {
    const jar = new CookieJar(Buffer.from('e5e973e5a6b2a43f48e7dc849e37bfcf', 'hex'))
    const client = Buffer.from('2464c4abcf10c957', 'hex')
    const made = jar.serverCookie(client, false, addressOctets('198.51.100.100'), 1559731985)
    expect(Buffer.from(made).toString('hex')).toBe('010000005cf79f111f8130c3eee29480')
    const whole = Buffer.concat([client, made])
    expect(jar.isValid(whole, addressOctets('198.51.100.100'), 1559731985 + 600)).toBe(true)
    expect(jar.isValid(whole, addressOctets('198.51.100.101'), 1559731985 + 600)).toBe(false)
    expect(jar.isValid(whole, addressOctets('198.51.100.100'), 1559731985 + 3601)).toBe(false)
    expect(jar.isValid(whole, addressOctets('198.51.100.100'), 1559731985 - 301)).toBe(false)
  })

  it('are renewed in the second half of their life, so that a client that goes on asking always has a valid one', () => {
    const jar = new CookieJar()
    const client = Buffer.from('2464c4abcf10c957', 'hex')
    const address = addressOctets('198.51.100.100')
    const made = jar.serverCookie(client, false, address, 1000)
    const whole = Buffer.concat([client, made])
    expect(Buffer.compare(jar.serverCookie(whole, true, address, 1000 + 1799), made)).toBe(0)
    const renewed = jar.serverCookie(whole, true, address, 1000 + 1800)
    expect(jar.isValid(Buffer.concat([client, renewed]), address, 1000 + 5400)).toBe(true)
  })
})
