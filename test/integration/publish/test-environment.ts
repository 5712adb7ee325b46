/**
 * An API server with the kinds publish touches, embedded or real, and what the scenarios do with it: make objects, wait for
 * others, count requests. The CRDs are the upstream ones where `../shared/crds` is there, else our own small ones.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ApiServer } from '@seamark/apiserver'
import {
  type Client,
  type Clock,
  type Cluster,
  configFromText,
  connect,
  CustomResourceDefinition,
  Namespace,
  Service,
  systemClock,
} from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { ControlPlane } from '@seamark/kube/testing'
import { ingressRouteCrd, playgroundCrds } from '@seamark/operator'
import { parseAllDocuments } from 'yaml'
import { needs } from '@seamark/kit'
import { startEmbeddedServer } from '../apiserver/embedded-server.ts'

const upstream = join(import.meta.dirname, '../../../../shared/crds')
const cache = join(import.meta.dirname, '../../../node_modules/.cache/seamark-crds')
/** Said in the title of every suite, so that a run without the upstream schemas is visible. */
export const crdsInUse = existsSync(upstream) ? 'upstream CRDs' : 'own CRDs (../shared/crds is absent)'

export function crds(): object[] {
  if (!existsSync(upstream)) return playgroundCrds()
  const files = readdirSync(upstream).filter((file) => file.endsWith('.yaml'))
  const texts = files.map((file) => readFileSync(join(upstream, file), 'utf8'))
  return [...parsed(texts), ingressRouteCrd()]
}

/** What the texts hold. A megabyte of YAML takes seconds to parse, which each test file would do for each of its servers. */
function parsed(texts: readonly string[]): object[] {
  const hash = createHash('sha256').update(texts.join('\0')).digest('hex')
  const file = join(cache, `${hash}.json`)
  if (!existsSync(file)) {
    const documents = texts.flatMap((text) =>
      parseAllDocuments(text).map((document) => document.toJS() as object | null),
    )
    mkdirSync(cache, { recursive: true })
    // Replaced as a whole: another test file may read it at the same time.
    const draft = `${file}.${process.pid}`
    writeFileSync(draft, JSON.stringify(documents.filter((document) => document !== null)))
    renameSync(draft, file)
  }
  return JSON.parse(readFileSync(file, 'utf8')) as object[]
}

export interface Writes {
  /** Requests other than GET, leases and events included. */
  count: number
}

export interface RunningApp extends AsyncDisposable {
  readonly writes: Writes
  stop(): Promise<void>
}

/** What a program gets from the environment it runs in, beside its cluster. */
interface Surroundings {
  readonly clock: Clock
  /** In [0, 1). */
  readonly random: () => number
  /** Reaches further clusters. */
  readonly connect: typeof connect
  /** Calls a service outside the cluster; a simulation lets faults happen here. */
  readonly call: <T>(call: { readonly isWrite: boolean; readonly send: () => Promise<T> }) => Promise<T>
}

/** A program under test: runs on the cluster it is given until the signal. */
type Program = (cluster: Cluster, surroundings: Surroundings, signal: AbortSignal) => Promise<void>

/** A cluster of a user, to be registered with the one under test. */
export interface UserCluster {
  readonly client: Client
  readonly kubeconfig: string
  readonly stop: () => Promise<void>
}

/** How waiting works: on a server in real time, in a simulation on its virtual clock, which advances while a test waits. */
export interface Waiting {
  now(): number
  pass(ms: number): Promise<void>
  /** How long anything may take to come about. */
  readonly limitMs: number
  /** Between two looks. */
  readonly pollMs: number
  /** Only where waiting long enough costs nothing: after it nothing more comes by itself. */
  readonly settle?: () => Promise<void>
}

export interface TestEnvironment extends AsyncDisposable {
  readonly name: string
  /** Of an administrator. */
  readonly kubeconfig: string
  readonly client: Client
  /** Only on the embedded server. */
  readonly server: ApiServer | undefined
  readonly waiting: Waiting
  /** False where faults make a program send requests again: what it wrote is then judged by the outcome alone. */
  readonly isCounting: boolean
  /** A cluster whose writes are counted. */
  connect(fieldManager: string): { cluster: Cluster; writes: Writes }
  /** Runs a program on such a cluster. */
  launch(fieldManager: string, program: Program): RunningApp
  userCluster(name: string): Promise<UserCluster>
  /** Kubeconfig of a user without any right but those RBAC objects give. */
  userKubeconfig(name: string, groups?: string[]): Promise<string>
}

export interface EnvironmentKind {
  readonly name: string
  readonly isMissing: boolean
  readonly start: (options?: { crds?: object[] }) => Promise<TestEnvironment>
}

