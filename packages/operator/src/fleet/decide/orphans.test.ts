import { expect, it } from 'vitest'
import type { LeafIngress } from '../../api/leaf-ingress.ts'
import { addOrphans } from './orphans.ts'

const leafOf = (name: string): Pick<LeafIngress, 'metadata' | 'spec'> => ({
  metadata: { namespace: 'shop', name: `ingress-${name}--eu1` },
  spec: {
    cluster: 'eu1',
    lifecycle: 'Draining',
    specHash: 'h',
    manifests: [{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: { name, namespace: 'shop' } }],
  },
})

it('the objects of a leaf are recorded once, with the time of the first record', () => {
  const first = addOrphans([], leafOf('web'), '2030-01-01T00:00:00Z')
  expect(first).toEqual([{ kind: 'Ingress', namespace: 'shop', name: 'web', since: '2030-01-01T00:00:00Z' }])
  expect(addOrphans(first, leafOf('web'), '2030-01-01T00:00:09Z')).toEqual(first)
  expect(addOrphans(first, leafOf('api'), '2030-01-01T00:00:09Z').map(({ name }) => name)).toEqual(['web', 'api'])
})
