import { Ingress } from '@seamark/kube'
import { fakeClock, memoryCluster } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import type { LeafIngress } from '../../api/leaf-ingress.ts'
import { HUB_LABEL, LEAF_ANNOTATION } from '../names.ts'
import { MANAGED_LABEL } from '../../hosts/root.ts'
import { createLeafGuard, type SweepDeps, sweepMember } from './sweep.ts'
import { DEFAULT_MASS_LIMITS } from '../../safety/mass-limits.ts'

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
    guard: createLeafGuard(fakeClock(), DEFAULT_MASS_LIMITS),
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

  it.each([
    [5, 5, 0],
    [6, 20, 0],
    [7, 20, 7],
    [3, 3, 0],
  ])('of %i of %i leaves holds %i', async (orphans, all, held) => {
    const { ctx, left } = memberWith(all)
    const kept = Array.from({ length: all - orphans }, (_, index) => `shop/ingress-${orphans + index}--eu1`)
    const deps = depsOf({ findLeaf: known(...kept), readLeaf: async (key) => known(...kept)(key) })
    const messages = await sweepMember(deps, ctx)
    expect([left().length, deps.guard.held, messages.length]).toEqual([all - orphans + held, held, Math.min(1, held)])
  })

  it('makes a held mass deletion once it is approved, and holds the next one', async () => {
    const { ctx, left } = memberWith(8)
    const deps = depsOf()
    const [message = ''] = await sweepMember(deps, ctx)
    const [held] = deps.guard.heldGroups
    expect(message).toBe(
      `8 of 8 leaves of cluster eu1 would be removed at once, and none of them is; they have no LeafIngress; check that the hub has its objects, or let exactly these changes pass with: seamark approve ${held?.id}`,
    )
    expect([left().length, held?.id.startsWith('f-'), held?.objects[0]]).toMatchObject([
      8,
      true,
      { op: 'delete', kind: 'Ingress', name: 'eu1/shop/leaf-0' },
    ])
    deps.guard.approve(new Set(held?.objects.map(({ key }) => key)))
    await sweepMember(deps, ctx)
    expect([left(), deps.guard.held]).toEqual([[], 0])
    const next = memberWith(8)
    await sweepMember(deps, next.ctx)
    expect(next.left()).toHaveLength(8)
  })

  it('holds nothing any more when the hub has its leaves again', async () => {
    const { ctx, left } = memberWith(8)
    const deps = depsOf()
    await sweepMember(deps, ctx)
    expect(deps.guard.held).toBe(8)
    await sweepMember({ ...deps, findLeaf: () => leafOn('eu1') }, ctx)
    expect([left().length, deps.guard.held]).toEqual([8, 0])
  })
})
