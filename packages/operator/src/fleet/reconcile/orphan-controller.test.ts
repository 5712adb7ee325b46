import { manager } from '@seamark/kube'
import { memoryCluster } from '@seamark/kube/testing'
import { afterEach, expect, it } from 'vitest'
import { GlobalIngress } from '../../api/global-ingress.ts'
import { setUpOrphans } from './orphan-controller.ts'

const stopping = new AbortController()
let running: Promise<unknown> = Promise.resolve()
afterEach(async () => {
  stopping.abort()
  await running
})

it('a GlobalIngress without its root that is there at the start is torn down once the process may write', async () => {
  const cluster = memoryCluster()
  const rootRef = { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', name: 'shop', uid: 'gone' }
  cluster.put(GlobalIngress, { metadata: { namespace: 'shop', name: 'shop' }, spec: { rootRef } } as GlobalIngress)
  let isRead = false
  let read: () => void = () => undefined
  const mayWrite = new Promise<void>((resolve) => (read = resolve))
  let waiting: () => void = () => undefined
  const isWaiting = new Promise<void>((resolve) => (waiting = resolve))
  const torn: string[] = []
  const mgr = await manager({ cluster, fieldManager: 'test', log: cluster.log, grace: '2s' })
  setUpOrphans(mgr, {
    teardown: {
      global: async (uid) => {
        torn.push(uid)
      },
    },
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
  await expect.poll(() => torn, { timeout: 5_000 }).toEqual(['gone'])
})
