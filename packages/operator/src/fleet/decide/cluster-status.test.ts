import { findCondition } from '@seamark/kube'
import { describe, expect, it } from 'vitest'
import type { Cluster } from '../../api/cluster.ts'
import {
  clusterEvents,
  type ClusterFacts,
  type Contact,
  decideClusterStatus,
  NO_HISTORY,
  recordContact,
} from './cluster-status.ts'

const answered: Contact = {
  state: 'answered',
  uid: 'u1',
  version: 'v1.36.0',
  servedKinds: ['Ingress'],
  missingVerbs: [],
}
const failed: Contact = { state: 'failed', isDenied: false, message: 'connect ECONNREFUSED' }
const nowMs = Date.parse('2026-01-01T00:00:00Z')

function decide(
  changes: Partial<ClusterFacts> & { status?: Cluster['status']; drain?: Cluster['spec']['drain'] } = {},
) {
  const { status: before, drain, ...rest } = changes
  const cluster = {
    metadata: { name: 'eu1', generation: 1 },
    spec: { weight: 100, namespacePolicy: 'Require' as const, ...(drain !== undefined && { drain }) },
    ...(before !== undefined && { status: before }),
  }
  return decideClusterStatus({
    cluster,
    registration: { refusal: undefined },
    contact: answered,
    history: recordContact(NO_HISTORY, true, { nowMs, monotonicMs: 0 }),
    duplicateOf: undefined,
    leaves: new Map(),
    orphans: [],
    nowMs,
    ...rest,
  })
}

const ready = (status: Cluster['status']) => {
  const condition = findCondition(status?.conditions, 'Ready')
  return `${condition?.status} ${condition?.reason}`
}

it('each outage of a cluster is an Event of its own, and so is its end', () => {
  let status: Cluster['status']
  const notes: string[] = []
  const at = (second: number, isLost: boolean): void => {
    const history = { hits: isLost ? 0 : 2, misses: isLost ? 3 : 0, lastHitMs: nowMs, countedMissMs: undefined }
    const contact = isLost ? failed : answered
    const next = decide({ ...(status !== undefined && { status }), contact, history, nowMs: nowMs + second * 1000 })
    notes.push(...clusterEvents(status, next).map(({ type, reason, note }) => `${type} ${reason}: ${note}`))
    status = next
  }
  at(0, false)
  at(60, true)
  at(70, true)
  at(90, false)
  at(120, true)
  expect(notes).toEqual([
    'Warning ClusterUnreachable: connect ECONNREFUSED; since 2026-01-01T00:01:00Z',
    'Normal ClusterReady: leaves can be placed on it; since 2026-01-01T00:01:30Z',
    'Warning ClusterUnreachable: connect ECONNREFUSED; since 2026-01-01T00:02:00Z',
  ])
})

