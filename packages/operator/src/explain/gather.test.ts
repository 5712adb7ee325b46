/** The record that `explain` reports for a host which both a source of publish and a load balancer name. */
import { Ingress } from '@seamark/kube'
import { memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { unified } from '../publish/options.ts'
import { gatherFacts } from './gather.ts'

const HOST = 'shop.example.com'
const options = { ...unified, sources: ['Ingress'] as const, parts: { fleet: undefined, balance: true } }

it('names the DNSEndpoint of the load balancer that has the host, and not the one of publish', async () => {
  const cluster = memoryCluster()
  const creationTimestamp = '2026-01-01T00:00:00Z'
  cluster.put(Ingress, {
    metadata: { namespace: 'web', name: 'shop', uid: 'u-shop', creationTimestamp },
    spec: { ingressClassName: 'nginx', rules: [{ host: HOST }] },
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
  })
  const facts = async () => gatherFacts(HOST, { cluster, options }, new AbortController().signal)
  expect((await facts()).targets).toEqual(['192.0.2.1'])
  cluster.put(DNSLoadBalancer, {
    metadata: { namespace: 'web', name: 'lb', uid: 'u-lb', creationTimestamp },
    spec: { DNSName: HOST },
    status: { state: 'healthy' },
  })
  const owner = { apiVersion: 'loadbalancer.gardener.cloud/v1beta1', kind: 'DNSLoadBalancer', name: 'lb', uid: 'u-lb' }
  cluster.put(DNSEndpoint, {
    metadata: { namespace: 'web', name: 'lb-dnslb', ownerReferences: [{ ...owner, controller: true }] },
    spec: { endpoints: [{ dnsName: HOST, recordType: 'A', targets: ['192.0.2.2'], recordTTL: 30 }] },
  })
  expect(await facts()).toMatchObject({ endpoint: { name: 'web/lb-dnslb' }, targets: ['192.0.2.2'] })
})
