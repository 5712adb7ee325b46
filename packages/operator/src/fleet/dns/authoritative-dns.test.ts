import { createDnsClient, createDnsServer, createRRset, createZone, fqdn, policyText } from '@seamark/dns'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { AuthoritativeDns } from './authoritative-dns.ts'
import { lookupTxt } from './domain-controller.ts'
import { lookUpServers, rememberServers, serversOf, type SystemResolver } from '../../authority/name-servers.ts'

const origin = fqdn('example.test.')

function startServer(address: string, ...records: Parameters<typeof createRRset>[]) {
  const zone = createZone(origin, [
    createRRset(origin, 'SOA', 60, [`ns.${origin} hostmaster.${origin} 1 3600 600 86400 1`]),
    createRRset(origin, 'NS', 60, [`ns.${origin}`]),
    ...records.map((record) => createRRset(...record)),
  ])
  return createDnsServer({ zones: [zone], listen: [{ address, port: 0 }] })
}

describe('the authoritative servers of a host', () => {
  const client = createDnsClient({ tries: 1, timeoutMs: 500 })
  let servers: Awaited<ReturnType<typeof startServer>>[] = []

  beforeAll(async () => {
    const shop = `shop.${origin}`
    const policy = policyText({
      type: 'A',
      mode: 'weighted',
      entries: [
        { value: '192.0.2.1', weight: 1 },
        { value: '192.0.2.2', weight: 1 },
      ],
    })
    servers = [
      await startServer('127.0.0.1', [shop, 'A', 30, ['192.0.2.1']], [shop, 'AAAA', 30, ['2001:db8::1']]),
      await startServer('127.0.0.1', [shop, 'A', 30, ['192.0.2.1', '192.0.2.2']], [shop, 'TYPE65401', 30, [policy]]),
      await startServer(
        '127.0.0.1',
        [`www.${origin}`, 'CNAME', 30, ['lb.example.net.']],
        [`_c.${origin}`, 'TXT', 30, ['"a" "b"']],
        [`below.${origin}`, 'NS', 30, ['ns.elsewhere.test.']],
      ),
    ]
  })

  afterAll(async () => {
    await client.close()
    for (const server of servers) await server.close()
  })

  const textOf = (index: number) => `127.0.0.1:${servers[index]?.addresses[0]?.port}`
  const ask = async (host: string, ...texts: string[]) => {
    const dns = new AuthoritativeDns({ client, findServers: async () => serversOf(texts) })
    const [answer] = await dns.ask([host], new AbortController().signal)
    return answer?.servers.map(({ values }) => (values === undefined ? undefined : [...values].sort()))
  }

  it('are all asked, and a set with an answer policy is read whole', async () => {
    expect(await ask('shop.example.test', textOf(0), textOf(1))).toEqual([
      ['192.0.2.1', '2001:db8::1'],
      ['192.0.2.1', '192.0.2.2'],
    ])
    expect(await ask('www.example.test', textOf(2))).toEqual([['lb.example.net']])
  })

  it('have no address for a name that does not exist, and no answer when they are silent or do not serve the zone', async () => {
    expect(await ask('none.example.test', textOf(0))).toEqual([[]])
    expect(await ask('shop.other.test', textOf(0))).toEqual([undefined])
    const closed = await startServer('127.0.0.1')
    const silent = `127.0.0.1:${closed.addresses[0]?.port}`
    await closed.close()
    expect(await ask('shop.example.test', textOf(0), silent)).toEqual([['192.0.2.1', '2001:db8::1'], undefined])
  })

  it('do not include those of the zone above, whose referral is no answer', async () => {
    expect(await ask('shop.below.example.test', textOf(2))).toEqual([undefined])
    const txt = await lookupTxt('_c.below.example.test', client, async () => serversOf([textOf(2), textOf(2)]))
    expect(txt).toBeUndefined()
  })

  it('return the proof of a domain: its strings, nothing, or no answer', async () => {
    const lookUp = async (name: string, text: string) => lookupTxt(name, client, async () => serversOf([text]))
    expect(await lookUp('_c.example.test', textOf(2))).toEqual(['ab'])
    expect(await lookUp('_d.example.test', textOf(2))).toEqual([])
    expect(await lookUp('_c.other.test', textOf(2))).toBeUndefined()
  })

  it('are remembered for five minutes, and for half a minute that there are none', async () => {
    let nowMs = 0
    let calls = 0
    const find = rememberServers(
      async (name) => {
        calls++
        return name === 'none.test' ? [] : serversOf(['192.0.2.53', '[2001:db8::53]:5353'])
      },
      () => nowMs,
    )
    expect((await find('a.test')).map(({ addresses }) => addresses)).toEqual([
      [{ address: '192.0.2.53' }],
      [{ address: '2001:db8::53', port: 5353 }],
    ])
    await find('a.test')
    expect(calls).toBe(1)
    nowMs = 300_000
    await find('a.test')
    await find('none.test')
    await find('none.test')
    expect(calls).toBe(3)
    nowMs = 330_000
    await find('none.test')
    expect(calls).toBe(4)
  })
})

describe('the servers of the NS records', () => {
  /** Records by name; a name without an entry does not exist, and one with a code cannot be resolved. */
  const resolverOf = (records: Record<string, string[] | { code: string }>): SystemResolver => {
    const resolve = async (name: string) => {
      const found = records[name] ?? { code: 'ENOTFOUND' }
      if (!Array.isArray(found)) throw Object.assign(new Error(found.code), found)
      return found
    }
    const isFour = (address: string) => !address.includes(':')
    return {
      resolveNs: resolve,
      resolve4: async (name: string) => (await resolve(name)).filter(isFour),
      resolve6: async (name: string) => (await resolve(name)).filter((address) => !isFour(address)),
    } as SystemResolver
  }
  const find = async (name: string, records: Parameters<typeof resolverOf>[0]) =>
    (await lookUpServers(name, resolverOf(records))).map((server) => [
      server.name,
      ...server.addresses.map(({ address }) => address),
    ])

  it('are those of the closest zone', async () => {
    const records = {
      'shop.test': { code: 'ENODATA' },
      'example.shop.test': ['ns1.test', 'ns2.test'],
      'ns1.test': ['192.0.2.1', '2001:db8::1'],
      'ns2.test': ['192.0.2.2'],
    }
    const servers = [
      ['ns1.test', '192.0.2.1', '2001:db8::1'],
      ['ns2.test', '192.0.2.2'],
    ]
    expect(await find('www.example.shop.test', records)).toEqual(servers)
    expect(await find('*.example.shop.test.', records)).toEqual(servers)
    expect(await find('www.shop.test', records)).toEqual([])
  })

  it('are unknown while the resolver fails: the zone above has other servers', async () => {
    const above = { 'shop.test': ['ns1.test'], 'ns1.test': ['192.0.2.1'] }
    expect(await find('www.shop.test', { ...above, 'www.shop.test': { code: 'ETIMEOUT' } })).toEqual([])
    expect(await find('www.shop.test', { ...above, 'www.shop.test': { code: 'ESERVFAIL' } })).toEqual([])
    expect(await find('www.shop.test', above)).toEqual([['ns1.test', '192.0.2.1']])
  })

  it('include one whose addresses cannot be resolved, which counts as one that does not answer', async () => {
    const records = {
      'shop.test': ['ns1.test', 'ns2.test'],
      'ns1.test': ['192.0.2.1'],
      'ns2.test': { code: 'ETIMEOUT' },
    }
    expect(await find('shop.test', records)).toEqual([['ns1.test', '192.0.2.1'], ['ns2.test']])
  })
})
