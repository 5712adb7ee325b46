import { memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import { startWithoutPermission } from '../../../testing/write-permission.ts'
import { DomainVerification } from '../../api/domain-verification.ts'
import { setUpDomains } from './domain-controller.ts'

it('a domain that is there at the start gets its token once the process may write, not at a later retry', async () => {
  const cluster = memoryCluster()
  cluster.put(DomainVerification, {
    metadata: { namespace: 'shop', name: 'example' },
    spec: { domain: 'example.com' },
  })
  await using process = await startWithoutPermission(cluster, (mgr, permission) =>
    setUpDomains(mgr, { lookupTxt: async () => [], ...permission }),
  )
  const token = () => cluster.informers.get(DomainVerification, 'shop/example')?.status?.token
  await process.asked
  expect(token()).toBeUndefined()
  process.grant()
  await expect.poll(token).toMatch(/^[0-9a-f]{32}$/)
})
