import { exampleState, exampleStateWith } from '../../../testing/example.ts'
import { describe, expect, it } from 'vitest'
import { flowOf, GROUP_ABOVE } from './flow-blocks.ts'

describe('the blocks of the flow', () => {
  it('are one for each host, with a band for each answer', () => {
    const { blocks, more } = flowOf(exampleState.hosts)
    expect(blocks.map(({ name, note, state, bands }) => [name, note, state, bands.length])).toEqual([
      ['api.demo.test', 'ShrinkBreakerOpen', 'degraded', 1],
      ['shop.demo.test', 'ClusterUnreachable', 'degraded', 3],
      ['xn--bcher-kva.demo.test', 'NoLoadBalancerAddress', 'broken', 0],
    ])
    expect(more).toBe(0)
  })

  it('are grouped by zone above 40 hosts, and what needs a look is first, by harm', () => {
    const { blocks } = flowOf(exampleStateWith(GROUP_ABOVE).hosts)
    expect(blocks.map(({ name, isGroup }) => [name, isGroup])).toEqual([
      ['xn--bcher-kva.demo.test', false],
      ['api.demo.test', false],
      ['shop.demo.test', false],
      ['demo.test', true],
      ['scale.test', true],
    ])
    const [scale] = blocks.slice(-1)
    expect(scale?.note).toBe('40 hosts')
    expect(scale?.bands.map(({ cluster, share }) => [cluster, share])).toEqual([
      ['eu1', 0.625],
      ['us1', 0.375],
      ['ap1', 0],
    ])
  })

  it('say how many hosts that need a look have no block', () => {
    const hosts = exampleStateWith(100).hosts.map((host) => ({ ...host, state: 'broken' as const }))
    const { blocks, more } = flowOf(hosts)
    expect(blocks.filter(({ isGroup }) => !isGroup)).toHaveLength(12)
    expect(more).toBe(hosts.length - 12)
  })

  it('are the same objects while their hosts are', () => {
    expect(flowOf(exampleState.hosts).blocks[0]).toBe(flowOf([...exampleState.hosts]).blocks[0])
  })
})