export async function startEmbedded({
  crds: definitions = crds(),
}: { crds?: object[] } = {}): Promise<TestEnvironment> {
  const embedded = await startEmbeddedServer()
  return makeEnvironment('embedded', embedded.kubeconfig, {
    server: embedded.server,
    definitions,
    stop: async () => embedded.stop(),
    userKubeconfig: async (name, groups = []) => embedded.userKubeconfig(name, groups),
  })
}

async function startReal({ crds: definitions = crds() }: { crds?: object[] } = {}): Promise<TestEnvironment> {
  const plane = await ControlPlane.start({ crds: definitions })
  return makeEnvironment('kube-apiserver', plane.kubeconfig(), {
    server: undefined,
    definitions: [],
    stop: async () => plane.stop(),
    userKubeconfig: async (name, groups = []) => plane.kubeconfig(await plane.addUser(name, groups)),
  })
}

const realTime: Waiting = {
  now: () => Date.now(),
  pass: async (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  // Only a failure takes this long: machines that run tests are busy.
  limitMs: 60_000,
  pollMs: 20,
}

export const environmentKinds: readonly EnvironmentKind[] = [
  { name: 'embedded', isMissing: false, start: startEmbedded },
  { name: 'kube-apiserver', isMissing: !needs('kube-apiserver', 'etcd'), start: startReal },
]

interface Parts {
  server: ApiServer | undefined
  definitions: object[]
  stop: () => Promise<void>
  userKubeconfig: TestEnvironment['userKubeconfig']
}

async function makeEnvironment(name: string, kubeconfig: string, parts: Parts): Promise<TestEnvironment> {
  const clusters: Cluster[] = []
  const config = configFromText(kubeconfig)
  const admin = connect(config, { name: 'admin', fieldManager: 'test-user' })
  clusters.push(admin)
  const environment: TestEnvironment = {
    name,
    kubeconfig,
    client: admin.client,
    server: parts.server,
    waiting: realTime,
    isCounting: true,
    connect(fieldManager) {
      const writes: Writes = { count: 0 }
      const cluster = countWrites(connect(config, { fieldManager }), writes)
      clusters.push(cluster)
      return { cluster, writes }
    },
    launch(fieldManager, program) {
      const { cluster, writes } = environment.connect(fieldManager)
      const controller = new AbortController()
      const done = program(
        cluster,
        { clock: systemClock, random: Math.random, connect, call: async ({ send }) => send() },
        controller.signal,
      )
      let failure: unknown
      done.catch((error: unknown) => (failure = error))
      const stop = async (): Promise<void> => {
        controller.abort()
        await done
        await cluster.close()
        if (failure !== undefined) throw failure
      }
      return { writes, stop, [Symbol.asyncDispose]: stop }
    },
    userKubeconfig: parts.userKubeconfig,
    userCluster: startUserCluster,
    async [Symbol.asyncDispose]() {
      await Promise.all(clusters.map(async (cluster) => cluster.close()))
      await parts.stop()
    },
  }
  await Promise.all(parts.definitions.map(async (definition) => install(environment.client, definition as Obj)))
  return environment
}

async function startUserCluster(): Promise<UserCluster> {
  const embedded = await startEmbeddedServer()
  const { kubeconfig } = embedded
  const cluster = connect(configFromText(kubeconfig))
  let isStopped = false
  return {
    client: cluster.client,
    kubeconfig,
    async stop() {
      if (isStopped) return
      isStopped = true
      await cluster.close()
      await embedded.stop()
    },
  }
}

/** Counts writes when they are sent: another client can see the object before the response has arrived. */
function countWrites(cluster: Cluster, writes: Writes): Cluster {
  const guardWrites = cluster.guardWrites.bind(cluster)
  cluster.guardWrites = (check) => {
    guardWrites((write) => {
      check(write)
      writes.count++
    })
  }
  cluster.guardWrites(() => undefined)
  return cluster
}

/** Counts writes when they are answered. */
export function counting(writes: Writes): { request(exchange: { method: string }): void } {
  return {
    request({ method }) {
      if (method !== 'GET') writes.count++
    },
  }
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

/** Polls until the value is there and `isRight`; the error contains what was last seen. */
export async function eventually<T>(
  what: string,
  read: () => Promise<T | undefined>,
  isRight: (value: T) => boolean = () => true,
  timeoutMs?: number,
  waiting: Waiting = realTime,
): Promise<T> {
  const limitMs = timeoutMs ?? waiting.limitMs
  const deadline = waiting.now() + limitMs
  for (;;) {
    const value = await read()
    if (value !== undefined && isRight(value)) return value
    if (waiting.now() > deadline)
      throw new Error(`${what}: not within ${limitMs} ms; last seen ${JSON.stringify(value)}`)
    await waiting.pass(waiting.pollMs)
  }
}
