import { describe, expect, it } from 'vitest'
import { fieldNameFault, headerFilter, headersPolicy } from './headers.ts'

const REFUSED = [
  'Connection',
  'Keep-Alive',
  'Proxy-Connection',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'HTTP2-Settings',
  'Content-Length',
]

describe('policies and filters of header fields', () => {
  it.each(REFUSED)('refuse to set, add or remove %s', (name) => {
    const set = [{ name, value: 'x' }]
    for (const result of [
      headersPolicy({ set }, true, {}),
      headersPolicy({ remove: [name] }, true, {}),
      headerFilter({ set }),
      headerFilter({ add: set }),
      headerFilter({ remove: [name] }),
    ])
      expect(result).toMatchObject({ fault: expect.stringContaining('the data plane itself writes') as string })
  })

  it('refuse to remove the host, and names that are none', () => {
    expect(headersPolicy({ remove: ['Host'] }, true, {})).toHaveProperty('fault')
    expect(headerFilter({ remove: ['host'] })).toHaveProperty('fault')
    expect(headerFilter({ set: [{ name: 'Host', value: 'x' }] })).toHaveProperty('fault')
    expect(fieldNameFault('a b')).toBe('not a valid HTTP header name')
  })

  it('take every other name', () => {
    expect(fieldNameFault('X-Forwarded-Host')).toBeUndefined()
    expect(headersPolicy({ set: [{ name: 'Host', value: 'inner.test' }] }, true, {})).toEqual({ host: 'inner.test' })
    expect(headerFilter({ add: [{ name: 'X-A', value: '1' }], remove: ['X-B'] })).toEqual({
      set: [],
      add: [{ name: 'x-a', value: '1' }],
      remove: ['x-b'],
    })
  })
})
