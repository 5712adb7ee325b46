/**
 * The flow of the fleet from a root on the hub to leaves, merged status and DNS objects, a restart, a foreign object, rotated
 * credentials, a drain, and back to nothing.
 */
import { needs } from '@seamark/kit'
import { Ingress, kind, type Obj, Secret } from '@seamark/kube'
import {
  Cluster,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  GlobalIngress,
  HostClaim,
  LeafIngress,
} from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { FleetEnvironment, POLL_OPTIONS, root, type Server, startEmbedded, startReal } from './test-environment.ts'

const SERVERS = [
  { name: 'embedded', start: startEmbedded, isMissing: false },
  { name: 'kube-apiserver', start: startReal, isMissing: !needs('kube-apiserver', 'etcd') },
]

const ClusterRoleBinding = kind<Obj & { roleRef?: object; subjects?: object[] }>({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
  namespaced: false,
})

/** What is written into the Secret of a member: a user who may do everything until the binding of its name is deleted. */
async function credentialsOf(member: Server, user: string): Promise<Pick<Secret, 'data'>> {
  await member.client.create(ClusterRoleBinding, {
    metadata: { name: user },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
  })
  return { data: { kubeconfig: Buffer.from(await member.userKubeconfig(user)).toString('base64') } }
}

describe.each(SERVERS)('the fleet on $name', ({ start, isMissing }) => {
  it.skipIf(isMissing)(
    'places a root on its clusters, merges their status, drains a cluster, and removes everything with the root',
    async () => {
      await using environment = await FleetEnvironment.start(['eu1', 'us1'], start)
      const { client } = environment.hub
      for (const name of ['eu1', 'us1']) {
        await environment.register(name)
        await environment.deploy(name)
      }
      const us1 = environment.member('us1')
      await client.patch(Secret, 'manager/us1', 'merge', await credentialsOf(us1, 'old'))
      const app = environment.run()
      const ready = async () =>
        (await client.list(Cluster)).items.map(
          ({ metadata, status }) =>
            `${metadata.name} ${status?.conditions?.find(({ type }) => type === 'Ready')?.status}`,
        )
      await expect.poll(ready, POLL_OPTIONS).toEqual(['eu1 True', 'us1 True'])

      const annotations = { 'seamark.io/drain-seconds': '0', 'seamark.io/ttl': '1' }
      await client.create(Ingress, root('shop', 'shop.example.com', { annotations }))
      await environment.admit('eu1', 'shop/shop', '192.0.2.10', '192.0.2.9')
      await environment.admit('us1', 'shop/shop', '192.0.2.20')
      const leaf = await environment.member('eu1').client.get(Ingress, 'shop/shop')
      expect(leaf.spec?.ingressClassName).toBeUndefined()
      expect(leaf.metadata.labels).toMatchObject({ 'seamark.io/managed': 'true' })
      const addresses = async () => (await client.get(Ingress, 'shop/shop')).status?.loadBalancer?.ingress
      await expect
        .poll(addresses, POLL_OPTIONS)
        .toEqual([{ ip: '192.0.2.9' }, { ip: '192.0.2.10' }, { ip: '192.0.2.20' }])
      const endpoints = async () =>
        (await client.list(DNSLoadBalancerEndpoint)).items.map(({ spec }) => spec.ipaddress ?? '').sort()
      await expect.poll(endpoints, POLL_OPTIONS).toEqual(['192.0.2.10', '192.0.2.20', '192.0.2.9'])
      for (const name of ['eu1', 'us1']) await environment.judge(name, { healthy: true, active: true })
      await expect.poll(async () => environment.phases(), POLL_OPTIONS).toBe('eu1 Active, us1 Active')
      const summary = async () => (await client.get(Ingress, 'shop/shop')).metadata.annotations?.['seamark.io/summary']
      await expect.poll(summary, POLL_OPTIONS).toBe('ready 2/2')
      expect((await environment.global())?.status?.conditions?.find(({ type }) => type === 'Ready')?.status).toBe(
        'True',
      )
      await app.stop()

      // A restart on the converged state writes nothing.
      const again = environment.run()
      await client.create(Ingress, root('probe', 'probe.example.com'))
      await expect.poll(async () => environment.phases('probe'), POLL_OPTIONS).toBe('eu1 Applied, us1 Applied')
      // The Clusters have more leaves than before.
      const others = again.writes.filter((write) => !/probe|hostclaims|\/clusters\//.test(write))
      expect(others).toEqual([])

      // An object of another owner is not changed.
      const theirs = root('taken', 'theirs.example.com')
      await us1.client.create(Ingress, { ...theirs, spec: { ...theirs.spec, ingressClassName: 'nginx' } })
      await client.create(
        Ingress,
        root('taken', 'taken.example.com', { annotations: { 'seamark.io/clusters': 'us1' } }),
      )
      const reason = async () => (await client.find(LeafIngress, 'shop/ingress-taken--us1'))?.status?.reason
      await expect.poll(reason, POLL_OPTIONS).toBe('ForeignObject')
      expect((await us1.client.get(Ingress, 'shop/taken')).spec?.ingressClassName).toBe('nginx')

      // The credentials are rotated, and the old ones lose their rights.
      await client.patch(Secret, 'manager/us1', 'merge', await credentialsOf(us1, 'new'))
      await us1.client.delete(ClusterRoleBinding, 'old')
      const path = '/spec/rules/0/http/paths/0/path'
      await client.patch(Ingress, 'shop/shop', 'json', [{ op: 'replace', path, value: '/rotated' }])
      const applied = async () => (await us1.client.get(Ingress, 'shop/shop')).spec?.rules?.[0]?.http?.paths[0]?.path
      await expect.poll(applied, POLL_OPTIONS).toBe('/rotated')
      await expect.poll(ready, POLL_OPTIONS).toEqual(['eu1 True', 'us1 True'])

      // A cluster is drained: out of DNS first, then deleted.
      await client.patch(Cluster, 'us1', 'merge', { spec: { drain: { enabled: true } } })
      await expect.poll(async () => environment.phases(), POLL_OPTIONS).toBe('eu1 Active, us1 Draining')
      expect(await environment.exists('us1', Ingress, 'shop/shop')).toBe(true)
      await environment.judge('us1', { healthy: true, active: false })
      await expect.poll(async () => environment.phases(), POLL_OPTIONS).toBe('eu1 Active')
      expect(await environment.exists('us1', Ingress, 'shop/shop')).toBe(false)
      await expect.poll(addresses, POLL_OPTIONS).toEqual([{ ip: '192.0.2.9' }, { ip: '192.0.2.10' }])

      await client.patch(Ingress, 'shop/shop', 'merge', {
        metadata: { annotations: { 'seamark.io/delete': 'Immediate' } },
      })
      await client.delete(Ingress, 'shop/taken')
      await client.delete(Ingress, 'shop/shop')
      await client.delete(Ingress, 'shop/probe')
      await expect.poll(async () => client.find(Ingress, 'shop/shop'), POLL_OPTIONS).toBeUndefined()
      for (const name of ['eu1', 'us1']) {
        await expect.poll(async () => environment.exists(name, Ingress, 'shop/shop'), POLL_OPTIONS).toBe(false)
        await expect.poll(async () => environment.exists(name, Ingress, 'shop/probe'), POLL_OPTIONS).toBe(false)
      }
      for (const each of [LeafIngress, GlobalIngress, HostClaim, DNSLoadBalancer, DNSLoadBalancerEndpoint])
        await expect
          .poll(async () => (await client.list(each as typeof LeafIngress)).items.length, POLL_OPTIONS)
          .toBe(0)
      expect(await environment.exists('us1', Ingress, 'shop/taken')).toBe(true)
    },
  )
})
