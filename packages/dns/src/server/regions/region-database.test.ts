import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { createDnsClient } from '../../client/client.ts'
import { addressOctets } from '../../wire/address.ts'
import { decodeSubnet, OPTION } from '../../wire/edns.ts'
import { fqdn } from '../../wire/name.ts'
import { rdataToText } from '../../wire/rdata/grammar.ts'
import { createRRset } from '../../wire/record.ts'
import { POLICY_TYPE, policyText } from '../../zone/answer-policy.ts'
import { createZone } from '../../zone/zone-table.ts'
import { isRegionDatabase, RegionDatabase } from './region-database.ts'
import { readRegionSource } from './region-source.ts'
import { parseRegionTable } from './region-table.ts'
import { createDnsServer } from '../server.ts'

type Value = string | number | { readonly [key: string]: Value } | readonly Value[]

/** MaxMind DB format 2.0, "Output Data Section". */
function encode(value: Value): Buffer {
  const head = (type: number, size: number): Buffer => {
    const [low, more] = size < 29 ? [size, []] : [29, [size - 29]]
    return Buffer.from(type > 7 ? [low, type - 7, ...more] : [(type << 5) | low, ...more])
  }
  if (typeof value === 'string') return Buffer.concat([head(2, Buffer.byteLength(value)), Buffer.from(value)])
  if (typeof value === 'number') {
    const octets = Buffer.alloc(4)
    octets.writeUInt32BE(value)
    return Buffer.concat([head(6, 4), octets])
  }
  if (Array.isArray(value)) return Buffer.concat([head(11, value.length), ...value.map(encode)])
  const pairs = Object.entries(value as Record<string, Value>)
  return Buffer.concat([head(7, pairs.length), ...pairs.flatMap(([key, each]) => [encode(key), encode(each)])])
}

interface Node {
  readonly children: [Node | undefined, Node | undefined]
  data?: Buffer
}

/** A database of networks, later ones over earlier ones; the tree is for IPv6, with IPv4 in ::/96. */
function buildDatabase(networks: readonly (readonly [range: string, record: Value])[]): Buffer {
  const root: Node = { children: [undefined, undefined] }
  for (const [range, record] of networks) {
    const [address = '', length = ''] = range.split('/')
    const octets = addressOctets(address)
    const whole = octets.length === 4 ? Buffer.concat([Buffer.alloc(12), octets]) : Buffer.from(octets)
    let node = root
    for (let bit = 0; bit < Number(length) + 8 * (16 - octets.length); bit++) {
      const side = (whole[bit >> 3]! >> (7 - (bit & 7))) & 1
      // A network inside another one: the larger one is divided.
      if (node.data !== undefined) {
        node.children[0] = { children: [undefined, undefined], data: node.data }
        node.children[1] = { children: [undefined, undefined], data: node.data }
        delete node.data
      }
      node = node.children[side] ??= { children: [undefined, undefined] }
    }
    node.children[0] = node.children[1] = undefined
    node.data = encode(record)
  }
  const nodes: Node[] = []
  const visit = (node: Node): void => {
    if (node.data !== undefined) return
    nodes.push(node)
    for (const child of node.children) if (child !== undefined) visit(child)
  }
  visit(root)
  const indexes = new Map(nodes.map((node, index) => [node, index]))
  const data: Buffer[] = []
  const offsets = new Map<string, number>()
  let size = 0
  const pointerTo = (record: Buffer): number => {
    const key = record.toString('latin1')
    let offset = offsets.get(key)
    if (offset === undefined) {
      offset = size
      offsets.set(key, offset)
      data.push(record)
      size += record.length
    }
    return nodes.length + 16 + offset
  }
  const tree = Buffer.alloc(nodes.length * 8)
  for (const [index, node] of nodes.entries())
    for (const [side, child] of node.children.entries()) {
      const value =
        child === undefined
          ? nodes.length
          : child.data === undefined
            ? (indexes.get(child) ?? 0)
            : pointerTo(child.data)
      tree.writeUInt32BE(value, index * 8 + side * 4)
    }
  const metadata = encode({
    node_count: nodes.length,
    record_size: 32,
    ip_version: 6,
    database_type: 'Test',
    languages: ['en'],
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: 1,
    description: { en: 'a test' },
  })
  const marker = Buffer.from('abcdef4d61784d696e642e636f6d', 'hex')
  return Buffer.concat([tree, Buffer.alloc(16), ...data, marker, metadata])
}

const place = (country: string, continent: string): Value => ({
  country: { iso_code: country, names: { en: country } },
  continent: { code: continent },
})
const DATABASE = buildDatabase([
  ['198.51.100.0/24', place('DE', 'EU')],
  ['198.51.100.128/25', place('FR', 'EU')],
  ['203.0.113.0/24', place('US', 'NA')],
  ['2001:db8::/32', place('JP', 'AS')],
  ['192.0.2.0/24', { region: 'office', country: { iso_code: 'CH' } }],
])

