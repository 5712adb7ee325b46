import { describe, expect, it } from 'vitest'
import type { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { isHeldDnsChange } from '../triggers.ts'
import { HeldRecords } from '../../safety/held-records.ts'
import { note, warning } from '../../finding.ts'
import { awaitsRecords, conditionStatus, createFindingHistory, findHeldDns, isObserved } from './report.ts'

const endpoint = (status: 'True' | 'False'): DNSEndpoint => ({
  metadata: { namespace: 'ns', name: 'web', generation: 1 },
  spec: { endpoints: [] },
  status: {
    conditions: [
      {
        type: 'seamark.io/Served',
        status,
        reason: status === 'True' ? 'Published' : 'RetargetBreakerOpen',
        message: 'www.example.com. A: too many names; to let it pass: seamark approve 0123456789ab',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ],
  },
})
const source = { metadata: { namespace: 'ns', name: 'web', generation: 1 } }

describe('the condition Published of a source', () => {
  it('is true and mentions held records', () => {
    const held = findHeldDns([{ object: endpoint('False') }])
    expect(conditionStatus(source, [], 0, held)?.conditions).toMatchObject([
      {
        status: 'True',
        reason: 'Published',
        message:
          'every object this source requests is in place; DNS is held: RetargetBreakerOpen: www.example.com. A: too many names; to let it pass: seamark approve 0123456789ab',
      },
    ])
  })

  it('is false where the records have no zone, as records of this process says, also without conditions of DNSEndpoints', () => {
    const records = new HeldRecords()
    const object = { metadata: { namespace: 'ns', name: 'web', uid: 'u' }, spec: { endpoints: [] } }
    const heard: string[] = []
    records.subscribe(({ metadata }) => heard.push(metadata.name ?? ''))
    records.note(object, { reason: 'NoMatchingZone', message: 'www.example.org. A: no zone' })
    expect(conditionStatus(source, [], 0, findHeldDns([{ object }], records))?.conditions).toMatchObject([
      {
        status: 'False',
        reason: 'NoMatchingZone',
        message: 'DNS is held: NoMatchingZone: www.example.org. A: no zone',
      },
    ])
    records.note(object, undefined)
    expect(findHeldDns([{ object }], records)).toBeUndefined()
    expect(heard).toEqual(['web', 'web'])
    // Names outside of our zones may be somebody else's.
    const own = new HeldRecords((given) => isObserved(given))
    own.note(object, { reason: 'NoMatchingZone', message: 'no zone' })
    expect(own.of(object)).toBeDefined()
    const observed: DNSEndpoint = { ...object, status: { observedGeneration: 1 } }
    expect(own.of(observed)).toBeUndefined()
  })

  it('stays after a restart until records has read its zones', () => {
    const records = new HeldRecords()
    const conditions = [{ type: 'seamark.io/Published', status: 'False', reason: 'NoMatchingZone' }]
    const unserved = { ...source, status: { conditions } }
    expect(awaitsRecords(unserved, records)).toBe(true)
    expect(awaitsRecords(source, records)).toBe(false)
    records.setKnown()
    expect(awaitsRecords(unserved, records)).toBe(false)
  })

  it('does not mention DNS when the records are served', () => {
    const held = findHeldDns([{ object: endpoint('True') }])
    expect(conditionStatus(source, [], 0, held)?.conditions[0]?.message).toBe(
      'every object this source requests is in place',
    )
  })

  it('is written again when records become held or are no longer held', () => {
    const change = (old: DNSEndpoint, object: DNSEndpoint) => isHeldDnsChange({ type: 'updated', old, object })
    expect(change(endpoint('True'), endpoint('False'))).toBe(true)
    expect(change(endpoint('False'), endpoint('True'))).toBe(true)
    expect(change(endpoint('False'), endpoint('False'))).toBe(false)
  })
})

describe('the history of findings', () => {
  const missing = warning('HostMissing', 'no host')
  const invalid = warning('HostInvalid', 'bad host')

  it('gives a warning once, and again after it was gone', () => {
    const history = createFindingHistory(true)
    const take = (...findings: (typeof missing)[]) => history.takeNew('Ingress', 'ns/a', 'findings', findings)
    expect(take(missing)).toEqual([missing])
    expect(take(missing, invalid)).toEqual([invalid])
    expect(take(missing, invalid)).toEqual([])
    expect(take()).toEqual([])
    expect(take(invalid)).toEqual([invalid])
  })

  it('gives none of those that there were at the start, and no notes', () => {
    const history = createFindingHistory(false)
    const take = (...findings: (typeof missing)[]) => history.takeNew('Ingress', 'ns/a', 'findings', findings)
    expect(take(missing)).toEqual([])
    expect(take(missing, note('Excluded', 'left out'))).toEqual([])
    expect(take(missing, invalid)).toEqual([invalid])
  })

  it('keeps findings, conflicts, kinds and sources apart', () => {
    const history = createFindingHistory(false)
    const take = (kind: string, key: string, topic: 'findings' | 'conflicts', ...findings: (typeof missing)[]) =>
      history.takeNew(kind, key, topic, findings)
    take('Ingress', 'ns/a', 'findings')
    // Its first conflicts, though not its first decision.
    expect(take('Ingress', 'ns/a', 'conflicts', missing)).toEqual([])
    expect(take('Ingress', 'ns/a', 'findings', missing)).toEqual([missing])
    expect(take('Ingress', 'ns/a', 'conflicts', missing, invalid)).toEqual([invalid])
    expect(take('Service', 'ns/a', 'findings', missing)).toEqual([])
    expect(take('Ingress', 'ns/b', 'findings', missing)).toEqual([])
    history.forget('Ingress', 'ns/a')
    expect(take('Ingress', 'ns/a', 'findings', invalid)).toEqual([])
  })
})
