import { Ingress } from '@seamark/kube'
import { memoryCluster } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import type { LeafIngress } from '../../api/leaf-ingress.ts'
import { HUB_LABEL, LEAF_ANNOTATION } from '../names.ts'
import { MANAGED_LABEL } from '../../hosts/root.ts'
import { type SweepDeps, sweepMember } from './sweep.ts'

/** Leaves on the member eu1, by name; with `count` leaves. */
function memberWith(count: number, hub = 'hub-1') {
  const member = memoryCluster('eu1')
  for (let index = 0; index < count; index++)
    member.put(Ingress, {
      metadata: {
        namespace: 'shop',
        name: `leaf-${index}`,
        labels: { [MANAGED_LABEL]: 'true', [HUB_LABEL]: hub },
        annotations: { [LEAF_ANNOTATION]: `ingress-${index}--eu1` },
      },
    })
  const ctx = { ...member.informers, cluster: 'eu1', client: member.client, log: member.log }
  const left = () => member.informers.list(Ingress).map(({ metadata }) => metadata.name)
  return { member, ctx, left }
}

const leafOn = (cluster: string): LeafIngress => ({ metadata: {}, spec: { cluster } }) as unknown as LeafIngress
const known =
  (...keys: string[]) =>
  (key: string) =>
    keys.includes(key) ? leafOn('eu1') : undefined

function depsOf(changes: Partial<SweepDeps> = {}): SweepDeps {
  return {
    hubId: 'hub-1',
    isHubSynced: true,
    findLeaf: () => undefined,
    readLeaf: async () => undefined,
    ...changes,
  }
}

describe('the sweep of a member', () => {
  it('deletes what has our labels and no leaf', async () => {
    const { ctx, left } = memberWith(2)
    const cached = known('shop/ingress-0--eu1')
    await sweepMember(depsOf({ findLeaf: cached, readLeaf: async (key) => cached(key) }), ctx)
    expect(left()).toEqual(['leaf-0'])
  })

  it('deletes nothing that only the cache of the hub has lost', async () => {
    const { ctx, left } = memberWith(2)
    await sweepMember(
      depsOf({ readLeaf: async (key) => known('shop/ingress-0--eu1', 'shop/ingress-1--eu1')(key) }),
      ctx,
    )
    expect(left()).toEqual(['leaf-0', 'leaf-1'])
  })

  it('deletes nothing before the leaves of the hub were read, nor while the hub cannot be asked', async () => {
    const { ctx, left } = memberWith(2)
    await sweepMember(depsOf({ isHubSynced: false }), ctx)
    const unreachable = depsOf({ readLeaf: async () => Promise.reject(new Error('no response')) })
    await expect(sweepMember(unreachable, ctx)).rejects.toThrow('no response')
    expect(left()).toEqual(['leaf-0', 'leaf-1'])
  })

  it('deletes a leaf that is planned for another cluster, and nothing of another hub', async () => {
    const moved = memberWith(1)
    await sweepMember(depsOf({ findLeaf: () => leafOn('us1'), readLeaf: async () => leafOn('us1') }), moved.ctx)
    expect(moved.left()).toEqual([])
    const foreign = memberWith(1, 'hub-2')
    await sweepMember(depsOf(), foreign.ctx)
    expect(foreign.left()).toEqual(['leaf-0'])
  })

  it('reports a mass deletion and deletes nothing', async () => {
    const { ctx, left, member } = memberWith(8)
    await sweepMember(depsOf(), ctx)
    expect(left()).toHaveLength(8)
    expect(member.lines.join('')).toContain('MassDeletionRefused')
  })
})
