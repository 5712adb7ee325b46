import { Ingress, manager } from '@seamark/kube'
import { memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import { StatusBoard } from './status-board.ts'
import { addStatusWriter } from './status-writer.ts'

const findingOf = (name: string) => ({
  origin: { kind: 'Ingress' as const, namespace: 'web', name },
  reason: 'PathIgnored',
  message: `a path of ${name} is ignored`,
})

it('reports a finding once, and one whose object is not cached yet when it is', async () => {
  const cluster = memoryCluster()
  cluster.put(Ingress, { metadata: { namespace: 'web', name: 'early' } })
  const mgr = await manager({ cluster, fieldManager: 'seamark-gateway', log: cluster.log, grace: '1s' })
  const board = new StatusBoard()
  mgr
    .keyedController('reader')
    .watches(Ingress, () => [])
    .reconcile(async () => undefined)
  addStatusWriter(mgr, board, { controllerName: 'seamark.io/gateway' })
  const notes = (): string[] =>
    cluster.requests
      .filter(({ kind, verb }) => kind.includes('Event') && verb === 'create')
      .map(({ body }) => String((body as { note?: string }).note))
  const stopping = new AbortController()
  const running = mgr.run(stopping.signal)
  board.publish([], [findingOf('early'), findingOf('late')])
  await expect.poll(notes).toEqual(['a path of early is ignored'])
  cluster.put(Ingress, { metadata: { namespace: 'web', name: 'late' } })
  board.publish([], [findingOf('early'), findingOf('late')])
  await expect.poll(notes).toEqual(['a path of early is ignored', 'a path of late is ignored'])
  stopping.abort()
  await running
})
