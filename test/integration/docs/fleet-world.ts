/**
 * What a reader of docs/fleet.md has before the first command: a kubeconfig with a hub and two members, on the members the
 * Service of the page and an ingress controller, which is played: it gives each Ingress an address on which it listens.
 */
import { createServer, type Server as TcpServer } from 'node:net'
import { readFileSync } from 'node:fs'
import { type Cluster as Connection, configFromText, connect, Ingress, Namespace, Service } from '@seamark/kube'
import { parse } from 'yaml'
import { type Server, type StartServer } from '../fleet/test-environment.ts'

/** Members, and the last part of the address of their ingress controller. */
const MEMBERS = { eu1: 11, us1: 12 } as const

/** Probes of hosts without TLS, where no policy says otherwise. */
const HTTP = 80

/** Whether this process may listen on port 80, as ingress controllers do. */
export function mayListenBelow1024(): boolean {
  const first = readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8')
  return process.getuid?.() === 0 || Number(first) <= HTTP
}

export class FleetWorld implements AsyncDisposable {
  readonly hub: Server
  readonly #members: readonly Member[]

  private constructor(hub: Server, members: readonly Member[]) {
    this.hub = hub
    this.#members = members
  }

  /** `network`: `127.0.N` of the addresses of the ingress controllers, of one test alone; without it there is none. */
  static async start(start: StartServer, network?: string): Promise<FleetWorld> {
    const [hub, ...servers] = await Promise.all([start([]), ...Object.keys(MEMBERS).map(async () => start([]))])
    if (hub === undefined) throw new Error('no hub')
    const members = await Promise.all(
      Object.entries(MEMBERS).map(async ([name, host], index) =>
        Member.start(name, network === undefined ? undefined : `${network}.${host}`, servers[index] as Server),
      ),
    )
    return new FleetWorld(hub, members)
  }

  /** The hub is the current context. */
  kubeconfig(): string {
    const parts = [['hub', this.hub.kubeconfig] as const, ...this.#members.map((m) => [m.name, m.kubeconfig] as const)]
    const read = parts.map(([name, text]) => {
      const { clusters, users } = parse(text) as { clusters: { cluster: object }[]; users: { user: object }[] }
      return { name, cluster: clusters[0]?.cluster ?? {}, user: users[0]?.user ?? {} }
    })
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'hub',
      clusters: read.map(({ name, cluster }) => ({ name, cluster })),
      users: read.map(({ name, user }) => ({ name, user })),
      contexts: read.map(({ name }) => ({ name, context: { cluster: name, user: name } })),
    })
  }

  /** Of a ServiceAccount of the hub, with a token as a pod has one. */
  async accountKubeconfig(namespace: string, name: string): Promise<string> {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`
    const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } }
    const headers = { 'content-type': 'application/json' }
    const { body } = await this.hub.client.request({ method: 'POST', path, headers, body: JSON.stringify(request) })
    const { token } = (JSON.parse(body.toString('utf8')) as { status: { token: string } }).status
    const { clusters } = parse(this.hub.kubeconfig) as { clusters: { cluster: object }[] }
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'hub',
      clusters: [{ name: 'hub', cluster: clusters[0]?.cluster ?? {} }],
      users: [{ name, user: { token } }],
      contexts: [{ name: 'hub', context: { cluster: 'hub', user: name } }],
    })
  }

  memberClient(name: string): Server['client'] {
    const member = this.#members.find((each) => each.name === name)
    if (member === undefined) throw new Error(`no member ${name}`)
    return member.client
  }

  /** Whether the account of the manager may do this on a member. */
  async memberMay(name: string, verb: string, resource: string): Promise<boolean | undefined> {
    const user = 'system:serviceaccount:seamark-system:seamark-fleet'
    const review = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user, resourceAttributes: { verb, resource } },
    }
    const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews'
    const headers = { 'content-type': 'application/json' }
    const response = await this.memberClient(name).request({
      method: 'POST',
      path,
      headers,
      body: JSON.stringify(review),
    })
    return (JSON.parse(response.body.toString('utf8')) as { status?: { allowed?: boolean } }).status?.allowed
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const member of this.#members) await member.stop()
    await this.hub.stop()
  }
}

interface IngressController {
  readonly listener: TcpServer
  readonly stopping: AbortController
  readonly done: Promise<void>
}

class Member {
  readonly name: string
  readonly #server: Server
  readonly #controller: IngressController | undefined

  private constructor(name: string, server: Server, controller?: IngressController) {
    this.name = name
    this.#server = server
    this.#controller = controller
  }

  static async start(name: string, address: string | undefined, server: Server): Promise<Member> {
    const { client } = server
    await client.create(Namespace, { metadata: { name: 'shop' } })
    await client.create(Service, { metadata: { namespace: 'shop', name: 'web' }, spec: { ports: [{ port: HTTP }] } })
    if (address === undefined) return new Member(name, server)
    const listener = createServer((socket) => socket.on('error', () => undefined).end())
    await new Promise<void>((resolve, reject) => listener.once('error', reject).listen(HTTP, address, resolve))
    const stopping = new AbortController()
    const cluster = connect(configFromText(server.kubeconfig), { name, fieldManager: 'ingress-controller' })
    const status = { loadBalancer: { ingress: [{ ip: address }] } }
    cluster.informers.informer(Ingress).subscribe((change) => {
      const { namespace, name: own } = change.object.metadata
      if (change.type === 'deleted' || change.object.status?.loadBalancer?.ingress !== undefined) return
      cluster.client
        .patch(Ingress, `${namespace}/${own}`, 'merge', { status }, { subresource: 'status' })
        .catch(() => undefined)
    })
    const done = follow(cluster, stopping.signal)
    return new Member(name, server, { listener, stopping, done })
  }

  get client(): Server['client'] {
    return this.#server.client
  }

  get kubeconfig(): string {
    return this.#server.kubeconfig
  }

  async stop(): Promise<void> {
    this.#controller?.stopping.abort()
    await this.#controller?.done
    this.#controller?.listener.close()
    await this.#server.stop()
  }
}

async function follow(cluster: Connection, signal: AbortSignal): Promise<void> {
  await cluster.informers.start(signal)
  await cluster.close()
}
