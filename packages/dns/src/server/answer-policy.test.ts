/** The choice among the records of an RRset is in proportion to weights, by priority and by region. */
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { createDnsClient } from '../client/client.ts'
import { createDnsServer, type DnsServerOptions } from './server.ts'
import { parseRegionTable } from './regions/region-table.ts'
import { RCODE, TYPE } from '../wire/codes.ts'
import { decodeSubnet, OPTION } from '../wire/edns.ts'
import { fqdn } from '../wire/name.ts'
import { createRRset, groupRecords } from '../wire/record.ts'
import { rdataFromText } from '../wire/rdata/grammar.ts'
import {
  type AnswerPolicy,
  createChooser,
  decodePolicy,
  encodePolicy,
  POLICY_TYPE,
  policyText,
} from '../zone/answer-policy.ts'
import { createZone } from '../zone/zone-table.ts'

const address = (i: number) => `192.0.2.${i + 1}`
const weights = fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 6 })

const policyOf = (given: readonly number[], more: Partial<AnswerPolicy> = {}): AnswerPolicy => ({
  type: 'A',
  mode: 'weighted',
  entries: given.map((weight, i) => ({ value: address(i), weight, priority: 0, regions: [] })),
  ...more,
})

function chooserOf(policy: AnswerPolicy, random = () => 0) {
  const datas = policy.entries.map(({ value }) => rdataFromText(TYPE.A, value))
  const chooser = createChooser([encodePolicy(policy)], TYPE.A, datas, random)
  if (chooser === undefined) throw new Error('no chooser')
  return chooser
}

describe('a policy', () => {
  it('is read back as it was written, and other octets are none', () => {
    fc.assert(
      fc.property(weights, fc.constantFrom('weighted', 'shuffle'), (given, mode) => {
        const policy = policyOf(given, { mode })
        expect(decodePolicy(encodePolicy(policy))).toEqual(policy)
      }),
    )
    fc.assert(fc.property(fc.uint8Array({ maxLength: 40 }), (octets) => void decodePolicy(octets)))
    expect(decodePolicy(Uint8Array.of(9, 0, 1, 0))).toBeUndefined()
  })

  it('refuses weights and regions that are none', () => {
    expect(() => encodePolicy(policyOf([-1]))).toThrow(/0 to 65535/)
    expect(() => encodePolicy(policyOf([70_000]))).toThrow(/0 to 65535/)
    const entries = [{ value: address(0), regions: ['Not a region'] }]
    expect(() => encodePolicy(policyOf([1], { entries }))).toThrow(/region/)
  })

  it('chooses each record exactly as often as its weight in as many answers as the weights have in sum', () => {
    fc.assert(
      fc.property(weights, fc.double({ min: 0, max: 0.999, noNaN: true }), (given, start) => {
        const isAllZero = given.every((weight) => weight === 0)
        const wanted = isAllZero ? given.map(() => 1) : given
        const total = wanted.reduce((sum, weight) => sum + weight, 0)
        // Wherever the state starts.
        const chooser = chooserOf(policyOf(given), () => start)
        for (let round = 0; round < 3; round++) {
          const counts = given.map(() => 0)
          for (let i = 0; i < total; i++) counts[chooser.chooseOne()]!++
          expect(counts).toEqual(wanted)
        }
      }),
    )
  })

  it('is never further from the exact share than one answer for each other record', () => {
    fc.assert(
      fc.property(weights, fc.integer({ min: 1, max: 200 }), (given, answers) => {
        const isAllZero = given.every((weight) => weight === 0)
        const wanted = isAllZero ? given.map(() => 1) : given
        const total = wanted.reduce((sum, weight) => sum + weight, 0)
        const chooser = chooserOf(policyOf(given))
        const counts = given.map(() => 0)
        for (let i = 0; i < answers; i++) counts[chooser.chooseOne()]!++
        for (const [i, count] of counts.entries())
          expect(Math.abs(count - (answers * wanted[i]!) / total)).toBeLessThanOrEqual(Math.max(1, given.length - 1))
      }),
    )
  })

  it('takes the records of the region, of these the best priority, and others only when there are none', () => {
    const entries = [
      { value: address(0), priority: 0, regions: ['eu'] },
      { value: address(1), priority: 1, regions: ['eu', 'us'] },
      { value: address(2), priority: 2 },
      { value: address(3), priority: 3 },
    ]
    const chooser = chooserOf(policyOf([], { entries }))
    expect(chooser.hasRegions).toBe(true)
    expect(chooser.choose(['eu'])).toEqual([0])
    expect(chooser.choose(['us'])).toEqual([1])
    expect(chooser.choose(['de', 'eu', 'us'])).toEqual([0])
    expect(chooser.choose(['asia'])).toEqual([2])
    expect(chooser.choose()).toEqual([2])
    const regional = chooserOf(policyOf([], { entries: entries.slice(0, 2) }))
    expect(regional.choose(['asia'])).toEqual([0])
  })

  it('shuffles all records of the best priority, without losing one', () => {
    fc.assert(
      fc.property(weights, fc.infiniteStream(fc.double({ min: 0, max: 0.999, noNaN: true })), (given, randoms) => {
        const chooser = chooserOf(policyOf(given, { mode: 'shuffle' }), () => randoms.next().value)
        expect([...chooser.choose()].sort((a, b) => a - b)).toEqual(given.map((_, i) => i))
      }),
    )
  })

  it('does not concern RRsets of other types, and gives records without an entry the weight 1', () => {
    const datas = [0, 1].map((i) => rdataFromText(TYPE.A, address(i)))
    expect(createChooser([encodePolicy(policyOf([1], { type: 'AAAA', entries: [] }))], TYPE.A, datas)).toBeUndefined()
    const chooser = createChooser([encodePolicy(policyOf([3]))], TYPE.A, datas, () => 0)
    expect([0, 1, 2, 3].filter(() => chooser?.chooseOne() === 0)).toHaveLength(3)
  })
})