describe('the status of a cluster', () => {
  it('is ready when its API server answers and allows everything', () => {
    expect(ready(decide())).toBe('True ClusterReady')
    expect(decide()).toMatchObject({ clusterUID: 'u1', version: 'v1.36.0', servedKinds: ['Ingress'] })
  })

  it('names the verbs that are missing', () => {
    const status = decide({ contact: { ...answered, missingVerbs: ['patch ingresses.networking.k8s.io'] } })
    expect(ready(status)).toBe('False AccessMissing')
    expect(findCondition(status.conditions, 'ApisServed')?.message).toContain('patch ingresses.networking.k8s.io')
  })

  it('is not lost by many misses within seconds, as when its leaves change at the same time', () => {
    const missesAt = (...seconds: number[]) =>
      seconds.reduce(
        (history, second) => recordContact(history, false, { nowMs, monotonicMs: second * 1_000 }),
        recordContact(NO_HISTORY, true, { nowMs, monotonicMs: 0 }),
      ).misses
    expect([missesAt(1, 2, 3, 4, 5.9), missesAt(1, 2, 6), missesAt(1, 6, 11)]).toEqual([1, 2, 3])
    const before = recordContact(NO_HISTORY, false, { nowMs, monotonicMs: 0 })
    const hit = recordContact(before, true, { nowMs, monotonicMs: 1_000 })
    expect(recordContact(hit, false, { nowMs, monotonicMs: 2_000 }).misses).toBe(1)
  })

  it('is lost after three misses and back after two hits, and says when it was last reached', () => {
    let status: Cluster['status'] = decide()
    let history = recordContact(NO_HISTORY, true, { nowMs, monotonicMs: 0 })
    const seen: string[] = []
    for (const [index, isHit] of [false, false, false, true, false, true, true].entries()) {
      history = recordContact(history, isHit, { nowMs: nowMs + 60_000, monotonicMs: 10_000 * (index + 1) })
      status = decide({ ...(status !== undefined && { status }), contact: isHit ? answered : failed, history })
      seen.push(findCondition(status.conditions, 'Reachable')?.status ?? '')
    }
    expect(seen).toEqual(['True', 'True', 'False', 'False', 'False', 'False', 'True'])
    expect(status?.lastContact).toBe('2026-01-01T00:00:00Z')
  })

  it('says that no Secret registers it, that its kubeconfig is refused, and that it is a duplicate', () => {
    expect(ready(decide({ registration: undefined, contact: undefined }))).toBe('False CredentialsMissing')
    const refusal = { reason: 'KubeconfigRefused' as const, severity: 'Warning' as const, message: 'exec is refused' }
    expect(ready(decide({ registration: { refusal }, contact: undefined }))).toBe('False KubeconfigRefused')
    expect(ready(decide({ duplicateOf: 'old' }))).toBe('False DuplicateCluster')
    expect(ready(decide({ contact: { state: 'failed', isDenied: true, message: '401' } }))).toBe('False AccessMissing')
  })

  it('names the command that replaces a refused token, or gives rights that are missing', () => {
    const message = (contact: Contact) => findCondition(decide({ contact }).conditions, 'Ready')?.message
    const denied: Contact = { state: 'failed', isDenied: true, message: 'the token has expired' }
    expect(message(denied)).toBe('the token has expired; run seamark cluster token eu1')
    const missing: Contact = { ...(answered as Contact & { state: 'answered' }), missingVerbs: ['get services'] }
    expect(message(missing)).toBe('the credentials may not: get services; run seamark cluster token eu1')
  })

  it('reports leaves that are left at the deadline of a drain, with what they wait for', () => {
    const leaves = new Map([
      ['WaitingForDns', 1],
      ['NoReplacement', 2],
    ])
    const draining = (deadline: string | undefined, left: ReadonlyMap<string, number>, enabled = true) => {
      const status = decide({ leaves: left, drain: { enabled, ...(deadline !== undefined && { deadline }) } })
      const condition = findCondition(status.conditions, 'Draining')
      return `${condition?.status} ${condition?.reason}: ${condition?.message}`
    }
    expect(draining(undefined, leaves)).toBe('True ClusterDraining: 3 leaves are left')
    expect(draining('2026-01-01T00:00:01Z', leaves)).toBe('True ClusterDraining: 3 leaves are left')
    expect(draining('2026-01-01T01:00:00+01:00', leaves)).toMatch(
      /^True DrainDeadlineReached: .* 3 leaves are left: 1 WaitingForDns, 2 NoReplacement; they go on serving/,
    )
    expect(draining('2026-01-01T00:00:00Z', new Map())).toBe('True ClusterDraining: 0 leaves are left')
    expect(draining('2026-01-01T00:00:00Z', leaves, false)).toBe('False ClusterReady: not asked for')
  })

  it('keeps what it serves and its orphans while it cannot be reached', () => {
    const since = '2026-01-01T00:00:00Z'
    const orphans = [{ kind: 'Ingress', namespace: 'shop', name: 'shop', since }]
    const lost = decide({ status: decide({ orphans }), contact: failed, history: NO_HISTORY, orphans })
    expect(lost).toMatchObject({ servedKinds: ['Ingress'], clusterUID: 'u1', orphans })
    expect(decide({ status: lost }).orphans).toBeUndefined()
  })

  it('says that a cluster serves none of the kinds of roots', () => {
    const status = decide({ contact: { ...answered, servedKinds: [] } })
    expect(ready(status)).toBe('False AccessMissing')
    expect(findCondition(status.conditions, 'ApisServed')?.message).toBe('it serves none of the kinds of roots')
  })

  it('writes nothing new while nothing changes', () => {
    const first = decide()
    expect(
      decide({
        status: first,
        nowMs: nowMs + 600_000,
        history: { ...NO_HISTORY, hits: 99, lastHitMs: nowMs + 600_000 },
      }),
    ).toEqual(first)
  })
})
