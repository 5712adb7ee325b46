import { manager } from '@seamark/kube'
import { memoryCluster } from '@seamark/kube/testing'
import { afterEach, expect, it } from 'vitest'
import { DomainVerification } from '../../api/domain-verification.ts'
import { setUpDomains } from './domain-controller.ts'

const stopping = new AbortController()
let running: Promise<unknown> = Promise.resolve()
afterEach(async () => {
  stopping.abort()
  await running
})

it('a domain that is there at the start gets its token once the process may write, not at a later retry', async () => {
  const cluster = memoryCluster()
  cluster.put(DomainVerification, {
    metadata: { namespace: 'shop', name: 'example' },
    spec: { domain: 'example.com' },
  })
  let isRead = false
  let read: () => void = () => undefined
  const mayWrite = new Promise<void>((resolve) => (read = resolve))
  let waiting: () => void = () => undefined
  const isWaiting = new Promise<void>((resolve) => (waiting = resolve))
  const mgr = await manager({ cluster, fieldManager: 'test', log: cluster.log, grace: '2s' })
  setUpDomains(mgr, {
    lookupTxt: async () => [],
    isWriting: () => {
      if (!isRead) waiting()
      return isRead
    },
    untilMayWrite: () => {
      waiting()
      return mayWrite
    },
  })
  running = mgr.run(stopping.signal).catch((error: unknown) => error)
  await isWaiting
  isRead = true
  read()
  // The retry while paused is longer.
  await expect
    .poll(() => cluster.informers.get(DomainVerification, 'shop/example')?.status?.token, { timeout: 5_000 })
    .toMatch(/^[0-9a-f]{32}$/)
})
