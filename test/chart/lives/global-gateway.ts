import { Ingress, IngressClass, Service } from '@seamark/kube'
import { Cluster, GlobalIngressPolicy } from '@seamark/operator'
import type { ManagerProcess } from '../manager.ts'
import { ask } from '../rollout/pod.ts'
import {
  eventually,
  exists,
  ingressSpec,
  isGone,
  type Life,
  type LifeWorld,
  LIMIT_MS,
  type MemberCluster,
  put,
  putStatus,
} from './life.ts'

const CLUSTER = 'eu2'

/** The data plane in front of the members of a fleet: it follows the roots that the fleet places. */
export function globalGateway(member: MemberCluster): Life {
  /** With what an ingress controller of the member does. */
  const root = async (world: LifeWorld, name: string): Promise<void> => {
    const { space } = world
    await put(world, Ingress, {
      metadata: { namespace: space, name },
      spec: ingressSpec(`${name}.global.test`, { ingressClassName: 'global' }),
    })
    await exists(member, Ingress, `${space}/${name}`)
    await putStatus(member, Ingress, `${space}/${name}`, { loadBalancer: { ingress: [{ ip: '127.0.0.1' }] } })
  }
  return {
    parts: ['gateway.global'],
    values: () => ({
      config: {
        gateway: { enabled: true, mode: 'global' },
        fleet: { enabled: true, answeredElsewhere: true, verifyDns: false },
      },
      gateway: { dataPlane: 'built-in' },
    }),
    flags: () => ['--gateway-http-listen', '127.0.0.1:0', '--gateway-https-listen', '127.0.0.1:0'],
    async prepare(world) {
      const { space, home } = world
      await put(world, IngressClass, { metadata: { name: 'global' }, spec: { controller: 'seamark.io/global' } })
      await member.namespace(space)
      await put(member, Service, { metadata: { namespace: space, name: 'web' }, spec: { ports: [{ port: 80 }] } })
      await member.register(world, CLUSTER, 'seamark-fleet')
      await put(world, Cluster, { metadata: { name: CLUSTER }, spec: {} })
      await put(world, GlobalIngressPolicy, {
        metadata: { namespace: home, name: 'default' },
        spec: {
          placement: { minClusters: 1 },
          migration: { drainSeconds: 1, minHoldSeconds: 1 },
          traffic: { ttlSeconds: 1 },
        },
      })
    },
    async start(world, replicas) {
      await root(world, 'one')
      for (const replica of replicas) await isServed(replica, 'one.global.test')
    },
    change: async (world) => root(world, 'two'),
    async takeOver(world, replicas) {
      await root(world, 'late')
      for (const replica of replicas.slice(1))
        for (const name of ['two', 'late']) await isServed(replica, `${name}.global.test`)
    },
    async remove(world) {
      const { client, space } = world
      const keys = ['one', 'two', 'late'].map((name) => `${space}/${name}`)
      for (const key of keys) await client.delete(Ingress, key)
      for (const key of keys) await isGone(world, Ingress, key)
      await client.delete(Cluster, CLUSTER)
      await isGone(world, Cluster, CLUSTER)
    },
  }
}

/** Nothing listens on the member: a host that is known is answered with 503, another one with 404. */
async function isServed({ log }: ManagerProcess, host: string): Promise<void> {
  const port = Number(/^gateway 127\.0\.0\.1:(\d+)/m.exec(log)?.[1] ?? 0)
  await eventually(
    `an answer for ${host}`,
    async () => ask({ host: '127.0.0.1', port }, '/', host),
    (answer) => answer?.status === 503,
    LIMIT_MS,
  )
}
