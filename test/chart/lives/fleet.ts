import { Ingress, IngressClass, type Kind, Secret, Service } from '@seamark/kube'
import {
  Cluster,
  DNSLoadBalancer,
  DomainVerification,
  Gateway,
  GatewayClass,
  GlobalIngress,
  GlobalIngressPolicy,
  HTTPRoute,
  LeafIngress,
  Route,
} from '@seamark/operator'
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

const TLS = 'shop-tls'
const ADDRESS = '203.0.113.41'
const loadBalancer = { ingress: [{ ip: ADDRESS }] }
const ROOTS: readonly (readonly [Kind, string])[] = [
  [Ingress, 'networking.k8s.io/v1'],
  [HTTPRoute, 'gateway.networking.k8s.io/v1'],
  [Route, 'route.openshift.io/v1'],
]

export function fleet(member: MemberCluster): Life {
  const root = async (world: LifeWorld, name: string, host: string, ingressClassName = 'global'): Promise<void> =>
    put(world, Ingress, {
      metadata: { namespace: world.space, name },
      spec: ingressSpec(host, { ingressClassName, tls: [{ hosts: [host], secretName: TLS }] }),
    })
  const route = async (world: LifeWorld, name: string, parent: string): Promise<void> =>
    put(world, HTTPRoute, {
      metadata: { namespace: world.space, name },
      spec: {
        parentRefs: [{ name: parent }],
        hostnames: [`${name}.fleet.test`],
        rules: [{ backendRefs: [{ name: 'web', port: 80 }] }],
      },
    })
  const gateway = async (at: Pick<LifeWorld, 'client'>, world: LifeWorld, name: string, gatewayClassName: string) =>
    put(at, Gateway, {
      metadata: { namespace: world.space, name },
      spec: { gatewayClassName, listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
    })
  /** What an ingress controller of the member would do. */
  const admit = async (world: LifeWorld, name: string): Promise<void> => {
    const key = `${world.space}/${name}`
    await exists(member, Ingress, key)
    await putStatus(member, Ingress, key, { loadBalancer })
  }
  return {
    parts: ['fleet', 'fleet.tlsSecrets'],
    values: () => ({
      config: { fleet: { enabled: true, answeredElsewhere: true, tlsSecrets: true, verifyDns: false } },
    }),
    async prepare(world) {
      const { space, home } = world
      await put(world, IngressClass, { metadata: { name: 'global' }, spec: { controller: 'seamark.io/global' } })
      await put(world, GatewayClass, { metadata: { name: 'global' }, spec: { controllerName: 'seamark.io/global' } })
      await put(world, GatewayClass, { metadata: { name: 'local' }, spec: { controllerName: 'example.com/local' } })
      await gateway(world, world, 'global', 'global')
      await gateway(world, world, 'local', 'local')
      await put(world, Secret, {
        metadata: { namespace: space, name: TLS, labels: { 'seamark.io/sync': 'true' } },
        type: 'kubernetes.io/tls',
        data: { 'tls.crt': 'eA==', 'tls.key': 'eA==' },
      })
      await member.namespace(space)
      await put(member, Service, { metadata: { namespace: space, name: 'web' }, spec: { ports: [{ port: 80 }] } })
      await gateway(member, world, 'local', 'local')
      await putStatus(member, Gateway, `${space}/local`, { addresses: [{ type: 'IPAddress', value: ADDRESS }] })
      await member.register(world, 'eu1', 'seamark-fleet')
      await put(world, Cluster, {
        metadata: { name: 'eu1' },
        spec: {
          ingress: {
            parentRefMap: [{ from: { namespace: space, name: 'global' }, to: { namespace: space, name: 'local' } }],
          },
        },
      })
      await put(world, GlobalIngressPolicy, {
        metadata: { namespace: home, name: 'default' },
        spec: {
          placement: { minClusters: 1 },
          migration: { drainSeconds: 1, minHoldSeconds: 1 },
          traffic: { ttlSeconds: 1 },
        },
      })
      await put(world, GlobalIngressPolicy, {
        metadata: { namespace: space, name: 'shop' },
        spec: {
          targetRefs: [{ group: 'networking.k8s.io', kind: 'Ingress', name: 'shop' }],
          placement: { minClusters: 1 },
          migration: { drainSeconds: 1, minHoldSeconds: 1 },
          traffic: { ttlSeconds: 1 },
        },
      })
    },
    async start(world) {
      const { space } = world
      await put(world, DomainVerification, {
        metadata: { namespace: space, name: 'fleet' },
        spec: { domain: 'verified.test' },
      })
      await root(world, 'shop', 'shop.fleet.test')
      await admit(world, 'shop')
      // A host that two roots share.
      await root(world, 'beside', 'shop.fleet.test')
      await route(world, 'api', 'global')
      await put(world, Route, {
        metadata: { namespace: space, name: 'route', labels: { 'seamark.io/global': 'true' } },
        spec: { host: 'route.fleet.test', to: { kind: 'Service', name: 'web' } },
      })
      await exists(member, HTTPRoute, `${space}/api`)
      await exists(member, Route, `${space}/route`)
      await putStatus(member, Route, `${space}/route`, {
        ingress: [{ host: 'route.fleet.test', conditions: [{ type: 'Admitted', status: 'True' }] }],
      })
      await putStatus(member, HTTPRoute, `${space}/api`, {
        parents: [
          {
            parentRef: { namespace: space, name: 'local' },
            controllerName: 'example.com/local',
            conditions: [
              {
                type: 'Accepted',
                status: 'True',
                reason: 'Accepted',
                message: '',
                lastTransitionTime: '2026-01-01T00:00:00Z',
              },
            ],
          },
        ],
      })
      await exists(member, Secret, `${space}/${TLS}`)
      await exists(world, Ingress, `${space}/shop`, ({ status }) => status?.loadBalancer?.ingress?.length === 1)
      await exists(world, HTTPRoute, `${space}/api`, ({ status }) => (status?.parents?.length ?? 0) > 0)
      await exists(world, DomainVerification, `${space}/fleet`, ({ status }) => status?.token !== undefined)
      for (const token of [DNSLoadBalancer, GlobalIngress, LeafIngress] as readonly Kind[]) await some(world, token)
    },
    async change(world) {
      const { client, space } = world
      await root(world, 'shop', 'changed.fleet.test')
      await exists(member, Ingress, `${space}/shop`, ({ spec }) => spec?.rules?.[0]?.host === 'changed.fleet.test')
      // Roots that are none any more, and policies that are gone.
      await root(world, 'beside', 'shop.fleet.test', 'nginx')
      await isGone(member, Ingress, `${space}/beside`)
      await route(world, 'api', 'local')
      await isGone(member, HTTPRoute, `${space}/api`)
      await client.delete(GlobalIngressPolicy, `${space}/shop`)
      // What is left of a root whose finalizer was removed by force.
      const [summary] = (await client.list(GlobalIngress, { namespace: space })).items
      for (const [{ kind: name }, apiVersion] of ROOTS) {
        await put(world, GlobalIngress, {
          metadata: { namespace: space, name: `left-${name.toLowerCase()}` },
          spec: { ...summary?.spec, rootRef: { apiVersion, kind: name, name: 'left', uid: 'left' }, hosts: [] },
        })
      }
    },
    async takeOver(world) {
      await root(world, 'late', 'late.fleet.test')
      await admit(world, 'late')
    },
    async remove(world) {
      for (const name of ['shop', 'late']) await world.client.delete(Ingress, `${world.space}/${name}`)
      await world.client.delete(Route, `${world.space}/route`)
      await isGone(world, Route, `${world.space}/route`)
      for (const name of ['shop', 'late']) {
        await isGone(member, Ingress, `${world.space}/${name}`)
        await isGone(world, Ingress, `${world.space}/${name}`)
      }
      await isGone(member, Secret, `${world.space}/${TLS}`)
      await world.client.delete(GlobalIngressPolicy, `${world.home}/default`)
      await world.client.delete(Cluster, 'eu1')
      await isGone(world, Cluster, 'eu1')
    },
  }
}

async function some({ client, space }: LifeWorld, token: Kind): Promise<void> {
  await eventually(
    `a ${token.kind} in ${space}`,
    async () => (await client.list(token, { namespace: space })).items,
    (items) => items.length > 0,
    LIMIT_MS,
  )
}
