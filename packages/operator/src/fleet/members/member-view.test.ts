import { EndpointSlice, type Manager, Service } from '@seamark/kube'
import { memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import { MemberViews, trimSlice } from './member-view.ts'

const slice = (service: string, name: string, ready: readonly boolean[]): EndpointSlice =>
  trimSlice({
    metadata: { namespace: 'shop', name, labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    endpoints: ready.map((isReady) => ({ addresses: ['192.0.2.1'], conditions: { ready: isReady } })),
  })

it('counts the ready endpoints of the Services it is asked for, and reads no other slice', () => {
  const member = memoryCluster('eu1')
  const informers = {
    ...member.informers,
    list: () => {
      throw new Error('every slice of the namespace is read')
    },
  }
  const manager = {
    fleet: { members: new Map([['eu1', { reachability: { type: 'reachable' }, cluster: { ...member, informers } }]]) },
    index: ((kind, name, values) => member.informers.index(kind, name, values)) satisfies Manager['index'],
  } as unknown as Manager
  const views = new MemberViews(manager, { isRead: true })
  for (const each of [slice('web', 'web-1', [true, false]), slice('web', 'web-2', [true]), slice('db', 'db-1', [true])])
    member.put(EndpointSlice, each)
  expect(views.endpointsReady('eu1', 'shop', ['web', 'web'])).toBe(2)
  expect(views.endpointsReady('eu1', 'shop', ['web', 'db'])).toBe(3)
  expect(views.endpointsReady('eu1', 'shop', ['other'])).toBeUndefined()
  expect(views.endpointsReady('eu1', 'other', ['web'])).toBeUndefined()
  expect(views.endpointsReady('us1', 'shop', ['web'])).toBeUndefined()
  // An endpoint without the condition is ready.
  member.put(
    EndpointSlice,
    trimSlice({
      metadata: { namespace: 'shop', name: 'api-1', labels: { 'kubernetes.io/service-name': 'api' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['192.0.2.1'] }, { addresses: ['192.0.2.2'], conditions: {} }],
    }),
  )
  expect(views.endpointsReady('eu1', 'shop', ['api'])).toBe(2)
  member.setState(EndpointSlice, 'starting')
  expect(views.endpointsReady('eu1', 'shop', ['web'])).toBeUndefined()
})

it('what a member that cannot be read has is unknown; it is lost only when it was tried, or is not registered', () => {
  const member = memoryCluster('eu1')
  member.put(Service, { metadata: { namespace: 'shop', name: 'web' } })
  const viewsOf = (type: string | undefined, isRead: boolean) => {
    const members = new Map(type === undefined ? [] : [['eu1', { reachability: { type }, cluster: member }]])
    return new MemberViews({ fleet: { members }, index: () => undefined } as unknown as Manager, { isRead })
  }
  const seen = (type: string | undefined, isRead = true) => {
    const views = viewsOf(type, isRead)
    return [views.backendOf('eu1', 'shop', ['web']).state, views.isLost('eu1')]
  }
  expect(seen('reachable')).toEqual(['present', false])
  expect(seen('unreachable')).toEqual(['unknown', true])
  expect(seen('connecting')).toEqual(['unknown', false])
  expect(seen(undefined)).toEqual(['unknown', true])
  expect(seen(undefined, false)).toEqual(['unknown', false])
})
