/** What publish writes for a source of which balance publishes hosts. */
import { Ingress, IngressClass } from '@seamark/kube'
import { memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import { FIELD_MANAGER } from '../../process/field-manager.ts'
import { type PublishOptions, unified } from '../options.ts'
import { watchForPublish } from '../watches.ts'
import { kindsOfPublishers } from './host-publications.ts'
import { createSourceDecider } from './source-decision.ts'

const CREATED = '2026-01-01T00:00:00Z'
const PARTS = { fleet: { dns: true, roots: 'class' as const }, balance: true }

function ingress(ingressClassName: string, hosts: readonly string[], metadata: object = {}): Ingress {
  return {
    metadata: { namespace: 'web', name: 'shop', uid: 'u-shop', creationTimestamp: CREATED, ...metadata },
    spec: {
      ingressClassName,
      rules: hosts.map((host) => ({ host })),
      tls: [{ hosts: [...hosts], secretName: 'shop' }],
    },
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
  }
}

function world(changes: Partial<PublishOptions> = {}) {
  const cluster = memoryCluster()
  const options: PublishOptions = {
    ...unified,
    sources: ['Ingress'],
    parts: PARTS,
    defaultIssuerName: 'ca',
    ...changes,
  }
  watchForPublish(cluster.informers, options)
  for (const kind of kindsOfPublishers(options)) cluster.informers.informer(kind)
  const decider = createSourceDecider(cluster.informers, options)
  cluster.put(IngressClass, { metadata: { name: 'global' }, spec: { controller: 'seamark.io/global' } })
  return {
    cluster,
    /** Who is told that it lost a host, besides the source. */
    losers: (key: string) =>
      decider
        .decide('Ingress', key, 0)
        ?.conflicts.filter(({ finding }) => finding.reason === 'ClaimHeldByOther')
        .map(({ about }) => about?.metadata.name),
    /** As publish wrote it. */
    wrote: (hosts: readonly string[]): void => {
      cluster.put(DNSEndpoint, {
        metadata: {
          namespace: 'web',
          name: 'shop-ingress',
          uid: 'u-endpoint',
          annotations: { 'seamark.io/owned-by': 'Ingress/web/shop' },
          ownerReferences: [
            { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', name: 'shop', uid: 'u-shop', controller: true },
          ],
          managedFields: [
            {
              manager: FIELD_MANAGER,
              operation: 'Apply',
              apiVersion: 'externaldns.k8s.io/v1alpha1',
              fieldsType: 'FieldsV1',
              fieldsV1: {},
            },
          ],
        },
        spec: {
          endpoints: hosts.map((dnsName) => ({
            dnsName,
            recordType: 'A' as const,
            targets: ['192.0.2.9'],
            recordTTL: 60,
          })),
        },
      })
    },
    balancer: (host: string, hasRecords: boolean): void => {
      const metadata = { namespace: 'web', name: 'lb', uid: 'u-lb', creationTimestamp: CREATED }
      cluster.put(DNSLoadBalancer, { metadata, spec: { DNSName: host } })
      if (!hasRecords) return
      const owner = {
        apiVersion: 'loadbalancer.gardener.cloud/v1beta1',
        kind: 'DNSLoadBalancer',
        name: 'lb',
        uid: 'u-lb',
        controller: true,
      }
      cluster.put(DNSEndpoint, {
        metadata: { namespace: 'web', name: 'lb-dnslb', ownerReferences: [owner] },
        spec: { endpoints: [{ dnsName: host, recordType: 'A', targets: ['192.0.2.2'], recordTTL: 30 }] },
      })
    },
    decide: (object: Ingress) => {
      cluster.put(Ingress, object)
      const decided = decider.decide('Ingress', 'web/shop', 0)
      return {
        reasons: decided?.findings.map(({ reason }) => reason),
        steps: decided?.plan.steps.map((step) => {
          if (step.type === 'delete')
            return `delete ${step.child.object.metadata.name}${step.isHandedOver === true ? ' (handed over)' : ''}`
          if (step.type !== 'apply') return step.type
          const { object: child } = step.desired
          const endpoints = child.kind === 'DNSEndpoint' ? (child as DNSEndpoint).spec.endpoints : []
          return [
            `apply ${child.kind}`,
            ...endpoints.map(({ dnsName, targets }) => `${dnsName}=${targets.join()}`),
          ].join(' ')
        }),
      }
    },
  }
}

const ACME = { annotations: { 'kubernetes.io/tls-acme': 'true' } }

it('a root has a Certificate where it asks for one, and no DNSEndpoint', () => {
  expect(world().decide(ingress('global', ['a.test'], ACME))).toEqual({
    reasons: ['BalancePublishes'],
    steps: ['apply Certificate'],
  })
})

it('a root of a fleet in another process is known by its class, and by the finalizer', () => {
  const parts = { fleet: undefined, balance: false }
  expect(world({ parts }).decide(ingress('global', ['a.test'])).steps).toEqual([])
  const finalizers = ['seamark.io/global']
  expect(world({ parts }).decide(ingress('nginx', ['a.test'], { finalizers })).steps).toEqual([])
  expect(world({ parts }).decide(ingress('nginx', ['a.test'])).steps).toEqual(['apply DNSEndpoint a.test=192.0.2.1'])
})

it('without balance a root is published as before', () => {
  const { decide } = world({ parts: { ...PARTS, balance: false } })
  expect(decide(ingress('global', ['a.test'])).steps).toEqual(['apply DNSEndpoint a.test=192.0.2.1'])
})

it('what publish wrote stays until balance has the name, whether or not pruning is on', () => {
  for (const prune of [true, false]) {
    const { wrote, balancer, decide } = world({ prune })
    wrote(['a.test'])
    const root = ingress('global', ['a.test'])
    expect(decide(root)).toEqual({ reasons: ['BalancePublishes'], steps: [] })
    balancer('a.test', false)
    expect(decide(root).steps).toEqual([])
    balancer('a.test', true)
    expect(decide(root).steps).toEqual(['delete shop-ingress (handed over)'])
  }
})

it('of several hosts the one of a load balancer is left out when balance has it, and stays as it was until then', () => {
  const { wrote, balancer, decide } = world()
  wrote(['a.test', 'b.test'])
  const plain = ingress('nginx', ['a.test', 'b.test'])
  balancer('a.test', false)
  expect(decide(plain).steps).toEqual(['apply DNSEndpoint b.test=192.0.2.1 a.test=192.0.2.9'])
  balancer('a.test', true)
  expect(decide(plain).steps).toEqual(['apply DNSEndpoint b.test=192.0.2.1'])
})

it('a host that balance publishes is not published anew, also for a source that is no root', () => {
  const { balancer, decide } = world()
  balancer('a.test', false)
  expect(decide(ingress('nginx', ['a.test'])).steps).toEqual([])
})

it('the load balancer of a root is as old as the root', () => {
  const { cluster, losers } = world()
  const later = '2026-01-01T00:00:01Z'
  cluster.put(Ingress, ingress('nginx', ['a.test']))
  const root = (creationTimestamp: string) =>
    cluster.put(Ingress, ingress('global', ['a.test'], { namespace: 'shop', uid: 'u-root', creationTimestamp }))
  const balancer = (uid: string) =>
    cluster.put(DNSLoadBalancer, {
      metadata: {
        namespace: 'shop',
        name: 'lb',
        uid: 'u-lb',
        creationTimestamp: '2026-01-01T00:00:02Z',
        labels: { 'seamark.io/root-uid': uid },
      },
      spec: { DNSName: 'a.test' },
    })
  // The same second as the source, and a namespace before it.
  root(CREATED)
  balancer('u-root')
  expect(losers('web/shop')).toEqual([])
  root(later)
  expect(losers('web/shop')).toEqual(['lb'])
  // Of an object that it does not come from, it has not the age.
  root(CREATED)
  balancer('u-other')
  expect(losers('web/shop')).toEqual(['lb'])
})
