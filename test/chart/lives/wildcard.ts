import { Node, Secret } from '@seamark/kube'
import { DNSEndpoint } from '@seamark/operator'
import {
  eventually,
  type Life,
  type LifeWorld,
  LIMIT_MS,
  type MemberCluster,
  published,
  put,
  putStatus,
} from './life.ts'

const FRA1 = '*.fra1.wildcard.test'

async function node({ client }: Pick<LifeWorld, 'client'>, name: string, address: string): Promise<void> {
  await put({ client }, Node, { metadata: { name } })
  await putStatus({ client }, Node, name, {
    addresses: [{ type: 'ExternalIP', address }],
    conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }],
  })
}

export function wildcard(member: MemberCluster): Life {
  const hasTarget = async ({ client, home }: LifeWorld, target: string): Promise<unknown> =>
    eventually(
      `the target ${target}`,
      async () => (await client.list(DNSEndpoint, { namespace: home })).items,
      (items) => items.some(({ spec }) => spec.endpoints.some(({ targets }) => targets.includes(target))),
      LIMIT_MS,
    )
  return {
    parts: ['wildcard', 'wildcard.localCluster'],
    values: () => ({
      config: {
        wildcard: { enabled: true, zone: 'wildcard.test', coalesce: '100ms', localCluster: 'here', onEmpty: 'delete' },
      },
    }),
    async prepare(world) {
      await node(member, 'node-1', '203.0.113.21')
      await node(world, 'hub-1', '203.0.113.31')
      await member.register(world, 'fra1', 'seamark-wildcard')
    },
    async start(world) {
      await published(world, world.home, FRA1)
      await published(world, world.home, '*.here.wildcard.test')
    },
    async change(world) {
      await node(member, 'node-2', '203.0.113.22')
      await node(world, 'hub-2', '203.0.113.32')
      await hasTarget(world, '203.0.113.22')
      await hasTarget(world, '203.0.113.32')
    },
    async takeOver(world) {
      await node(member, 'node-3', '203.0.113.23')
      await hasTarget(world, '203.0.113.23')
    },
    async remove(world) {
      for (const name of ['hub-1', 'hub-2'])
        await world.client.patch(Node, name, 'merge', { spec: { unschedulable: true } })
      await published(world, world.home, '*.here.wildcard.test', false)
      await world.client.delete(Secret, `${world.home}/fra1`)
    },
  }
}
