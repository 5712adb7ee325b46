import { describe, expect, it } from 'vitest'
import { RCODE, rcodeName } from '../wire/codes.ts'
import { decodeMessage, encodeMessage, type Message } from '../wire/message.ts'
import { type Fqdn, fqdn } from '../wire/name.ts'
import type { RRset } from '../wire/record.ts'
import { type Prerequisite, type UpdateOperation, updateMessage } from '../wire/update-message.ts'
import { applyUpdate } from './update.ts'
import { createZone } from './zone-table.ts'

const ORIGIN = fqdn('example.test')
const name = (text: string): Fqdn => fqdn(text, ORIGIN)
const set = (owner: string, type: string, ...values: string[]): RRset => ({
  name: name(owner),
  type,
  ttl: 60,
  values,
})

const ZONE = createZone(ORIGIN, [
  set('example.test.', 'SOA', 'ns.example.test. host.example.test. 10 2 3 4 5'),
  set('example.test.', 'NS', 'ns.example.test.'),
  set('ns', 'A', '192.0.2.53'),
  set('www', 'A', '192.0.2.1', '192.0.2.2'),
  set('www', 'TXT', '"x"'),
  set('alias', 'CNAME', 'www.example.test.'),
  set('a.empty', 'A', '192.0.2.1'),
])

function apply(operations: readonly UpdateOperation[], prerequisites: readonly Prerequisite[] = []) {
  const bytes = encodeMessage({ id: 1, ...updateMessage({ zone: ORIGIN, prerequisites, operations }) })
  return applyUpdate(ZONE, decodeMessage(bytes) as Message)
}

const add: UpdateOperation = { kind: 'add', set: set('new', 'A', '192.0.2.9') }

describe('prerequisites (RFC 2136 §3.2)', () => {
  const cases: ReadonlyArray<readonly [string, Prerequisite, keyof typeof RCODE]> = [
    ['name in use, and it is', { kind: 'name-in-use', name: name('www') }, 'NOERROR'],
    ['name in use, and it is not', { kind: 'name-in-use', name: name('nope') }, 'NXDOMAIN'],
    ['name in use, and it is an empty non-terminal', { kind: 'name-in-use', name: name('empty') }, 'NXDOMAIN'],
    ['name not in use, and it is not', { kind: 'name-not-in-use', name: name('nope') }, 'NOERROR'],
    ['name not in use, and it is', { kind: 'name-not-in-use', name: name('www') }, 'YXDOMAIN'],
    ['set exists, and it does', { kind: 'set-exists', name: name('www'), type: 'A' }, 'NOERROR'],
    ['set exists, and it does not', { kind: 'set-exists', name: name('www'), type: 'AAAA' }, 'NXRRSET'],
    ['set absent, and it is', { kind: 'set-absent', name: name('www'), type: 'AAAA' }, 'NOERROR'],
    ['set absent, and it is not', { kind: 'set-absent', name: name('www'), type: 'A' }, 'YXRRSET'],
    [
      'set equals in another order',
      { kind: 'set-equals', name: name('www'), type: 'A', values: ['192.0.2.2', '192.0.2.1'] },
      'NOERROR',
    ],
    [
      'set equals, one value missing',
      { kind: 'set-equals', name: name('www'), type: 'A', values: ['192.0.2.1'] },
      'NXRRSET',
    ],
    [
      'set equals, one value other',
      { kind: 'set-equals', name: name('www'), type: 'A', values: ['192.0.2.1', '192.0.2.3'] },
      'NXRRSET',
    ],
    [
      'set equals, no such set',
      { kind: 'set-equals', name: name('nope'), type: 'A', values: ['192.0.2.1'] },
      'NXRRSET',
    ],
    [
      'set equals, names in another case',
      { kind: 'set-equals', name: name('alias'), type: 'CNAME', values: ['WWW.example.test.'] },
      'NOERROR',
    ],
    ['a name outside the zone', { kind: 'name-in-use', name: fqdn('other.test') }, 'NOTZONE'],
  ]
  it.each(cases)('%s', (_, prerequisite, rcode) => {
    const result = apply([add], [prerequisite])
    expect(rcodeName(result.rcode)).toBe(rcode)
    expect(result.zone === ZONE).toBe(rcode !== 'NOERROR')
  })

  it('with a TTL, data or an odd class are format errors', () => {
    const draft = updateMessage({
      zone: ORIGIN,
      prerequisites: [{ kind: 'set-exists', name: name('www'), type: 'A' }],
      operations: [],
    })
    const [prerequisite] = draft.answers
    for (const wrong of [
      { ...prerequisite!, ttl: 1 },
      { ...prerequisite!, data: Uint8Array.of(1, 2, 3, 4) },
      { ...prerequisite!, class: 3 },
    ]) {
      expect(applyUpdate(ZONE, { id: 1, ...draft, answers: [wrong] }).rcode).toBe(RCODE.FORMERR)
    }
  })
})

