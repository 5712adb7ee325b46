import { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import {
  addDnslbFlags,
  checkFlags,
  type DnslbFlags,
  readControllers,
  readListen,
  readLogLevel,
  readNumber,
  readProviders,
  readRanges,
} from './dnslb-flags.ts'

function parse(...argv: string[]): DnslbFlags {
  const command = new Command().exitOverride()
  addDnslbFlags(command)
  command.parse(argv, { from: 'user' })
  return command.opts<DnslbFlags>()
}

describe('the flags of dnslb', () => {
  it('have the defaults of the original', () => {
    expect(parse()).toMatchObject({
      targetkube: '',
      cluster: '',
      controllers: 'all',
      identity: 'GardenRing',
      ttl: '60',
      providers: 'dynamic',
      watches: '',
      once: false,
      duration: '0',
      dryRun: false,
      port: '0',
      pluginDir: '',
      logLevel: 'info',
    })
  })

  it.each([
    [['--targetkube', 'f'], 'cluster identity (for local cluster) required when using separate clusters'],
    [['--cluster', 'a'], 'cluster identity not possible when not using separate clusters'],
    [['--identity', 'a b'], '--identity'],
    [['--dns-listen', '127.0.0.1:53'], '--dns-listen and --dns-zones are given together'],
  ])('%o is refused', (argv, message) => {
    expect(() => checkFlags(parse(...argv))).toThrow(message)
  })

  it.each([
    ['all', true, true],
    ['source', true, false],
    ['target', false, true],
    ['endpoint', true, false],
    ['dns', false, true],
    ['endpoint,dns', true, true],
    ['source,dns', true, true],
    ['target,dns', false, true],
  ])('--controllers %s', (text, endpoint, dns) => {
    expect(readControllers(text)).toEqual({ endpoint, dns })
  })

  it.each([
    ['other', "unknown controller or group 'other'"],
    ['dns,other', "unknown controller or group 'other'"],
    ['source, dns', "unknown controller or group ' dns'"],
    ['', 'no controller selected'],
  ])('--controllers %j is refused', (text, message) => {
    expect(() => readControllers(text)).toThrow(message)
  })

  it.each([
    ['dynamic', false, true, []],
    ['static', false, false, ['aws', 'rfc2136']],
    ['all', false, true, ['aws', 'rfc2136']],
    ['rfc2136,dynamic', false, true, ['rfc2136']],
    ['rfc2136, aws', false, false, ['rfc2136', 'aws']],
    ['dynamic', true, false, ['aws', 'rfc2136']],
  ])('--providers %s, standalone %s', (text, isStandalone, isDynamic, staticTypes) => {
    expect(readProviders(text, ['aws', 'rfc2136'], { isStandalone })).toEqual({ isDynamic, staticTypes, ignored: [] })
  })

  it('reports provider types that do not exist', () => {
    expect(readProviders('gcp,aws', ['aws'], { isStandalone: false })).toEqual({
      isDynamic: false,
      staticTypes: ['aws'],
      ignored: ['gcp'],
    })
  })

  it.each([
    ['info', 'info'],
    ['WARNING', 'warn'],
    ['5', 'debug'],
    ['2', 'error'],
  ])('--log-level %s is %s', (text, level) => {
    expect(readLogLevel(text)).toBe(level)
  })

  it.each([
    ['0', undefined],
    ['8080', ':8080'],
    ['127.0.0.1:8080', '127.0.0.1:8080'],
    ['[::1]:0', '[::1]:0'],
  ])('--port %s listens on %s', (text, listen) => {
    expect(readListen(text)).toBe(listen)
  })

  it.each(['65536', 'x', '127.0.0.1', '127.0.0.1:99999'])('--port %s is refused', (text) => {
    expect(() => readListen(text)).toThrow(`--port ${text}: it is a `)
  })

  it('reads ranges of addresses', () => {
    expect(readRanges('10.96.0.0/12, fd00::/8')).toEqual(['10.96.0.0/12', 'fd00::/8'])
    expect(readRanges('')).toEqual([])
    expect(() => readRanges('10.96.0.0/33')).toThrow('--deny-addresses 10.96.0.0/33')
  })

  it('refuses other levels and numbers', () => {
    expect(() => readLogLevel('6')).toThrow('log level must be in the range 0-5')
    expect(() => readNumber('ttl', '1.5', { min: 1, max: 10 })).toThrow('--ttl 1.5: it is a whole number from 1 to 10')
  })
})
