import { ConfigMap, Forbidden, Lease } from '@seamark/kube'
import { memoryCluster } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { describePeer, findPeers, isHeld } from './peers.ts'

const NOW = Date.parse('2026-01-01T12:00:00Z')
const { signal } = new AbortController()
const spec = { holderIdentity: 'pod-1', leaseDurationSeconds: 15, renewTime: '2026-01-01T11:59:58.000000Z' }
const find = async (cluster: ReturnType<typeof memoryCluster>, own?: string) =>
  findPeers(cluster.client, { own, nowMs: NOW, signal })

describe('a Lease', () => {
  it.each([
    ['is held while it is renewed', spec, true],
    ['is not held without a holder', { ...spec, holderIdentity: '' }, false],
    ['is not held when it was last renewed an hour ago', { ...spec, renewTime: '2026-01-01T11:00:00.000000Z' }, false],
    ['is held when it has no time', { holderIdentity: 'pod-1' }, true],
    ['is held when the clock of its holder is ahead', { ...spec, renewTime: '2026-01-01T12:00:30.000000Z' }, true],
  ])('%s', (_, claim, expected) => {
    expect(isHeld(claim, NOW)).toBe(expected)
  })
})

describe('peers', () => {
  it('are holders of known Leases in all namespaces; our own Lease is not one', async () => {
    const cluster = memoryCluster()
    for (const [namespace, name] of [
      ['seamark', 'contour-plus-leader'],
      ['infra', 'contour-plus-leader'],
      ['infra', 'dnslb-controller-manager-lease'],
      ['infra', 'unrelated'],
    ] as const)
      cluster.put(Lease, { metadata: { namespace, name }, spec })
    cluster.put(Lease, {
      metadata: { namespace: 'old', name: 'contour-plus-leader' },
      spec: { ...spec, renewTime: '2025-01-01T00:00:00.000000Z' },
    })
    const { peers, fault } = await find(cluster, 'seamark/contour-plus-leader')
    expect(fault).toBeUndefined()
    expect(peers.map(describePeer)).toEqual([
      'Lease infra/contour-plus-leader is held by pod-1 (contour-plus or another Seamark manager)',
      'Lease infra/dnslb-controller-manager-lease is held by pod-1 (dnslb-controller-manager)',
    ])
    expect((await find(cluster)).peers).toHaveLength(3)
  })

  it('another manager with the name of our own Lease is found, whatever that name is', async () => {
    const cluster = memoryCluster()
    cluster.put(Lease, { metadata: { namespace: 'other', name: 'mine' }, spec })
    expect((await find(cluster, 'seamark/mine')).peers.map(({ lease }) => lease)).toEqual(['Lease other/mine'])
  })

  it('the lock of older versions of dnslb-controller-manager is a ConfigMap', async () => {
    const cluster = memoryCluster()
    const annotations = { 'control-plane.alpha.kubernetes.io/leader': JSON.stringify(spec) }
    const metadata = { namespace: 'garden', name: 'dnslb-controller-manager-lease' }
    cluster.put(ConfigMap, { metadata: { ...metadata, annotations } })
    expect((await find(cluster)).peers.map(describePeer)).toEqual([
      'ConfigMap garden/dnslb-controller-manager-lease is held by pod-1 (dnslb-controller-manager)',
    ])
    cluster.put(ConfigMap, {
      metadata: { ...metadata, annotations: { 'control-plane.alpha.kubernetes.io/leader': '{' } },
    })
    expect((await find(cluster)).peers).toEqual([])
  })

  it('Leases that may not be listed are a fault with the cause, not an error', async () => {
    const cluster = memoryCluster()
    cluster.intercept = () => {
      throw new Forbidden('Forbidden', 'leases is forbidden', 403, { apiVersion: 'v1', kind: 'Status' })
    }
    const { peers, fault } = await find(cluster)
    expect(peers).toEqual([])
    expect(fault).toContain('forbidden')
  })
})
