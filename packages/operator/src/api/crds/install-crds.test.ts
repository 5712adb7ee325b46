import { createHash } from 'node:crypto'
import { CustomResourceDefinition } from '@seamark/kube'
import { memoryCluster } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { keepStoredVersions, loadBalancerCrds } from './dns-load-balancer-crds.ts'
import { CRD_REVISION_ANNOTATION, decideCrd, installCrds } from './install-crds.ts'

const definition = (revision?: string): CustomResourceDefinition => {
  const [first] = loadBalancerCrds()
  if (first === undefined) throw new Error('there is no CRD')
  const { annotations: _, ...metadata } = first.metadata
  return {
    ...first,
    metadata: { ...metadata, ...(revision !== undefined && { annotations: { [CRD_REVISION_ANNOTATION]: revision } }) },
  }
}

describe('installing CRDs', () => {
  it.each([
    ['absent', undefined, 'create'],
    ['of the original, without a revision', definition(), 'update'],
    ['older', definition('1'), 'update'],
    ['equal', definition('2'), 'keep'],
    ['newer', definition('3'), 'keep'],
    ['with an unreadable revision', definition('many'), 'update'],
  ] as const)('a CRD that is %s', (_name, existing, action) => {
    expect(decideCrd(existing, definition('2'))).toBe(action)
  })

  it('writes absent ones once', async () => {
    const { client } = memoryCluster()
    const { signal } = new AbortController()
    const written = await installCrds(client, loadBalancerCrds(), signal)
    expect(written.map(({ action }) => action)).toEqual(['create', 'create', 'create'])
    expect(await installCrds(client, loadBalancerCrds(), signal)).toEqual([])
    expect(await client.find(CustomResourceDefinition, 'dnsproviders.loadbalancer.gardener.cloud')).toBeDefined()
  })

  it.each([
    ['v1beta1 alone, and no webhook here', undefined, undefined, 'keep'],
    ['v1beta1 alone, and a webhook here', undefined, 'https://a.example.com/convert', 'update'],
    ['the same webhook', 'https://a.example.com/convert', 'https://a.example.com/convert', 'keep'],
    ['another webhook', 'https://a.example.com/convert', 'https://b.example.com/convert', 'update'],
    ['v1 with a webhook, and none here', 'https://a.example.com/convert', undefined, 'keep'],
  ])('a CRD with %s', (_name, theirs, ours, action) => {
    const [existing] = loadBalancerCrds(theirs === undefined ? undefined : { url: theirs, caBundle: 'YQ==' })
    const [own] = loadBalancerCrds(ours === undefined ? undefined : { url: ours })
    if (existing === undefined || own === undefined) throw new Error('there is no CRD')
    expect(decideCrd(existing, keepStoredVersions(own, existing))).toBe(action)
  })

  it('a newer CRD of a process without a webhook keeps v1 and its webhook', () => {
    const url = 'https://a.example.com/convert'
    const [existing] = loadBalancerCrds({ url, caBundle: 'YQ==' })
    const [own] = loadBalancerCrds()
    if (existing === undefined || own === undefined) throw new Error('there is no CRD')
    const older = { ...existing, metadata: { ...existing.metadata, annotations: {} } }
    const adapted = keepStoredVersions(own, older)
    expect(decideCrd(older, adapted)).toBe('update')
    expect(adapted.spec).toEqual(existing.spec)
  })

  it('has a new revision when a schema changes: increase REVISION in dns-load-balancer-crds.ts, then this digest', () => {
    const definitions = [loadBalancerCrds(), loadBalancerCrds({ url: 'https://webhook.example.com/convert' })]
    const digest = createHash('sha256').update(JSON.stringify(definitions)).digest('hex').slice(0, 16)
    expect(digest).toBe('4eae56a3bc1419f8')
  })
})
