import type { Manager } from '@seamark/kube'
import { memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import { LeafIngress } from '../../api/leaf-ingress.ts'
import { LeafTriggers } from './leaf-triggers.ts'

type Listener = Parameters<Manager['fleet']['subscribe']>[0]

function startHub() {
  const hub = memoryCluster('hub')
  const listeners = new Set<Listener>()
  let subscriptions = 0
  const informers: typeof hub.informers = {
    ...hub.informers,
    informer: (kind, options) => {
      const informer = hub.informers.informer(kind, options)
      const subscribe: typeof informer.subscribe = (handle, how) => {
        subscriptions += 1
        const end = informer.subscribe(handle, how)
        return () => {
          subscriptions -= 1
          end()
        }
      }
      return Object.create(informer, { subscribe: { value: subscribe } }) as typeof informer
    },
  }
  const fleet = {
    subscribe: (listener: Listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  const manager = { cluster: { ...hub, informers }, fleet } as unknown as Manager
  const triggers = new LeafTriggers(
    manager,
    hub.informers.index(LeafIngress, 'cluster', ({ spec }) => [spec.cluster]),
  )
  return {
    hub,
    triggers,
    put: (cluster: string, name: string) =>
      hub.put(LeafIngress, { metadata: { namespace: 'shop', name }, spec: { cluster } } as LeafIngress),
    reach: (name: string) => {
      const member = { name, reachability: { type: 'reachable' } } as Parameters<Listener>[0]['member']
      for (const listener of listeners) listener({ type: 'reachability', member })
    },
    subscriptions: () => subscriptions + listeners.size,
  }
}

it('a member gets its own leaves at its start, when they change and when it is reachable again', () => {
  const { triggers, put, reach } = startHub()
  put('eu1', 'a')
  put('us1', 'b')
  const marked: string[] = []
  triggers.start((keys) => marked.push(...keys), 'eu1')
  expect([...new Set(marked.splice(0))]).toEqual(['shop/a'])
  put('us1', 'c')
  put('eu1', 'd')
  expect(marked.splice(0)).toEqual(['shop/d'])
  reach('us1')
  expect(marked.splice(0)).toEqual([])
  reach('eu1')
  expect(marked.splice(0)).toEqual(['shop/a', 'shop/d'])
})

it('a member that starts later gets the leaves that are there', () => {
  const { triggers, put } = startHub()
  triggers.start(() => undefined, 'us1')
  put('eu1', 'a')
  const marked: string[] = []
  triggers.start((keys) => marked.push(...keys), 'eu1')
  expect(marked).toEqual(['shop/a'])
})

it('a member that starts before the hub is read gets its leaves when they are', () => {
  const { hub, triggers, put } = startHub()
  hub.setState(LeafIngress, 'syncing')
  const marked: string[] = []
  triggers.start((keys) => marked.push(...keys), 'eu1')
  put('eu1', 'a')
  expect(marked).toEqual(['shop/a'])
})

it('all members share one subscription, which ends with the last of them', () => {
  const { triggers, put, subscriptions } = startHub()
  const marked: string[] = []
  const ends = ['eu1', 'us1', 'ap1'].map((name) => triggers.start((keys) => marked.push(...keys), name))
  expect(subscriptions()).toBe(2)
  ends[0]?.()
  put('eu1', 'a')
  put('us1', 'b')
  expect(marked).toEqual(['shop/b'])
  ends[1]?.()
  ends[2]?.()
  expect(subscriptions()).toBe(0)
})
