/** Names that annotations add to a certificate are subject to the claims and grants of hosts. */
import { memoryCluster } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { HTTPProxy } from '@seamark/kube/contour'
import { annotated, httpProxy, named, options, withHost } from '../../../testing/publish-fixture.ts'
import { unified } from '../options.ts'
import { createSourceDecider } from './source-decision.ts'

const victim = httpProxy(named('a', 'shop'), withHost('shop.example.com'))
const settings = {
  ...options({ ...unified, services: [{ service: 'test-ns/test-svc' }], sources: ['HTTPProxy'] }),
  defaultIssuerName: 'test-issuer',
}

/** The state of the certificate of a source in namespace b, which is older than the owner of the host. */
async function certificateOf(annotations: Record<string, string>, grants = settings.grants) {
  const cluster = memoryCluster()
  const attacker = httpProxy(named('b', 'web'), withHost('web.example.com'), annotated(annotations))
  attacker.metadata.creationTimestamp = '2020-01-01T00:00:00Z'
  const decider = createSourceDecider(cluster.informers, { ...settings, grants })
  const informer = cluster.informers.informer(HTTPProxy)
  for (const object of [victim, attacker]) cluster.put(HTTPProxy, object)
  await informer.synced()
  const child = decider.decide('HTTPProxy', 'b/web', 0)?.decision?.children.certificate
  return [child?.state, ...(child?.findings ?? []).map(({ reason }) => reason)].join(' ')
}

describe('a certificate', () => {
  it.each([
    ['cert-manager.io/alt-names', 'shop.example.com'],
    ['cert-manager.io/alt-names', 'x.example.com, Shop.example.com'],
    ['cert-manager.io/alt-names', '*.example.com'],
    ['cert-manager.io/common-name', 'shop.example.com'],
  ])('is not written with the host of another namespace in %s: %s', async (key, value) => {
    expect(await certificateOf({ [key]: value })).toBe('held ClaimHeldByOther')
  })

  it('may have names that no source claims', async () => {
    expect(await certificateOf({ 'cert-manager.io/alt-names': 'free.example.com, *.web.example.com' })).toBe('wanted')
  })

  it('has only names that are granted to the namespace', async () => {
    const grants = [{ namespace: 'b', domains: ['web.example.com'] }]
    expect(await certificateOf({}, grants)).toBe('wanted')
    expect(await certificateOf({ 'cert-manager.io/alt-names': 'free.example.com' }, grants)).toBe('held NameNotGranted')
  })
})

it('a source that may not use a host does not hold it up for the namespace that may', async () => {
  const cluster = memoryCluster()
  const grants = [{ namespace: 'a', domains: ['shop.example.com'] }]
  const squatter = httpProxy(named('b', 'web'), withHost('shop.example.com'))
  squatter.metadata.creationTimestamp = '2020-01-01T00:00:00Z'
  const decider = createSourceDecider(cluster.informers, { ...settings, grants })
  const informer = cluster.informers.informer(HTTPProxy)
  for (const object of [victim, squatter]) cluster.put(HTTPProxy, object)
  await informer.synced()
  const reasons = (key: string) => decider.decide('HTTPProxy', key, 0)?.findings.map(({ reason }) => reason) ?? []
  expect(reasons('b/web')).toContain('NameNotGranted')
  expect(reasons('a/shop')).not.toContain('ClaimHeldByOther')
})
