import { describe, expect, it } from 'vitest'
import { parseArguments, reverseName } from './arguments.ts'

describe('the arguments of dig', () => {
  it.each([
    [
      ['@127.0.0.1', '-p', '5353', 'www.example.test'],
      { server: '127.0.0.1', port: 5353, name: 'www.example.test', type: 'A' },
    ],
    [['www.example.test', 'mx', '@ns1'], { server: 'ns1', name: 'www.example.test', type: 'MX' }],
    [['-p5353', 'TXT', 'www.example.test'], { port: 5353, type: 'TXT', name: 'www.example.test' }],
    [['-t', 'AXFR', 'example.test'], { type: 'AXFR', name: 'example.test' }],
    [['-q', 'mx', '-t', 'ns'], { name: 'mx', type: 'NS' }],
    [['-x', '192.0.2.1'], { name: '1.2.0.192.in-addr.arpa.', type: 'PTR' }],
    [['example.test', 'CH', 'TXT'], { class: 3, type: 'TXT' }],
    [['example.test', 'TYPE65280'], { type: 'TYPE65280' }],
    [
      ['+tcp', '+short', '+norec', 'a.test', '+bufsize=512', '+subnet=192.0.2.0/24', '+time=1', '+tries=2'],
      {
        transport: 'tcp',
        isShort: true,
        isRecursive: false,
        bufferSize: 512,
        subnet: { address: '192.0.2.0', sourcePrefix: 24, scopePrefix: 0 },
        timeoutMs: 1000,
        tries: 2,
      },
    ],
    [[], { name: '.', type: 'NS' }],
  ])('%j', (words, expected) => {
    expect(parseArguments(words)).toMatchObject(expected)
  })

  it('choose the sections that are shown', () => {
    expect([...parseArguments(['a.test', '+noall', '+answer']).sections]).toEqual(['answer'])
    expect(parseArguments(['a.test', '+nostats']).sections.has('stats')).toBe(false)
  })

  it.each([
    [['+nonsense', 'a']],
    [['-p', 'x', 'a']],
    [['-p']],
    [['a.test', 'NONSENSE']],
    [['-z', 'a']],
    [['-x', '1.2.3']],
    [['+subnet=1.2.3.4/99', 'a']],
  ])('refuse %j as bad usage', (words) => {
    expect(() => parseArguments(words)).toThrow(expect.objectContaining({ code: 5 }))
  })

  it('reverse IPv6 addresses nibble by nibble', () => {
    expect(reverseName('2001:db8::1')).toBe('1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.')
    expect(reverseName('::')).toMatch(/^(0\.){32}ip6\.arpa\.$/)
  })
})
