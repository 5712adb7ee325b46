import type { Node } from '@seamark/kube'
import { describe, expect, it } from 'vitest'
import type { DNSEndpoint } from '../api/dns-endpoint.ts'
import { warning } from '../finding.ts'
import { type ClusterFacts, decideCluster } from './cluster-decision.ts'
import { MAX_TARGETS } from './limits.ts'
import { wildcardDefaults } from './options.ts'
import { wildcardEndpoint } from './wildcard-endpoint.ts'

const options = { ...wildcardDefaults, zone: 'example.com' }
const owner = { cluster: 'fra1', namespace: 'manager', secret: { name: 'fra1', uid: 'uid-secret' } }

function node(name: string, addresses: readonly string[]): Node {
  return {
    metadata: { name },
    status: {
      conditions: [{ type: 'Ready', status: 'True' }],
      addresses: addresses.map((address) => ({ type: 'ExternalIP' as const, address })),
    },
  }
}

function endpoint(): DNSEndpoint {
  return wildcardEndpoint(owner, '*.fra1.example.com', { v4: ['192.0.2.1'], v6: [] }, options)
}

function decide(changes: Partial<ClusterFacts> = {}) {
  const facts: ClusterFacts = {
    owner,
    zone: 'example.com',
    live: endpoint(),
    refusal: undefined,
    reading: { state: 'known', nodes: [node('a', ['192.0.2.1'])] },
    damping: { lostSince: new Map(), lastWriteMs: undefined },
    nowMs: 1_000,
    ...changes,
  }
  return decideCluster(facts, options, () => true)
}

const reasonsOf = (changes: Partial<ClusterFacts>): unknown => {
  const { action, targets, findings } = decide(changes)
  return [action.state, targets, findings.map(({ reason }) => reason)]
}

describe('the wildcard of a cluster', () => {
  it('is applied as its nodes say, without a finding', () => {
    expect(decide()).toMatchObject({ action: { state: 'apply', desired: endpoint() }, findings: [] })
  })

  it('is held while the nodes were not read yet: no finding, and another look soon', () => {
    expect(decide({ reading: { state: 'syncing' } })).toMatchObject({
      action: { state: 'keep' },
      findings: [],
      againAtMs: 6_000,
    })
  })

  it.each(['ClusterUnreachable', 'ClusterOverLimit'] as const)('is held with the reason %s', (reason) => {
    const decision = decide({ reading: { state: 'unreadable', reason, message: 'GET /api/v1/nodes: 401' } })
    expect(decision).toMatchObject({ action: { state: 'keep' }, targets: ['192.0.2.1'], findings: [{ reason }] })
    expect(decision.findings[0]?.message).toContain('cluster fra1 cannot be read: GET /api/v1/nodes: 401')
  })

  it('is held when one node has too many addresses, or all of them together', () => {
    const held = ['keep', ['192.0.2.1'], ['ClusterOverLimit']]
    const addresses = Array.from({ length: 65 }, (_, index) => `192.0.2.${index}`)
    expect(reasonsOf({ reading: { state: 'known', nodes: [node('big', addresses)] } })).toEqual(held)
    const nodes = Array.from({ length: MAX_TARGETS + 1 }, (_, index) =>
      node(`n${index}`, [`198.51.${index >> 8}.${index & 255}`]),
    )
    expect(reasonsOf({ reading: { state: 'known', nodes } })).toEqual(held)
    expect(decide({ reading: { state: 'known', nodes: nodes.slice(0, MAX_TARGETS) } }).action.state).toBe('apply')
  })

  it('is held with its own reason when the zone, the kubeconfig or the owner is wrong', () => {
    expect(reasonsOf({ zone: '' })).toEqual(['keep', ['192.0.2.1'], ['ZoneInvalid']])
    const refusal = warning('KubeconfigRefused', 'exec')
    expect(reasonsOf({ refusal })).toEqual(['keep', ['192.0.2.1'], ['KubeconfigRefused']])
    const foreign = { ...endpoint(), metadata: { name: 'fra1-wildcard', namespace: 'manager' } }
    expect(reasonsOf({ live: foreign })).toEqual(['keep', ['192.0.2.1'], ['ForeignObject']])
    // Of an earlier Secret with the same name: it is about to be collected with that Secret.
    const earlier = wildcardEndpoint(
      { ...owner, secret: { name: 'fra1', uid: 'uid-earlier' } },
      '*.fra1.example.com',
      { v4: ['192.0.2.1'], v6: [] },
      options,
    )
    expect(reasonsOf({ live: earlier })).toEqual(['keep', ['192.0.2.1'], ['ForeignObject']])
  })
})
