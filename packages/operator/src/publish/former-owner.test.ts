/** A host whose former owner no list contains: `--dry-run` and `explain` report that the claim waits for it. */
import { Service } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import { memoryCluster } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { httpProxy, options } from '../../testing/publish-fixture.ts'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { explain } from '../explain/chain.ts'
import { gatherFacts } from '../explain/gather.ts'
import { FIELD_MANAGER } from '../process/field-manager.ts'
import { dryRun } from './report/dry-run.ts'

const HOST = 'test.example.com'
const settings = options({ sources: ['HTTPProxy'], arbitrateHosts: true, children: ['DNSEndpoint'] })

/** `ns/foo` claims the host; a child of `other/first` with it is published. `live`: what a read of `other/first` finds. */
function clusterWith(live: HTTPProxy | undefined) {
  const cluster = memoryCluster()
  cluster.put(Service, {
    metadata: { namespace: 'test-ns', name: 'test-svc' },
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
  })
  const source = httpProxy()
  cluster.put(HTTPProxy, {
    ...source,
    metadata: { ...source.metadata, creationTimestamp: '2030-06-01T00:00:00Z' },
    spec: { virtualhost: { fqdn: HOST } },
  })
  cluster.put(DNSEndpoint, {
    metadata: {
      namespace: 'other',
      name: 'first',
      annotations: { 'contour-plus.cybozu.com/owned-by': 'other/first' },
      managedFields: [
        { manager: FIELD_MANAGER, operation: 'Apply', apiVersion: 'externaldns.k8s.io/v1alpha1', fieldsV1: {} },
      ],
    },
    spec: { endpoints: [{ dnsName: HOST, recordType: 'A', recordTTL: 60, targets: ['192.0.2.9'] }] },
  })
  const find = async (kind: unknown, key: string) =>
    kind === HTTPProxy && key === 'other/first' ? live : cluster.client.find(kind as never, key)
  return { ...cluster, client: { ...cluster.client, find: find as typeof cluster.client.find } }
}

const owner: HTTPProxy = {
  apiVersion: 'projectcontour.io/v1',
  kind: 'HTTPProxy',
  metadata: { namespace: 'other', name: 'first', uid: 'first', creationTimestamp: '2030-01-01T00:00:00Z' },
  spec: { virtualhost: { fqdn: HOST } },
}
const message = `host ${HOST} stays with HTTPProxy/other/first: a list omitted that object, and the API server still has it`
const never = new AbortController().signal

describe('a claim that waits for a former owner', () => {
  it('is a finding of a dry run, which plans no change for the source', async () => {
    const report = await dryRun(clusterWith(owner), settings, never)
    expect(report.changes).toEqual([])
    expect(report.findings).toEqual([{ source: 'HTTPProxy ns/foo', reason: 'SourceUnconfirmed', message }])
  })

  it('is the first broken hop that explain reports', async () => {
    const facts = await gatherFacts(HOST, { cluster: clusterWith(owner), options: settings }, never)
    expect(explain(facts).firstBroken).toMatchObject({
      name: 'source',
      reason: 'SourceUnconfirmed',
      text: `HTTPProxy ns/foo: ${message}`,
    })
  })
})

describe('a former owner that a read does not find', () => {
  it('holds no claim: a dry run plans the DNSEndpoint', async () => {
    const report = await dryRun(clusterWith(undefined), settings, never)
    expect(report.findings).toEqual([])
    expect(report.changes.map(({ verb, object }) => `${verb} ${object}`)).toContain('create DNSEndpoint ns/foo')
  })

  it('does not break the hop of the source', async () => {
    const facts = await gatherFacts(HOST, { cluster: clusterWith(undefined), options: settings }, never)
    expect(explain(facts).hops[0]).toMatchObject({ name: 'source', state: 'ok' })
  })
})
