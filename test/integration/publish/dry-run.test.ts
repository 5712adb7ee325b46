/** `--dry-run` on API servers: it reads, reports, and writes nothing. */
import { DNSEndpoint, dropIn, dryRun, HTTPProxy, summarize } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { createLoadBalancer, createNamespace, crdsInUse, environmentKinds } from './test-environment.ts'

const options = { ...dropIn, services: [{ service: 'test-ns/test-svc' }], defaultIssuerName: 'test-issuer' }

describe.each(environmentKinds)('dry run on $name', ({ isMissing, start }) => {
  it.skipIf(isMissing)(`says what would change, per object, and writes nothing (${crdsInUse})`, async () => {
    await using environment = await start()
    const { client } = environment
    for (const name of ['ns', 'test-ns']) await createNamespace(client, name)
    await createLoadBalancer(client, 'test-ns/test-svc', [{ ip: '10.0.0.1' }])
    await client.create(HTTPProxy, {
      metadata: { namespace: 'ns', name: 'foo', annotations: { 'kubernetes.io/tls-acme': 'true' } },
      spec: { virtualhost: { fqdn: 'test.example.com', tls: { secretName: 'test-secret' } } },
    })
    const { cluster, writes } = environment.connect('contour-plus')
    const report = await dryRun(cluster, options, AbortSignal.timeout(10_000))
    expect(summarize(report, options)).toBe('1 proxies, 0 children equal, 2 would change')
    expect(report.changes.map((change) => `${change.verb} ${change.object}`)).toEqual([
      'create DNSEndpoint ns/foo',
      'create Certificate ns/foo',
    ])
    expect(report.changes[0]?.lines).toContain('+ spec.endpoints[0].targets[0]: "10.0.0.1"')
    expect(writes.count).toBe(0)
    expect((await client.list(DNSEndpoint)).items).toEqual([])
  })
})
