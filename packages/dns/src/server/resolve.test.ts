import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { rcodeName, TYPE, typeCode } from '../wire/codes.ts'
import { decodeMessage, encodeMessage, FLAG, type Message } from '../wire/message.ts'
import { nameToWire, wireToFqdn } from '../wire/name.ts'
import { canonicalText } from '../wire/record.ts'
import { datasOf } from '../zone/zone-shard.ts'
import { isZoneFileError, loadZoneFile } from '../zone/zone-file.ts'
import type { Zone } from '../zone/zone-table.ts'
import type { AnswerSet } from './answer-set.ts'
import { resolve } from './resolve.ts'
import { createDispatcher } from './server.ts'

const PLAIN = `$ORIGIN z.test.
$TTL 60
@ SOA ns host 1 2 3 4 30
@ NS ns
@ A 192.0.2.9
ns A 192.0.2.1
a A 192.0.2.2
a A 192.0.2.3
b.a TXT "x"
c.b.d AAAA 2001:db8::1
*.w A 192.0.2.4
*.w TXT "w"
x.w MX 10 a
*.c.w CNAME a
alias CNAME b.a
out CNAME other.test.
loop CNAME pool
pool CNAME loop
`
const WITH_CUTS = `${PLAIN}sub NS ns.sub
ns.sub A 192.0.2.5
dn DNAME a.z.test.
`

function load(text: string): Zone {
  const zone = loadZoneFile(text)
  if (isZoneFileError(zone)) throw new Error(zone.reason)
  return zone
}

const texts = (sets: readonly AnswerSet[]): string[] =>
  sets
    .flatMap(({ owner, set }) =>
      datasOf(set).map((data) => `${wireToFqdn(owner)} ${set.type} ${canonicalText(set.type, data)}`),
    )
    .sort()

describe.each([
  ['without cuts', load(PLAIN)],
  ['with cuts', load(WITH_CUTS)],
])('in a zone %s', (_, zone) => {
  it('the fast path and the algorithm of RFC 1034 say the same', () => {
    const server = createDispatcher({ zones: [zone], listen: [] })
    const out = Buffer.alloc(65_537)
    const label = fc.constantFrom('a', 'b', 'c', 'd', 'w', 'x', '*', 'sub', 'ns', 'dn', 'alias', 'out', 'loop', 'A')
    const type = fc.constantFrom('A', 'AAAA', 'TXT', 'MX', 'NS', 'SOA', 'CNAME', 'ANY', 'DS', 'CAA')
    fc.assert(
      fc.property(fc.array(label, { maxLength: 4 }), type, (labels, qtype) => {
        const name = [...labels, 'z.test.'].join('.')
        const code = typeCode(qtype)
        const query = encodeMessage({
          id: 1,
          flags: 0,
          opcode: 0,
          rcode: 0,
          questions: [{ name, type: code, class: 1 }],
          answers: [],
          authorities: [],
          additionals: [],
        })
        const length = server.answer(query, { address: '127.0.0.1', port: 1, transport: 'tcp' }, out)
        const message = decodeMessage(out.subarray(0, length)) as Message
        const expected = resolve(zone, nameToWire(name), code, { source: '127.0.0.1', transport: 'tcp' })
        const answers = message.answers.map(
          (record) => `${record.name.toLowerCase()} ${record.type} ${canonicalText(record.type, record.data)}`,
        )
        expect(rcodeName(message.rcode)).toBe(rcodeName(expected.rcode))
        expect(answers.sort()).toEqual(texts(expected.answers))
        expect((message.flags & FLAG.AA) !== 0).toBe(expected.isAuthoritative)
        expect(message.authorities.some((record) => record.type === TYPE.SOA)).toBe(expected.isNegative)
      }),
      { numRuns: 3000 },
    )
  })
})
