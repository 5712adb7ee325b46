import { describe, expect, it } from 'vitest'
import type { DNSEndpoint } from '../api/dns-endpoint.ts'
import { warning } from '../finding.ts'
import { REASONS } from '../reasons.ts'
import { findNews, nextConditions, WILDCARD_CONDITION } from './report.ts'

const lost = warning(
  'ClusterUnreachable',
  'the nodes of cluster fra1 cannot be read: reset; its published targets are unchanged',
)
const endpoint = (status?: NonNullable<DNSEndpoint['status']>): DNSEndpoint => ({
  metadata: { name: 'fra1-wildcard', namespace: 'manager', generation: 1 },
  spec: { endpoints: [] },
  ...(status !== undefined && { status }),
})

describe('reports about a wildcard', () => {
  it('are made when a reason is new, not when its message differs, and once when none is left', () => {
    expect(findNews('fra1', [], [lost])).toEqual([lost])
    expect(findNews('fra1', [lost], [{ ...lost, message: 'another transport error' }])).toEqual([])
    expect(findNews('fra1', [lost], [])).toMatchObject([{ reason: 'ClusterReachable', severity: 'Normal' }])
    const none = warning('NoReadyNodes', 'none of 3')
    expect(findNews('fra1', [none], [])).toMatchObject([{ reason: 'Published', severity: 'Normal' }])
    expect(findNews('fra1', [lost], [none])).toMatchObject([{ reason: 'ClusterReachable' }, none])
    expect(findNews('fra1', [], [])).toEqual([])
  })

  it('set a condition while something is held, keep it as it is, and remove it afterwards', () => {
    expect(nextConditions(endpoint(), [], 0)).toBeUndefined()
    const conditions = nextConditions(endpoint(), [lost], 0)
    expect(conditions).toEqual([
      {
        type: WILDCARD_CONDITION,
        status: 'False',
        reason: 'ClusterUnreachable',
        message: REASONS.ClusterUnreachable,
        lastTransitionTime: '1970-01-01T00:00:00Z',
      },
    ])
    const held = endpoint({ conditions: [...(conditions ?? [])] })
    expect(nextConditions(held, [{ ...lost, message: 'another transport error' }], 9_000)).toBeUndefined()
    expect(nextConditions(held, [warning('NoReadyNodes', 'none of 3')], 9_000)).toMatchObject([
      { reason: 'NoReadyNodes' },
    ])
    expect(nextConditions(held, [], 9_000)).toEqual([])
  })

  it('leave the conditions of others as they are', () => {
    const served = {
      type: 'seamark.io/Served',
      status: 'True' as const,
      reason: 'Published',
      message: 'x',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    }
    const both = nextConditions(endpoint({ conditions: [served] }), [lost], 0)
    expect(both?.map(({ type }) => type)).toEqual(['seamark.io/Served', WILDCARD_CONDITION])
    expect(nextConditions(endpoint({ conditions: [...(both ?? [])] }), [], 0)).toEqual([served])
  })
})
