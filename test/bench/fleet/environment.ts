/** A hub and members on API servers, with a manager whose fleet is enabled, and roots on them. */
import { createApiServer, newToken, writeKubeconfig } from '@seamark/apiserver'
import {
  type Client,
  configFromText,
  connect,
  CustomResourceDefinition,
  Ingress,
  IngressClass,
  Namespace,
  Secret,
  Service,
} from '@seamark/kube'
import {
  Cluster,
  FleetConfig,
  fleetCrds,
  LeafIngress,
  loadBalancerCrds,
  playgroundCrds,
  runApp,
} from '@seamark/operator'

export const rootOf = (index: number, namespace = 'shop'): Ingress => ({
  metadata: { name: `root-${index}`, namespace, uid: `uid-${index}` },
  spec: {
    ingressClassName: 'global',
    rules: [
      {
        host: `host-${index}.example.com`,
        http: {
          paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
        },
      },
    ],
  },
})

export const seconds = (sinceMs: number): number => (performance.now() - sinceMs) / 1000

interface Server {
  readonly client: Client
  readonly kubeconfig: string
  close(): Promise<void>
}

async function startServer(definitions: readonly object[]): Promise<Server> {
  const token = newToken()
  const tokens = new Map([[token, { name: 'admin', groups: ['system:masters'] }]])
  const server = createApiServer({ anonymous: 'refused', tokens })
  const { url, caPem = '' } = await server.listen({ tls: 'self-signed' })
  const kubeconfig = writeKubeconfig({ server: url, caPem, token })
  const connection = connect(configFromText(kubeconfig), { fieldManager: 'bench' })
  for (const definition of definitions)
    await connection.client.create(CustomResourceDefinition, definition as CustomResourceDefinition)
  return {
    client: connection.client,
    kubeconfig,
    close: async () => {
      await connection.close()
      await server.close()
    },
  }
}

export interface TestEnvironment {
  readonly hub: Server
  readonly members: readonly Server[]
  close(): Promise<void>
}

const POLL_MS = 5

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const start = performance.now()
  while (!(await isSo())) {
    if (seconds(start) > 300) throw new Error(`${what} takes more than 300 s`)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

export async function startEnvironment(
  memberCount: number,
  reach: (kubeconfig: string, index: number) => Promise<string> = async (text) => text,
): Promise<TestEnvironment> {
  const hub = await startServer([...fleetCrds(), ...loadBalancerCrds(), ...playgroundCrds()])
  const members = await Promise.all(Array.from({ length: memberCount }, async () => startServer([])))
  for (const name of ['manager', 'shop']) await hub.client.create(Namespace, { metadata: { name } })
  await hub.client.create(IngressClass, { metadata: { name: 'global' }, spec: { controller: 'seamark.io/global' } })
  const kubeconfigs = await Promise.all(members.map(async ({ kubeconfig }, index) => reach(kubeconfig, index)))
  for (const [index, kubeconfig] of kubeconfigs.entries()) {
    await hub.client.create(Secret, {
      metadata: { namespace: 'manager', name: `m${index}`, labels: { 'seamark.io/cluster': `m${index}` } },
      data: { kubeconfig: Buffer.from(kubeconfig).toString('base64') },
    })
    await hub.client.create(Cluster, { metadata: { name: `m${index}` } } as Cluster)
  }
  for (const { client } of members) {
    await client.create(Namespace, { metadata: { name: 'shop' } })
    await client.create(Service, { metadata: { namespace: 'shop', name: 'web' }, spec: { ports: [{ port: 80 }] } })
  }
  const cluster = connect(configFromText(hub.kubeconfig), { name: 'hub', fieldManager: 'contour-plus' })
  const stopping = new AbortController()
  const running = runApp(
    {
      cluster,
      namespace: 'manager',
      mode: 'enforce',
      allowLoopback: true,
      fleet: { ...FleetConfig.parse({}), dns: false },
    },
    stopping.signal,
  )
  running.catch(() => undefined)
  await until('registration', async () => {
    const { items } = await hub.client.list(Cluster)
    const ready = items.filter(({ status }) =>
      status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True'),
    )
    return ready.length >= memberCount
  })
  return {
    hub,
    members,
    close: async () => {
      stopping.abort()
      await running
      await cluster.close()
      await Promise.all([hub, ...members].map(async (server) => server.close()))
    },
  }
}

/** Creates roots and waits until each has a leaf with a phase on every member. */
export async function addRoots(
  environment: TestEnvironment,
  from: number,
  to: number,
  annotations: Record<string, string> = {},
): Promise<void> {
  for (let index = from; index < to; index += 50)
    await Promise.all(
      Array.from({ length: Math.min(50, to - index) }, async (_, offset) => {
        const { metadata, ...rest } = rootOf(index + offset)
        const { uid: _uid, ...own } = metadata
        await environment.hub.client.create(Ingress, { metadata: { ...own, annotations }, ...rest })
      }),
    )
  await until(`${to} roots`, async () => {
    const { items } = await environment.hub.client.list(Ingress, {
      limit: 500,
      namespace: 'shop',
      fieldSelector: `metadata.name=root-${to - 1}`,
    })
    const isPlanned = items.every(({ metadata }) => metadata.annotations?.['seamark.io/summary'] !== undefined)
    if (!isPlanned || annotations['seamark.io/clusters'] !== undefined) return isPlanned
    const leaves = await environment.hub.client.list(LeafIngress)
    return (
      leaves.items.length >= to * environment.members.length &&
      leaves.items.every(({ status }) => status?.phase === 'Applied')
    )
  })
}

/** From a change of a root to its leaf on each of the members, seconds. */
export async function changeRoot(environment: TestEnvironment, index: number, path: string): Promise<number> {
  const start = performance.now()
  await environment.hub.client.patch(Ingress, `shop/root-${index}`, 'json', [
    { op: 'replace', path: '/spec/rules/0/http/paths/0/path', value: path },
  ])
  await Promise.all(
    environment.members.map(async ({ client }) =>
      until(
        'the change',
        async () => (await client.find(Ingress, `shop/root-${index}`))?.spec?.rules?.[0]?.http?.paths[0]?.path === path,
      ),
    ),
  )
  return seconds(start)
}