describe('updates (RFC 2136 §3.4)', () => {
  const values = (zone: typeof ZONE, owner: string, type: string) => zone.find(name(owner), type)?.values

  it('add to sets, take the new TTL, and move the serial', () => {
    const { zone, rcode } = apply([{ kind: 'add', set: { ...set('www', 'A', '192.0.2.9', '192.0.2.1'), ttl: 5 } }])
    expect(rcode).toBe(RCODE.NOERROR)
    expect(values(zone, 'www', 'A')?.toSorted()).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.9'])
    expect(zone.find(name('www'), 'A')?.ttl).toBe(5)
    expect(zone.serial).toBe(11)
  })

  it('delete values, sets and names', () => {
    expect(
      values(
        apply([{ kind: 'delete-values', name: name('www'), type: 'A', values: ['192.0.2.1', '192.0.2.7'] }]).zone,
        'www',
        'A',
      ),
    ).toEqual(['192.0.2.2'])
    expect(values(apply([{ kind: 'delete-set', name: name('www'), type: 'A' }]).zone, 'www', 'A')).toBeUndefined()
    const gone = apply([{ kind: 'delete-name', name: name('www') }]).zone
    expect(gone.hasName(name('www'))).toBe(false)
  })

  it('replace in one message, and leave nothing half done when a record is refused', () => {
    const { zone } = apply([
      { kind: 'delete-set', name: name('alias'), type: 'CNAME' },
      { kind: 'add', set: set('alias', 'A', '192.0.2.4') },
    ])
    expect(values(zone, 'alias', 'A')).toEqual(['192.0.2.4'])
    const refused = apply([add, { kind: 'delete-name', name: fqdn('other.test') }])
    expect([refused.rcode, refused.zone]).toEqual([RCODE.NOTZONE, ZONE])
  })

  it('cannot take SOA and the last NS from the apex', () => {
    for (const operation of [
      { kind: 'delete-name', name: ORIGIN },
      { kind: 'delete-set', name: ORIGIN, type: 'NS' },
      { kind: 'delete-set', name: ORIGIN, type: 'SOA' },
      { kind: 'delete-values', name: ORIGIN, type: 'NS', values: ['ns.example.test.'] },
    ] as const) {
      const { zone, rcode } = apply([operation])
      expect(rcode).toBe(RCODE.NOERROR)
      expect(zone).toBe(ZONE)
    }
  })

  it('ignore records that conflict with a CNAME, and a CNAME that conflicts with others', () => {
    expect(apply([{ kind: 'add', set: set('alias', 'A', '192.0.2.4') }]).zone).toBe(ZONE)
    expect(apply([{ kind: 'add', set: set('www', 'CNAME', 'x.test.') }]).zone).toBe(ZONE)
    expect(values(apply([{ kind: 'add', set: set('alias', 'CNAME', 'x.test.') }]).zone, 'alias', 'CNAME')).toEqual([
      'x.test.',
    ])
  })

  it('take a newer SOA and ignore an older one', () => {
    const soa = (serial: number): UpdateOperation => ({
      kind: 'add',
      set: set('example.test.', 'SOA', `ns.example.test. host.example.test. ${serial} 2 3 4 5`),
    })
    expect(apply([soa(20), add]).zone.serial).toBe(20)
    expect(apply([soa(5), add]).zone.serial).toBe(11)
    expect(apply([soa(5)]).zone).toBe(ZONE)
  })

  it('that change nothing leave the zone and its serial', () => {
    expect(apply([{ kind: 'add', set: set('www', 'A', '192.0.2.1') }]).zone).toBe(ZONE)
    expect(apply([{ kind: 'delete-name', name: name('nope') }]).zone).toBe(ZONE)
  })
})
