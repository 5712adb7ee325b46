import { memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import { startWithoutPermission } from '../../../testing/write-permission.ts'
import { GlobalIngress } from '../../api/global-ingress.ts'
import { setUpOrphans } from './orphan-controller.ts'

it('a GlobalIngress without its root that is there at the start is torn down once the process may write', async () => {
  const cluster = memoryCluster()
  const rootRef = { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', name: 'shop', uid: 'gone' }
  cluster.put(GlobalIngress, { metadata: { namespace: 'shop', name: 'shop' }, spec: { rootRef } } as GlobalIngress)
  const torn: string[] = []
  const teardown = {
    global: async (uid: string) => {
      torn.push(uid)
    },
  }
  await using process = await startWithoutPermission(cluster, (mgr, permission) =>
    setUpOrphans(mgr, { teardown, ...permission }),
  )
  await process.asked
  expect(torn).toEqual([])
  process.grant()
  await expect.poll(() => torn).toEqual(['gone'])
})
