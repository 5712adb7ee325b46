import { describe, expect, it } from 'vitest'
import { CONFIG_API_VERSION, loadConfig } from './config.ts'

const head = `apiVersion: ${CONFIG_API_VERSION}\nkind: ManagerConfiguration\n`

function faultsOf(file: string): readonly string[] {
  const result = loadConfig({ file: head + file })
  return result.ok ? [] : result.faults
}

const FLEET = 'fleet: { enabled: true }\n'
const BALANCE = 'balance: { enabled: true }\n'
const provider = 'providers: [{ name: memory, type: memory, zones: [example.com] }]'

describe('settings that only work together', () => {
  const cases: [what: string, file: string, fault: RegExp][] = [
    ['a DNS server without zones', 'dns: { listen: [":53"] }', /^dns\.listen: .*; add dns\.zones/],
    ['zones that nobody serves', 'dns: { zones: [example.com] }', /^dns\.zones: .*; add dns\.listen/],
    [
      'a fleet without balance',
      FLEET,
      /^fleet\.enabled: no host .* add balance\.enabled: true.*fleet\.answeredElsewhere/,
    ],
    [
      'a fleet without a zone or provider',
      FLEET + BALANCE,
      /^fleet\.enabled: .*add dns\.listen and dns\.zones.*records\.providers/,
    ],
    [
      'a fleet whose provider gets no DNSEndpoints',
      `${FLEET}${BALANCE}records: { enabled: true, owner: us, ${provider} }`,
      /^fleet\.enabled: .*records\.dnsEndpoints\.enabled/,
    ],
  ]
  it.each(cases)('%s: an error that says what to add', (_, file, fault) => {
    expect(faultsOf(file)).toEqual([expect.stringMatching(fault)])
  })

  it.each([
    ['nothing', ''],
    ['the DNS server of the manager', `${FLEET}${BALANCE}dns: { listen: [":53"], zones: [example.com] }`],
    [
      'a provider',
      `${FLEET}${BALANCE}records: { enabled: true, owner: us, dnsEndpoints: { enabled: true }, ${provider} }`,
    ],
    ['ExternalDNS', `${BALANCE}fleet: { enabled: true, answeredElsewhere: true }`],
    ['another manager', 'fleet: { enabled: true, answeredElsewhere: true }'],
    ['a fleet that writes no DNS', 'fleet: { enabled: true, dns: false }'],
  ])('%s is whole', (_, file) => {
    expect(faultsOf(file)).toEqual([])
  })
})
