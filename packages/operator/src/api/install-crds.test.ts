import { createHash } from 'node:crypto'
import { CustomResourceDefinition } from '@seamark/kube'
import { memoryCluster } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { loadBalancerCrds } from './dns-load-balancer-crds.ts'
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

  it('has a new revision when a schema changes: increase REVISION in dns-load-balancer-crds.ts, then this digest', () => {
    const digest = createHash('sha256').update(JSON.stringify(loadBalancerCrds())).digest('hex').slice(0, 16)
    expect(digest).toBe('071ae12f1ee68961')
  })
})
