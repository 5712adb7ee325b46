import { type Cluster, ConfigMap, Lease } from '@seamark/kube'
import { expect, it } from 'vitest'
import { fakeCluster } from './cluster-fixture.ts'
import { gateCluster, WriteRefused } from './write-gate.ts'

const configMap = { metadata: { name: 'a', namespace: 'b' } }

it('every verb that writes asks the gate, the Lease and reads do not', async () => {
  const cluster = fakeCluster()
  cluster.put(ConfigMap, configMap)
  cluster.put(Lease, configMap)
  let isOpen = false
  const { client } = gateCluster(cluster as unknown as Cluster, () => {
    if (!isOpen) throw new WriteRefused('PAUSED', 'paused')
  })
  const writes = [
    async () => client.create(ConfigMap, configMap),
    async () => client.update(ConfigMap, configMap),
    async () => client.updateStatus(ConfigMap, configMap),
    async () => client.apply(ConfigMap, configMap),
    async () => client.patch(ConfigMap, 'b/a', 'merge', {}),
    async () => client.delete(ConfigMap, 'b/a'),
    async () => client.deleteCollection(ConfigMap, {}),
    async () => client.request({ method: 'POST', path: '/x' }),
  ]
  for (const write of writes) await expect(write()).rejects.toBeInstanceOf(WriteRefused)
  expect(cluster.requests).toEqual([])
  expect((await client.get(ConfigMap, 'b/a')).metadata.name).toBe('a')
  await client.patch(Lease, 'b/a', 'merge', {})
  isOpen = true
  await client.patch(ConfigMap, 'b/a', 'merge', {})
  expect(cluster.requests.map(({ verb }) => verb)).toEqual(['get', 'patch', 'patch'])
})
