import type { Informer, Manager } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { expect, it } from 'vitest'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import { checkKinds, findKindFaults } from './kind-faults.ts'

const informer = (changes: object) =>
  ({ kind: DNSEndpoint, state: 'live', failure: undefined, ...changes }) as unknown as Informer<Obj>
const denied = { reason: 'denied', message: 'User "seamark" cannot list', sinceMs: 1 }
const RESOURCE = 'dnsendpoints.externaldns.k8s.io'

it('a kind that is needed and absent, and one that is denied, are named with verbs and what to do', () => {
  const found = (informers: readonly Informer<Obj>[]) =>
    findKindFaults({ all: () => informers }, new Set([DNSEndpoint])).map(
      ({ finding }) => `${finding.reason}: ${finding.message}`,
    )
  expect(found([informer({ state: 'absent' })])).toEqual([
    `CRDNotInstalled: DNSEndpoint (${RESOURCE}) is not installed, so that it can be neither watched nor written; install its CRD, kubectl get crd ${RESOURCE} shows it then`,
  ])
  expect(found([informer({ state: 'backoff', failure: denied })])).toEqual([
    `WatchForbidden: ${RESOURCE} cannot be listed and watched; allow list and watch of ${RESOURCE} in the ClusterRole of the manager: User "seamark" cannot list`,
  ])
  expect(found([informer({}), informer({ kind: DNSLoadBalancer, state: 'absent' })])).toEqual([])
})

it('/readyz fails until every kind could be read once, and not for one that is lost later', () => {
  let state = 'absent'
  let check: () => string | undefined = () => undefined
  const manager = {
    cluster: { informers: { all: () => [informer({ state })] } },
    check: (_probe: string, _name: string, given: typeof check) => void (check = given),
  } as unknown as Manager
  checkKinds(manager, new Set([DNSEndpoint]))
  expect(check()).toContain('CRDNotInstalled')
  state = 'live'
  expect(check()).toBeUndefined()
  state = 'absent'
  expect(check()).toBeUndefined()
})
