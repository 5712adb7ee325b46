import { describe, expect, it } from 'vitest'
import { type HostAnswers, isAnsweredEverywhere, presenceOf, silentServers } from './dns-presence.ts'

const leaf = [{ type: 'IPAddress' as const, value: '192.0.2.1' }]
const host = (name: string, servers: Record<string, readonly string[] | undefined>): HostAnswers => ({
  host: name,
  servers: Object.entries(servers).map(([server, values]) => ({
    server,
    values: values === undefined ? undefined : new Set(values),
  })),
})

describe('the answers of authoritative servers', () => {
  it('have a leaf while one server of one host answers one of its addresses', () => {
    const answers = [host('a.test', { ns1: ['192.0.2.2'], ns2: ['192.0.2.1', '192.0.2.2'] })]
    expect(presenceOf(leaf, answers)).toBe('present')
    expect(isAnsweredEverywhere(leaf, answers)).toBe(false)
    expect(isAnsweredEverywhere([{ type: 'IPAddress', value: '192.0.2.2' }], answers)).toBe(true)
  })

  it('do not have it when every server of every host was asked', () => {
    expect(presenceOf(leaf, [host('a.test', { ns1: ['192.0.2.2'] }), host('b.test', { ns1: [] })])).toBe('absent')
  })

  it('are unknown while a server is silent or no server is known', () => {
    const silent = [host('a.test', { ns1: ['192.0.2.2'], ns2: undefined })]
    expect(presenceOf(leaf, silent)).toBe('unknown')
    expect(isAnsweredEverywhere([{ type: 'IPAddress', value: '192.0.2.2' }], silent)).toBe(false)
    expect(presenceOf(leaf, [host('a.test', {})])).toBe('unknown')
    expect(presenceOf(leaf, [host('a.test', { ns1: [] }), host('b.test', {})])).toBe('unknown')
    expect(isAnsweredEverywhere(leaf, [host('a.test', { ns1: ['192.0.2.1'] }), host('b.test', {})])).toBe(false)
    expect(isAnsweredEverywhere(leaf, [])).toBe(false)
    expect(silentServers([...silent, host('b.test', {})])).toEqual(['no server is known for b.test', 'ns2'])
  })
})
