import { OPEN_RULES } from '../../../../testing/sync-fixture.ts'
import { describe, expect, it } from 'vitest'
import { type Endpoint, SourceIndex } from './source-index.ts'

const endpoint = (name: string, dnsName: string): Endpoint => ({
  apiVersion: 'externaldns.k8s.io/v1alpha1',
  kind: 'DNSEndpoint',
  metadata: { namespace: 'web', name, uid: name, generation: 1 },
  spec: { endpoints: [{ dnsName, recordType: 'A', targets: ['192.0.2.1'], recordTTL: 60 }] },
})

describe('the index of sources', () => {
  it('distinguishes sources that were present at a time from those that were added later, or added again', () => {
    const index = new SourceIndex(() => true, 60, OPEN_RULES)
    index.note(endpoint('a', 'a.test'), false)
    const before = index.present
    index.note(endpoint('b', 'b.test'), false)
    expect(['a', 'b'].map((uid) => before.has(`dnsendpoint/${uid}`))).toEqual([true, false])
    expect(['a', 'b'].map((uid) => index.present.has(`dnsendpoint/${uid}`))).toEqual([true, true])
    index.note(endpoint('a', 'a.test'), true)
    index.note(endpoint('a', 'a.test'), false)
    expect(before.has('dnsendpoint/a')).toBe(false)
  })

  it('includes the names that an object requested before', () => {
    const index = new SourceIndex(() => true, 60, OPEN_RULES)
    index.note(endpoint('a', 'old.test'), false)
    expect([...index.note(endpoint('a', 'new.test'), false)].toSorted()).toEqual(['new.test.', 'old.test.'])
    expect([...index.names()]).toEqual(['new.test.'])
  })
})
