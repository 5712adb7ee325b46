import { describe, expect, it } from 'vitest'
import type { StatusIntent } from '../draft/status-intent.ts'
import { mergeStatus } from './status-merge.ts'

const nowMs = Date.parse('2026-05-01T00:00:00Z')
const earlier = '2026-01-01T00:00:00Z'
const common = { addresses: [], controllerName: 'ours', nowMs }
const accepted = (status: 'True' | 'False') => ({ type: 'Accepted', status, reason: 'R', message: 'm' })

describe('mergeStatus', () => {
  const intent: StatusIntent = {
    kind: 'HTTPProxy',
    key: 'a/b',
    generation: 3,
    status: { conditions: [accepted('True')] },
  }

  it('keeps the time of a condition whose status stays, and sets it where it changes', () => {
    const current = { conditions: [{ ...accepted('True'), reason: 'old', lastTransitionTime: earlier }] }
    const time = (before: object) => {
      const { conditions } = mergeStatus({ ...common, intent, current: before as never }) as {
        conditions: { lastTransitionTime: string; observedGeneration: number }[]
      }
      expect(conditions[0]?.observedGeneration).toBe(3)
      return conditions[0]?.lastTransitionTime
    }
    expect(time(current)).toBe(earlier)
    expect(time({ conditions: [{ ...accepted('False'), lastTransitionTime: earlier }] })).toBe('2026-05-01T00:00:00Z')
    expect(time({})).toBe('2026-05-01T00:00:00Z')
  })

  it('keeps the parents of other controllers', () => {
    const route: StatusIntent = {
      kind: 'HTTPRoute',
      key: 'a/b',
      status: { parents: [{ parentRef: { name: 'gw' }, controllerName: 'ours', conditions: [accepted('True')] }] },
    }
    const theirs = { parentRef: { name: 'gw' }, controllerName: 'theirs', conditions: [accepted('False')] }
    const gone = { parentRef: { name: 'old' }, controllerName: 'ours', conditions: [] }
    const { parents } = mergeStatus({ ...common, intent: route, current: { parents: [theirs, gone] } }) as {
      parents: { controllerName: string; parentRef: { name: string } }[]
    }
    expect(parents.map(({ controllerName, parentRef }) => `${controllerName} ${parentRef.name}`)).toEqual([
      'theirs gw',
      'ours gw',
    ])
  })

  it('keeps what another instance wrote about its own Gateway', () => {
    const entry = (name: string, namespace?: string) => ({
      parentRef: { name, ...(namespace !== undefined && { namespace }) },
      controllerName: 'ours',
      conditions: [accepted('True')],
    })
    const route: StatusIntent = { kind: 'TLSRoute', key: 'a/b', status: { parents: [entry('gw')] } }
    const current = { parents: [entry('other'), entry('gw', 'b'), entry('gw')] }
    const merged = mergeStatus({ ...common, gateway: 'a/gw', intent: route, current })
    const names = (merged['parents'] as { parentRef: { name: string; namespace?: string } }[]).map(
      ({ parentRef }) => `${parentRef.namespace ?? 'a'}/${parentRef.name}`,
    )
    expect(names).toEqual(['a/other', 'b/gw', 'a/gw'])
  })

  it('writes nothing about a policy that no Gateway uses, and removes what it wrote', () => {
    const policy: StatusIntent = { kind: 'BackendTLSPolicy', key: 'a/p', status: { ancestors: [] } }
    expect(mergeStatus({ ...common, intent: policy, current: undefined })).toEqual({})
    const ours = { ancestorRef: { name: 'gw' }, controllerName: 'ours', conditions: [] }
    expect(mergeStatus({ ...common, intent: policy, current: { ancestors: [ours] } })).toEqual({ ancestors: [] })
  })

  it('writes addresses in the form of each kind, and none that are unknown', () => {
    const addresses = [{ ip: '192.0.2.1' }, { hostname: 'lb.test' }]
    const merge = (kind: StatusIntent['kind'], known = addresses) =>
      mergeStatus({ ...common, addresses: known, intent: { kind, key: 'a', status: {} }, current: undefined })
    expect(merge('Ingress')).toEqual({ loadBalancer: { ingress: addresses } })
    expect(merge('Gateway')['addresses']).toEqual([
      { type: 'IPAddress', value: '192.0.2.1' },
      { type: 'Hostname', value: 'lb.test' },
    ])
    expect(merge('Ingress', [])).toEqual({})
  })
})