describe('a region table', () => {
  it('finds the longest range, of both families', () => {
    const table = parseRegionTable(
      '# comment\n192.0.2.0/24 eu\n192.0.2.128/25 us # half\n2001:db8::/32 asia\n0.0.0.0/0 rest\n',
    )
    expect(['192.0.2.1', '192.0.2.200', '2001:db8::1', '198.51.100.1'].map((at) => table.find(at))).toEqual([
      'eu',
      'us',
      'asia',
      'rest',
    ])
    expect(table.find('2001:db9::1')).toBeUndefined()
    expect(table.locate('192.0.2.1').prefix).toBe(25)
  })

  it.each(['192.0.2.0/33 eu', 'x eu', '192.0.2.0/24', '192.0.2.0/24 EU', '192.0.2.0/ eu', '192.0.2.0/24 eu us'])(
    'refuses %s',
    (line) => {
      expect(() => parseRegionTable(line)).toThrow(/line 1/)
    },
  )
})

describe('a served zone with policies', () => {
  const open: { close(): Promise<void> }[] = []
  afterEach(async () => {
    for (const each of open.splice(0).reverse()) await each.close()
  })

  async function serve(policy: AnswerPolicy, options: Partial<DnsServerOptions> = {}) {
    const origin = fqdn('example.test')
    const zone = createZone(origin, [
      createRRset(origin, 'SOA', 60, ['ns.example.test. host.example.test. 1 3600 600 86400 60']),
      createRRset('www.example.test', 'A', 30, [address(0), address(1), address(2)]),
      createRRset('www.example.test', `TYPE${POLICY_TYPE}`, 30, [policyText(policy)]),
      createRRset('alias.example.test', 'CNAME', 30, ['www.example.test.']),
    ])
    const server = await createDnsServer({ zones: [zone], listen: [{ address: '127.0.0.1', port: 0 }], ...options })
    const client = createDnsClient()
    open.push(server, client)
    const ask = async (name = 'www.example.test', subnet?: string) => {
      const { message } = await client.query({
        server: server.addresses[0]!,
        name,
        type: 'A',
        ...(subnet !== undefined && { subnet: { address: subnet, sourcePrefix: 24, scopePrefix: 0 } }),
      })
      expect(message.rcode).toBe(RCODE.NOERROR)
      const values = groupRecords(message.answers.filter(({ type }) => type === TYPE.A)).flatMap(({ values: all }) => [
        ...all,
      ])
      const option = message.edns?.options.find(({ code }) => code === OPTION.CLIENT_SUBNET)
      return { values, scope: option === undefined ? undefined : decodeSubnet(option.data).scopePrefix }
    }
    return { ask, server, client }
  }

  it('answers one record by weight, directly and through a CNAME', async () => {
    const { ask } = await serve(policyOf([3, 1, 0]))
    for (const name of ['www.example.test', 'alias.example.test']) {
      const seen = new Map<string, number>()
      for (let i = 0; i < 8; i++) {
        const { values } = await ask(name)
        expect(values).toHaveLength(1)
        seen.set(values[0]!, (seen.get(values[0]!) ?? 0) + 1)
      }
      expect(Object.fromEntries(seen)).toEqual({ [address(0)]: 6, [address(1)]: 2 })
    }
  })

  it('answers by the client subnet, and says for which part of it the answer holds', async () => {
    const entries = [
      { value: address(0), regions: ['eu'] },
      { value: address(1), regions: ['us'] },
    ]
    const regions = parseRegionTable('198.51.100.0/24 eu\n203.0.113.0/25 us\n127.0.0.0/8 us\n')
    const { ask } = await serve(policyOf([], { entries }), { regions })
    expect(await ask('www.example.test', '198.51.100.0')).toEqual({ values: [address(0)], scope: 24 })
    expect(await ask('www.example.test', '203.0.113.0')).toEqual({ values: [address(1)], scope: 24 })
    expect(await ask('www.example.test', '192.0.2.0')).toEqual({ values: [address(2)], scope: 24 })
    // Without a subnet the resolver's address counts.
    expect(await ask()).toEqual({ values: [address(1)], scope: undefined })
  })

  it('shuffles all records', async () => {
    const { ask } = await serve(policyOf([1, 1, 1], { mode: 'shuffle' }))
    const { values } = await ask()
    expect([...values].sort()).toEqual([address(0), address(1), address(2)])
  })
})