describe('a region database', () => {
  it('has country and continent of an address, and the prefix for which they hold', () => {
    const database = new RegionDatabase(DATABASE)
    expect(database.locate('198.51.100.7')).toEqual({ regions: ['de', 'eu'], prefix: 25 })
    expect(database.locate('198.51.100.200')).toEqual({ regions: ['fr', 'eu'], prefix: 25 })
    expect(database.locate('203.0.113.9')).toEqual({ regions: ['us', 'na'], prefix: 24 })
    expect(database.locate('2001:db8:1::1')).toEqual({ regions: ['jp', 'as'], prefix: 32 })
    expect(database.locate('192.0.2.1').regions).toEqual(['office', 'ch'])
    expect(database.locate('10.0.0.1').regions).toEqual([])
    expect(new RegionDatabase(DATABASE, ['continent.code']).locate('198.51.100.7').regions).toEqual(['eu'])
  })

  it('is recognised by its content, and a damaged one is refused', () => {
    expect(isRegionDatabase(DATABASE)).toBe(true)
    expect(isRegionDatabase(Buffer.from('192.0.2.0/24 eu\n'))).toBe(false)
    expect(() => new RegionDatabase(DATABASE.subarray(0, -40))).toThrow(/region database/)
  })

  it('is the same in another thread', () => {
    const copy = readRegionSource(structuredClone(new RegionDatabase(DATABASE).toMessage()))
    expect(copy.locate('203.0.113.9').regions).toEqual(['us', 'na'])
    const table = readRegionSource(structuredClone(parseRegionTable('192.0.2.0/24 eu').toMessage()))
    expect(table.locate('192.0.2.9')).toEqual({ regions: ['eu'], prefix: 24 })
  })

  it('agrees with a table of the same ranges', () => {
    const range = fc.record({
      octets: fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255)),
      length: fc.integer({ min: 8, max: 32 }),
      region: fc.constantFrom('eu', 'us', 'asia'),
    })
    fc.assert(
      fc.property(fc.array(range, { minLength: 1, maxLength: 8 }), (ranges) => {
        // Larger networks first: a later one is inside, and counts.
        const sorted = ranges.toSorted((a, b) => a.length - b.length)
        const text = sorted.map(({ octets, length, region }) => `${octets.join('.')}/${length} ${region}`)
        const table = parseRegionTable(text.join('\n'))
        const database = new RegionDatabase(
          buildDatabase(
            sorted.map(({ octets, length, region }) => [`${octets.join('.')}/${length}`, { region }] as const),
          ),
        )
        for (const { octets } of ranges) {
          const address = octets.join('.')
          expect(database.locate(address).regions).toEqual(table.locate(address).regions)
        }
      }),
    )
  })
})

describe('a server with a region database', () => {
  const closing: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const close of closing.splice(0)) await close()
  })

  it('answers by country, else by continent, and says for which subnet', async () => {
    const origin = fqdn('example.test.')
    const name = fqdn('www.example.test.')
    const entries = [
      { value: '192.0.2.1', regions: ['eu'] },
      { value: '192.0.2.2', regions: ['fr'] },
      { value: '192.0.2.3' },
    ]
    const zone = createZone(origin, [
      createRRset(origin, 'SOA', 60, [`ns.${origin} host.${origin} 1 3600 600 86400 60`]),
      createRRset(origin, 'NS', 60, [`ns.${origin}`]),
      createRRset(name, 'A', 60, ['192.0.2.1', '192.0.2.2', '192.0.2.3']),
      createRRset(name, `TYPE${POLICY_TYPE}`, 60, [policyText({ type: 'A', mode: 'weighted', entries })]),
    ])
    const server = await createDnsServer({
      zones: [zone],
      listen: [{ address: '127.0.0.1', port: 0 }],
      regions: new RegionDatabase(DATABASE),
    })
    const client = createDnsClient()
    closing.push(
      () => client.close(),
      () => server.close(),
    )
    const ask = async (address: string) => {
      const { message } = await client.query({
        server: server.addresses[0]!,
        name,
        type: 'A',
        subnet: { address, sourcePrefix: 24, scopePrefix: 0 },
      })
      const option = message.edns?.options.find(({ code }) => code === OPTION.CLIENT_SUBNET)
      return {
        values: message.answers.map(({ type, data }) => rdataToText(type, data)),
        scope: option === undefined ? undefined : decodeSubnet(option.data).scopePrefix,
      }
    }
    expect(await ask('198.51.100.0')).toEqual({ values: ['192.0.2.1'], scope: 24 })
    expect(await ask('203.0.113.0')).toEqual({ values: ['192.0.2.3'], scope: 24 })
  })
})
