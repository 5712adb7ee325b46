import { Node } from '@seamark/kube'
import type { Cluster } from '@seamark/kube'
import { fakeClock } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import { watchNodes } from './member.ts'

/** A cluster whose list of nodes has one page for each of these lists of names. */
function clusterOf(pages: readonly (readonly string[])[]) {
  let subscriptions = 0
  const list = async (_kind: typeof Node, { continue: token = '0' }: { continue?: string }) => {
    const at = Number(token)
    const items = (pages[at] ?? []).map((name) => ({ metadata: { name } }))
    return { metadata: { continue: at + 1 < pages.length ? String(at + 1) : '' }, items }
  }
  const informer = {
    state: 'live',
    synced: async () => undefined,
    subscribe() {
      subscriptions++
      return () => subscriptions--
    },
  }
  const cluster = { name: 'fra1', client: { list }, informers: { informer: () => informer, list: () => [] } }
  return { cluster: cluster as unknown as Cluster, subscriptions: () => subscriptions }
}

it('a list past the cache has the nodes of all pages', async () => {
  const { cluster } = clusterOf([['a', 'b'], ['c'], ['d']])
  const member = watchNodes(cluster, fakeClock(), () => undefined)
  const reading = await member.readAfresh(new AbortController().signal)
  expect(reading.state === 'known' && reading.nodes.map(({ metadata }) => metadata.name)).toEqual(['a', 'b', 'c', 'd'])
})

it('a member that is closed has no subscription left', () => {
  const { cluster, subscriptions } = clusterOf([[]])
  const member = watchNodes(cluster, fakeClock(), () => undefined)
  expect(subscriptions()).toBe(1)
  member.close()
  expect(subscriptions()).toBe(0)
})
