/**
 * W01–W16: wildcards that follow the nodes of registered clusters. wildcard-scenarios.test.ts runs every one with the
 * embedded and with a real API server as hub, the simulation with everything that can go wrong.
 */
import { Node, Secret } from '@seamark/kube'
import { DNSEndpoint } from '@seamark/operator'
import { expect } from 'vitest'
import { addNode, setReady, type WildcardBench } from './bench.ts'

export interface WildcardScenario {
  readonly title: string
  readonly run: (bench: WildcardBench) => Promise<void>
}

const wild = '*.fra1.clusters.example.com 60 A'
const all = `${wild} 192.0.2.1,192.0.2.2,192.0.2.3`

/** What is published for `fra1` is not written again, also when its Secret changes. */
async function expectUnchanged(bench: WildcardBench, { uid, generation }: DNSEndpoint['metadata']): Promise<void> {
  await bench.environment.client.patch(Secret, 'manager/fra1', 'merge', {
    metadata: { annotations: { touched: 'yes' } },
  })
  await bench.decided()
  const kept = await bench.read('fra1')
  expect([kept?.metadata.uid, kept?.metadata.generation]).toEqual([uid, generation])
}

export const wildcardScenarios: readonly WildcardScenario[] = [
  {
    title: 'W01, W15: three ready nodes are three sorted targets; owner, manager and name are right',
    async run(bench) {
      const cluster = await bench.three()
      await using _app = bench.run({ zone: 'Clusters.Example.com.' })
      await bench.register('fra1', cluster)
      const object = await bench.expectLines('fra1', all)
      const secret = await bench.environment.client.get(Secret, 'manager/fra1')
      expect(object.metadata.ownerReferences).toMatchObject([
        { kind: 'Secret', name: 'fra1', uid: secret.metadata.uid, controller: true },
      ])
      expect(object.metadata.managedFields?.map((entry) => entry.manager)).toEqual(['seamark-wildcard'])
    },
  },
  {
    title: 'W02, W03, W04: a node that is not ready leaves after the delay; a shorter flap writes nothing',
    async run(bench) {
      const cluster = await bench.three()
      await using _app = bench.run({ removalDelayMs: 1_500 })
      await bench.register('fra1', cluster)
      const before = await bench.expectLines('fra1', all)
      await setReady(cluster.client, 'a', 'False')
      await addNode(cluster.client, 'd', { external: ['192.0.2.4'] })
      const grown = await bench.expectLines('fra1', `${all},192.0.2.4`)
      await setReady(cluster.client, 'a', 'True')
      await setReady(cluster.client, 'b', 'Unknown')
      const shrunk = await bench.expectLines('fra1', `${wild} 192.0.2.1,192.0.2.3,192.0.2.4`)
      if (bench.environment.isCounting)
        expect([before, grown, shrunk].map((object) => object.metadata.generation)).toEqual([1, 2, 3])
    },
  },
  {
    title: 'W05: a cordoned node leaves at once, unless the switch keeps it',
    async run(bench) {
      const cluster = await bench.three()
      {
        await using _app = bench.run()
        await bench.register('fra1', cluster)
        await cluster.client.patch(Node, 'b', 'merge', { spec: { unschedulable: true } })
        await bench.expectLines('fra1', `${wild} 192.0.2.1,192.0.2.3`)
      }
      await using _app = bench.run({ excludeUnschedulable: false })
      await bench.expectLines('fra1', all)
    },
  },
  {
    title: 'W06, W07, W10: internal addresses by permission, both families, equal ones once',
    async run(bench) {
      const cluster = await bench.userCluster()
      await addNode(cluster.client, 'a', { external: ['192.0.2.1', '2001:db8::1'], internal: ['10.0.0.1'] })
      await addNode(cluster.client, 'b', { internal: ['10.0.0.2'] })
      await addNode(cluster.client, 'c', { external: ['192.0.2.1'] })
      {
        await using _app = bench.run()
        await bench.register('fra1', cluster)
        await bench.expectLines('fra1', `${wild} 10.0.0.2,192.0.2.1; *.fra1.clusters.example.com 60 AAAA 2001:db8::1`)
      }
      await using _app = bench.run({ allowInternal: false })
      await bench.expectLines('fra1', `${wild} 192.0.2.1; *.fra1.clusters.example.com 60 AAAA 2001:db8::1`)
    },
  },
  {
    title: 'W08, W09: a deleted node leaves at once; the last one lost keeps the answer',
    async run(bench) {
      const cluster = await bench.three()
      await using _app = bench.run({ removalDelayMs: 100 })
      await bench.register('fra1', cluster)
      await bench.expectLines('fra1', all)
      await cluster.client.delete(Node, 'a')
      await cluster.client.delete(Node, 'b')
      const last = await bench.expectLines('fra1', `${wild} 192.0.2.3`)
      await setReady(cluster.client, 'c', 'False')
      await addNode(cluster.client, 'slow', { ready: 'False', external: ['192.0.2.9'] })
      await bench.reported('fra1', 'NoReadyNodes')
      const kept = await bench.read('fra1')
      expect([kept?.spec, kept?.metadata.generation]).toEqual([last.spec, last.metadata.generation])
    },
  },
  {
    title: 'W11, W13: a restart writes nothing; another selector is followed at once',
    async run(bench) {
      const cluster = await bench.userCluster()
      await addNode(cluster.client, 'a', { external: ['192.0.2.1'], labels: { role: 'router' } })
      await addNode(cluster.client, 'b', { external: ['192.0.2.2'] })
      let version: string | undefined
      {
        await using _app = bench.run()
        await bench.register('fra1', cluster)
        version = (await bench.expectLines('fra1', `${wild} 192.0.2.1,192.0.2.2`)).metadata.resourceVersion
      }
      {
        await using again = bench.run()
        await bench.decided()
        if (bench.environment.isCounting) expect(again.writes.count).toBe(bench.decidedWrites)
        expect((await bench.read('fra1'))?.metadata.resourceVersion).toBe(version)
      }
      await using _app = bench.run({ nodeSelector: 'role=router' })
      await bench.expectLines('fra1', `${wild} 192.0.2.1`)
    },
  },
  {
    title: 'W12, W14: two clusters are two objects without cross-talk; the zone may be the cluster’s own',
    async run(bench) {
      const [one, two] = [await bench.three('one'), await bench.userCluster('two')]
      await addNode(two.client, 'x', { external: ['198.51.100.1'] })
      await using _app = bench.run()
      await bench.register('fra1', one)
      await bench.register('iad1', two, { 'seamark.io/zone': 'us.example.org' })
      await bench.expectLines('fra1', all)
      const other = await bench.expectLines('iad1', '*.iad1.us.example.org 60 A 198.51.100.1')
      await one.client.delete(Node, 'a')
      await bench.expectLines('fra1', `${wild} 192.0.2.2,192.0.2.3`)
      expect((await bench.read('iad1'))?.metadata.resourceVersion).toBe(other.metadata.resourceVersion)
      await bench.environment.client.delete(Secret, 'manager/iad1')
      // Garbage collection is the server's; a real kube-apiserver alone has no collector, so only the reference is checked there.
      expect(other.metadata.ownerReferences).toMatchObject([{ kind: 'Secret', name: 'iad1' }])
      if (bench.environment.server === undefined) return
      await bench.eventually('the wildcard to go', async () =>
        (await bench.read('iad1')) === undefined ? true : undefined,
      )
    },
  },
  {
    title: 'W16: a manual edit is reverted',
    async run(bench) {
      const cluster = await bench.three()
      await using _app = bench.run()
      await bench.register('fra1', cluster)
      await bench.expectLines('fra1', all)
      await bench.environment.client.patch(DNSEndpoint, 'manager/fra1-wildcard', 'merge', { spec: { endpoints: [] } })
      await bench.expectLines('fra1', all)
    },
  },
  {
    title: 'an unreachable cluster and a hostile kubeconfig hold what is published',
    async run(bench) {
      const cluster = await bench.three()
      await using _app = bench.run()
      await bench.register('fra1', cluster)
      const { metadata } = await bench.expectLines('fra1', all)
      const users = [{ name: 'a', user: { exec: { command: 'sh' } } }]
      await bench.register('evil', { kubeconfig: JSON.stringify({ apiVersion: 'v1', kind: 'Config', users }) })
      await cluster.stop()
      await expectUnchanged(bench, metadata)
      expect(await bench.read('evil')).toBeUndefined()
    },
  },
  {
    title: 'a cluster that is lost keeps its wildcard, also where one without nodes would lose it',
    async run(bench) {
      const cluster = await bench.three()
      await using _app = bench.run({ onEmpty: 'delete' })
      await bench.register('fra1', cluster)
      const { metadata } = await bench.expectLines('fra1', all)
      await cluster.stop()
      await expectUnchanged(bench, metadata)
    },
  },
  {
    title: 'the local cluster has a wildcard by name, and the apex when asked',
    async run(bench) {
      await addNode(bench.environment.client, 'local-node', { external: ['203.0.113.7'] })
      {
        await using _app = bench.run({ localCluster: 'hub', apex: true })
        await bench.expectLines(
          'hub',
          '*.hub.clusters.example.com 60 A 203.0.113.7; hub.clusters.example.com 60 A 203.0.113.7',
        )
      }
      await bench.environment.client.delete(Node, 'local-node')
    },
  },
]
