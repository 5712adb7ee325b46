import type { Cluster } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { type ClusterTotals, clusterView } from './cluster-view.ts'

const condition = (type: string, status: string, reason = type, message = '') => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: '2026-03-01T00:00:00Z',
})
const READY = [condition('Reachable', 'True'), condition('Ready', 'True', 'ClusterReady')]
const LOST = [condition('Reachable', 'False', 'ClusterUnreachable', 'refused'), condition('Ready', 'False')]
const SERVING: ClusterTotals = {
  shares: 1,
  hosts: 1,
  answeredHosts: 1,
  answeredRoots: 1,
  healthy: 1,
  unhealthy: 0,
  addresses: new Map([['203.0.113.1', 1]]),
}
const SICK = { ...SERVING, healthy: 0, unhealthy: 1 }
const GONE = { ...SERVING, shares: 0, answeredHosts: 0, answeredRoots: 0 }
const DRAIN = { drain: { enabled: true } }

const view = (conditions: object[], totals: ClusterTotals, spec: object = {}, leaves = 0) =>
  clusterView({
    cluster: { metadata: { name: 'eu1' }, spec, status: { conditions } } as unknown as Cluster,
    leaves: Array.from({ length: leaves }, () => ({}) as never),
    totals,
    answeredHosts: 2,
  })

describe('the first that holds', () => {
  it.each([
    {
      why: 'its API server is lost, whatever else holds',
      conditions: LOST,
      totals: SICK,
      spec: DRAIN,
      is: 'Unreachable',
    },
    { why: 'it drains and leaves are left', conditions: READY, totals: SICK, spec: DRAIN, leaves: 1, is: 'Draining' },
    { why: 'it drains and DNS still answers it', conditions: READY, totals: SERVING, spec: DRAIN, is: 'Draining' },
    {
      why: 'it drained, and DNS answers it for its wildcard only',
      conditions: READY,
      totals: { ...SERVING, answeredRoots: 0 },
      spec: DRAIN,
      is: 'Drained',
    },
    { why: 'it drained', conditions: READY, totals: GONE, spec: DRAIN, is: 'Drained' },
    { why: 'none of its addresses is healthy', conditions: READY, totals: SICK, is: 'Unhealthy' },
    {
      why: 'it lacks rights',
      conditions: [condition('Ready', 'False', 'AccessMissing')],
      totals: GONE,
      is: 'Unhealthy',
    },
    { why: 'some of its addresses are healthy', conditions: READY, totals: { ...SICK, healthy: 1 }, is: 'Serving' },
    { why: 'it has no host yet', conditions: READY, totals: GONE, is: 'Serving' },
  ])('$is: $why', ({ conditions, totals, spec = {}, leaves = 0, is }) => {
    expect(view(conditions, totals, spec, leaves).state).toBe(is)
  })
})

it('one that is lost says whether DNS still answers its addresses', () => {
  expect(view(LOST, SERVING)).toMatchObject({
    answersStill: true,
    text: 'refused',
    reason: 'ClusterUnreachable',
    share: 0.5,
  })
  expect(view(LOST, GONE)).toMatchObject({ answersStill: false, share: 0 })
})

it('one that drained does not say that DNS answers it still, where that is of hosts that no drain moves', () => {
  expect(view(READY, { ...SERVING, answeredRoots: 0 }, DRAIN)).toMatchObject({ state: 'Drained', answersStill: false })
  expect(view(READY, SERVING, DRAIN)).toMatchObject({ state: 'Draining', answersStill: true })
})
