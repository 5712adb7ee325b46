/**
 * An API server with the kinds publish touches, embedded or real, and what the scenarios do with it: make objects, wait for
 * others, count requests. The CRDs are the upstream ones where `../shared/crds` is there, else our own small ones.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ApiServer } from '@seamark/apiserver'
import {
  type Client,
  type Cluster,
  configFromText,
  connect,
  CustomResourceDefinition,
  Namespace,
  Service,
} from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { ControlPlane } from '@seamark/kube/testing'
import { ingressRouteCrd, playgroundCrds } from '@seamark/operator'
import { parseAllDocuments } from 'yaml'
import { needs } from '@seamark/kit'
import { startEmbeddedServer } from './embedded-server.ts'

const upstream = join(import.meta.dirname, '../../../shared/crds')
/** Said in the title of every suite, so that a run without the upstream schemas is visible. */
export const crdsInUse = existsSync(upstream) ? 'upstream CRDs' : 'own CRDs (../shared/crds is absent)'

export function crds(): object[] {
  if (!existsSync(upstream)) return playgroundCrds()
  const files = readdirSync(upstream).filter((file) => file.endsWith('.yaml'))
  const texts = files.map((file) => readFileSync(join(upstream, file), 'utf8'))
  const documents = texts.flatMap((text) => parseAllDocuments(text).map((document) => document.toJS() as object | null))
  return [...documents.filter((document) => document !== null), ingressRouteCrd()]
}

interface Writes {
  /** Requests other than GET, leases and events included. */
  count: number
}

export interface World extends AsyncDisposable {
  readonly name: string
  /** Of an administrator. */
  readonly kubeconfig: string
  readonly client: Client
  /** Only on the embedded server. */
  readonly server: ApiServer | undefined
  /** A cluster whose writes are counted. */
  connect(fieldManager: string): { cluster: Cluster; writes: Writes }
  /** Kubeconfig of a user without any right but those RBAC objects give. */
  userKubeconfig(name: string, groups?: string[]): Promise<string>
}

export interface WorldKind {
  readonly name: string
  readonly isMissing: boolean
  readonly start: (options?: { crds?: object[] }) => Promise<World>
}

async function startEmbedded({ crds: definitions = crds() }: { crds?: object[] } = {}): Promise<World> {
  const embedded = await startEmbeddedServer()
  return makeWorld('embedded', embedded.kubeconfig, {
    server: embedded.server,
    definitions,
    stop: async () => embedded.stop(),
    userKubeconfig: async () => {
      throw new Error('users of the embedded server are made by its tokens option')
    },
  })
}

async function startReal({ crds: definitions = crds() }: { crds?: object[] } = {}): Promise<World> {
  const plane = await ControlPlane.start({ crds: definitions })
  return makeWorld('kube-apiserver', plane.kubeconfig(), {
    server: undefined,
    definitions: [],
    stop: async () => plane.stop(),
    userKubeconfig: async (name, groups = []) => plane.kubeconfig(await plane.addUser(name, groups)),
  })
}

export const worldKinds: readonly WorldKind[] = [
  { name: 'embedded', isMissing: false, start: startEmbedded },
  { name: 'kube-apiserver', isMissing: !needs('kube-apiserver', 'etcd'), start: startReal },
]

interface Parts {
  server: ApiServer | undefined
  definitions: object[]
  stop: () => Promise<void>
  userKubeconfig: World['userKubeconfig']
}

async function makeWorld(name: string, kubeconfig: string, parts: Parts): Promise<World> {
  const clusters: Cluster[] = []
  const config = configFromText(kubeconfig)
  const admin = connect(config, { name: 'admin', fieldManager: 'test-user' })
  clusters.push(admin)
  const world: World = {
    name,
    kubeconfig,
    client: admin.client,
    server: parts.server,
    connect(fieldManager) {
      const writes: Writes = { count: 0 }
      const cluster = connect(config, {
        fieldManager,
        observer: {
          request({ method }) {
            if (method !== 'GET') writes.count++
          },
        },
      })
      clusters.push(cluster)
      return { cluster, writes }
    },
    userKubeconfig: parts.userKubeconfig,
    async [Symbol.asyncDispose]() {
      await Promise.all(clusters.map(async (cluster) => cluster.close()))
      await parts.stop()
    },
  }
  await Promise.all(parts.definitions.map(async (definition) => install(world.client, definition as Obj)))
  return world
}

async function install(client: Client, definition: Obj): Promise<void> {
  await client.create(CustomResourceDefinition, definition as CustomResourceDefinition)
}

export async function createNamespace(client: Client, name: string): Promise<void> {
  await client.create(Namespace, { metadata: { name } })
}

/** The load balancer of fixture F, with its status. */
export async function createLoadBalancer(
  client: Client,
  key: string,
  ingress: { ip?: string; hostname?: string }[],
): Promise<void> {
  const [namespace = '', name = ''] = key.split('/')
  await client.create(Service, {
    metadata: { namespace, name },
    spec: { type: 'LoadBalancer', ports: [{ port: 443 }] },
  })
  await setAddresses(client, key, ingress)
}

export async function setAddresses(
  client: Client,
  key: string,
  ingress: { ip?: string; hostname?: string }[],
): Promise<void> {
  await client.patch(Service, key, 'merge', { status: { loadBalancer: { ingress } } }, { subresource: 'status' })
}

/** Polls until the value is there and `isRight`; the error tells what was last seen. */
export async function eventually<T>(
  what: string,
  read: () => Promise<T | undefined>,
  isRight: (value: T) => boolean = () => true,
  timeoutMs = 5_000,
): Promise<T> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const value = await read()
    if (value !== undefined && isRight(value)) return value
    if (Date.now() > deadline)
      throw new Error(`${what}: not within ${timeoutMs} ms; last seen ${JSON.stringify(value)}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
