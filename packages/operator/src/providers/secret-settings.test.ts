import { describe, expect, it } from 'vitest'
import { providerSettings } from './secret-settings.ts'

describe('provider settings in a Secret', () => {
  it.each([
    ['aws', {}, "'AWS_ACCESS_KEY_ID' required in secret"],
    ['aws', { AWS_ACCESS_KEY_ID: 'x' }, "'AWS_SECRET_ACCESS_KEY' required in secret"],
    ['rfc2136', {}, "'SERVER' required in secret"],
    ['rfc2136', { SERVER: '127.0.0.1:53', ZONES: 'a.test', TSIG_NAME: 'k' }, "'TSIG_SECRET' required in secret"],
    ['powerdns', { URL: 'http://127.0.0.1:8081' }, "'API_KEY' required in secret"],
    ['powerdns', { URL: 'http://user:pass@127.0.0.1', API_KEY: 'k' }, 'url: has a user name or password'],
  ])('%s with %o: %s', (type, values, message) => {
    const result = providerSettings(type, 'x', values)
    expect('invalid' in result && result.invalid).toContain(message)
  })

  it('refers to the keys, and does not contain their secrets', () => {
    const values = { SERVER: '127.0.0.1:53', ZONES: 'a.test, b.test', TSIG_NAME: 'k', TSIG_SECRET: 'hidden' }
    const result = providerSettings('rfc2136', 'ns-bind', values)
    expect(result).toMatchObject({
      config: {
        type: 'rfc2136',
        zones: ['a.test', 'b.test'],
        key: { name: 'k', algorithm: 'hmac-sha256', secretFrom: { env: 'TSIG_SECRET' } },
      },
    })
    expect(JSON.stringify(result)).not.toContain('hidden')
  })

  it.each(['memory', 'constructor', ''])('does not know the type %s', (type) => {
    expect(providerSettings(type, 'x', {})).toEqual({ unknownType: type })
  })
})
