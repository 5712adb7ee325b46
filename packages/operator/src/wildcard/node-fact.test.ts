import type { Node } from '@seamark/kube'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MAX_NODE_ADDRESSES } from './limits.ts'
import { hasTooManyAddresses, readNode, trimNode } from './node-fact.ts'
import { wildcardDefaults } from './options.ts'

const everything = () => true
const of = (node: unknown): Node => node as Node

describe('a node as a member cluster sends it', () => {
  it('keeps what a decision reads, and nothing that heartbeats change', () => {
    const node = of({
      apiVersion: 'v1',
      metadata: { name: 'n', uid: 'u', resourceVersion: '7', labels: { role: 'infra' }, annotations: { a: 'b' } },
      spec: { unschedulable: true, podCIDR: '10.0.0.0/24' },
      status: {
        addresses: [
          { type: 'Hostname', address: 'n' },
          { type: 'ExternalIP', address: '192.0.2.1' },
        ],
        conditions: [
          { type: 'MemoryPressure', status: 'False', lastHeartbeatTime: '2026-01-01T00:00:00Z' },
          { type: 'Ready', status: 'True', lastHeartbeatTime: '2026-01-01T00:00:00Z' },
        ],
        images: [{ names: ['x'] }],
      },
    })
    expect(trimNode(node)).toEqual({
      metadata: { name: 'n', uid: 'u', resourceVersion: '7', labels: { role: 'infra' } },
      spec: { unschedulable: true },
      status: {
        addresses: [{ type: 'ExternalIP', address: '192.0.2.1' }],
        conditions: [{ type: 'Ready', status: 'True' }],
      },
    })
  })

  it.each([
    ['addresses that are text', { addresses: 'x', conditions: [] }],
    ['addresses that are null', { addresses: [null, { type: 'ExternalIP', address: 7 }], conditions: null }],
    ['conditions that are a number', { addresses: [], conditions: 5 }],
    ['conditions that are null', { addresses: [], conditions: [null] }],
  ])('of a wrong type does not throw: %s', (_, status) => {
    const node = trimNode(of({ metadata: { name: 'n', labels: { a: 1 } }, spec: null, status }))
    expect(readNode(node, everything, wildcardDefaults)).toBeUndefined()
  })

  it('of any shape is read without an error', () => {
    const value = fc.jsonValue({ maxDepth: 4 })
    const part = fc.oneof(
      value,
      fc.record({ addresses: value, conditions: value, unschedulable: value }, { requiredKeys: [] }),
      fc.record({ addresses: fc.array(fc.record({ type: fc.constantFrom('ExternalIP', 7), address: value })) }),
    )
    const labels = fc.record({ name: fc.oneof(fc.string(), value), labels: value, deletionTimestamp: value })
    const node = fc.record({ metadata: labels, spec: part, status: part }, { requiredKeys: ['metadata'] })
    fc.assert(
      fc.property(node, (object) => {
        const trimmed = trimNode(of(object))
        readNode(trimmed, everything, wildcardDefaults)
        return (trimmed.status?.addresses?.length ?? 0) <= MAX_NODE_ADDRESSES + 1
      }),
    )
  })

  it('with 70 000 addresses keeps one more than allowed, so that it is seen', () => {
    const addresses = Array.from({ length: 70_000 }, (_, index) => ({
      type: 'ExternalIP',
      address: `192.${index >> 16}.${(index >> 8) & 255}.${index & 255}`,
    }))
    const trimmed = trimNode(of({ metadata: { name: 'n' }, status: { addresses } }))
    expect(trimmed.status?.addresses).toHaveLength(MAX_NODE_ADDRESSES + 1)
    expect(hasTooManyAddresses(trimmed)).toBe(true)
    const within = trimNode(of({ metadata: { name: 'n' }, status: { addresses: addresses.slice(0, 64) } }))
    expect(hasTooManyAddresses(within)).toBe(false)
  })
})
