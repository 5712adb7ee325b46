/** The flow of the fleet from a root on the hub to leaves, merged status and DNS objects, and back to nothing. */
import { needs } from '@seamark/kit'
import { Ingress } from '@seamark/kube'
import {
  Cluster,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  GlobalIngress,
  HostClaim,
  LeafIngress,
} from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { FleetWorld, patience, root, startEmbedded, startReal } from './world.ts'

const SERVERS = [
  { name: 'embedded', start: startEmbedded, isMissing: false },
  { name: 'kube-apiserver', start: startReal, isMissing: !needs('kube-apiserver', 'etcd') },
]

describe.each(SERVERS)('the fleet on $name', ({ start, isMissing }) => {
  it.skipIf(isMissing)(
    'places a root on its clusters, merges their status, and removes everything with the root',
    async () => {
      await using world = await FleetWorld.start(['eu1', 'us1'], start)
      const { client } = world.hub
      for (const name of ['eu1', 'us1']) {
        await world.register(name)
        await world.deploy(name)
      }
      const app = world.run()
      const ready = async () =>
        (await client.list(Cluster)).items.map(
          ({ metadata, status }) =>
            `${metadata.name} ${status?.conditions?.find(({ type }) => type === 'Ready')?.status}`,
        )
      await expect.poll(ready, patience).toEqual(['eu1 True', 'us1 True'])

      await client.create(Ingress, root())
      await world.admit('eu1', 'shop/shop', '192.0.2.10', '192.0.2.9')
      await world.admit('us1', 'shop/shop', '192.0.2.20')
      const leaf = await world.member('eu1').client.get(Ingress, 'shop/shop')
      expect(leaf.spec?.ingressClassName).toBeUndefined()
      expect(leaf.metadata.labels).toMatchObject({ 'seamark.io/managed': 'true' })
      const addresses = async () => (await client.get(Ingress, 'shop/shop')).status?.loadBalancer?.ingress
      await expect.poll(addresses, patience).toEqual([{ ip: '192.0.2.9' }, { ip: '192.0.2.10' }, { ip: '192.0.2.20' }])
      const endpoints = async () =>
        (await client.list(DNSLoadBalancerEndpoint)).items.map(({ spec }) => spec.ipaddress ?? '').sort()
      await expect.poll(endpoints, patience).toEqual(['192.0.2.10', '192.0.2.20', '192.0.2.9'])
      for (const name of ['eu1', 'us1']) await world.judge(name, { healthy: true, active: true })
      await expect.poll(async () => world.phases(), patience).toBe('eu1 Active, us1 Active')
      const summary = async () => (await client.get(Ingress, 'shop/shop')).metadata.annotations?.['seamark.io/summary']
      await expect.poll(summary, patience).toBe('ready 2/2')
      expect((await world.global())?.status?.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True')
      await app.stop()

      // A restart on the converged state writes nothing.
      const again = world.run()
      await client.create(Ingress, root('probe', 'probe.example.com'))
      await expect.poll(async () => world.phases('probe'), patience).toBe('eu1 Applied, us1 Applied')
      // The Clusters have more leaves than before.
      const others = again.writes.filter((write) => !/probe|hostclaims|\/clusters\//.test(write))
      expect(others).toEqual([])

      await client.patch(Ingress, 'shop/shop', 'merge', {
        metadata: { annotations: { 'seamark.io/delete': 'Immediate' } },
      })
      await client.delete(Ingress, 'shop/shop')
      await client.delete(Ingress, 'shop/probe')
      await expect.poll(async () => client.find(Ingress, 'shop/shop'), patience).toBeUndefined()
      for (const name of ['eu1', 'us1']) {
        await expect.poll(async () => world.exists(name, Ingress, 'shop/shop'), patience).toBe(false)
        await expect.poll(async () => world.exists(name, Ingress, 'shop/probe'), patience).toBe(false)
      }
      for (const kind of [LeafIngress, GlobalIngress, HostClaim, DNSLoadBalancer, DNSLoadBalancerEndpoint])
        await expect.poll(async () => (await client.list(kind as typeof LeafIngress)).items.length, patience).toBe(0)
    },
  )
})
