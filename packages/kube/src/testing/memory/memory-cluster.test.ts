import { expect, it } from 'vitest'
import { ConfigMap } from '../../object/kinds.ts'
import { fakeClock } from '../clock.ts'
import { memoryCluster } from './memory-cluster.ts'

const metadata = { namespace: 'a', name: 'b' }

it('removes what a manager applied and leaves out, and keeps what another manager has', async () => {
  const { client } = memoryCluster()
  await client.apply(ConfigMap, { metadata, data: { own: '1', shared: '1', kept: '1' } }, { fieldManager: 'one' })
  await client.apply(ConfigMap, { metadata, data: { shared: '1', theirs: '1' } }, { fieldManager: 'two' })
  const { data } = await client.apply(ConfigMap, { metadata, data: { kept: '1' } }, { fieldManager: 'one' })
  expect(data).toEqual({ shared: '1', kept: '1', theirs: '1' })
})

it('has the times of its clock', async () => {
  const clock = fakeClock(Date.UTC(2031, 0, 1))
  const { client } = memoryCluster('local', 'test', clock)
  const { metadata: created } = await client.create(ConfigMap, { metadata: { ...metadata, finalizers: ['x/y'] } })
  expect(created.creationTimestamp).toBe('2031-01-01T00:00:00Z')
  await clock.advance(1_000)
  await client.delete(ConfigMap, 'a/b')
  await clock.advance(1_000)
  await client.delete(ConfigMap, 'a/b')
  expect((await client.get(ConfigMap, 'a/b')).metadata).toMatchObject({
    creationTimestamp: '2031-01-01T00:00:00Z',
    deletionTimestamp: '2031-01-01T00:00:01Z',
  })
})
