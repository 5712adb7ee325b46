import { describe, expect, it } from 'vitest'
import type { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { isHeldDnsChange } from '../triggers.ts'
import { conditionStatus, findHeldDns } from './report.ts'

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
