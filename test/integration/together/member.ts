/** A member cluster: an API server behind a relay, `seamark gateway` with an address of its own, and a program behind it. */
import { createServer, type Server } from 'node:http'
import { EndpointSlice, Namespace, Node, Service } from '@seamark/kube'
import { startRelay, type Relay } from '@seamark/kube/testing'
import { GATEWAY, type MemberName, NODE, POD } from './addresses.ts'
import type { ApiServer } from './api-server.ts'
import { type Running, startProgram } from './programs.ts'

const HTTP = 80
const HTTPS = 443

export class Member {
  readonly name: MemberName
  readonly server: ApiServer
  /** How the hub reaches it; the gateway is inside of the cluster and does not need it. */
  readonly relay: Relay
  readonly #kubeconfigFile: string
  readonly #pod: Server
  #isHealthy = false
  #gateway: Running | undefined

  private constructor(name: MemberName, server: ApiServer, relay: Relay, kubeconfigFile: string) {
    this.name = name
    this.server = server
    this.relay = relay
    this.#kubeconfigFile = kubeconfigFile
    this.#pod = createServer((request, response) => {
      response.statusCode = request.url === '/healthz' && !this.#isHealthy ? 503 : 200
      response.end(name)
    })
  }

  /** `deploy` makes it what roots need; its program does not pass a health check before `becomeHealthy`. */
  static async start(name: MemberName, server: ApiServer, kubeconfigFile: string): Promise<Member> {
    const port = /server: https:\/\/127\.0\.0\.1:(\d+)|"server":"https:\/\/127\.0\.0\.1:(\d+)"/.exec(server.kubeconfig)
    const relay = await startRelay(Number(port?.[1] ?? port?.[2]))
    const member = new Member(name, server, relay, kubeconfigFile)
    await new Promise<void>((resolve) => member.#pod.listen(HTTP, POD[name], resolve))
    return member
  }

  /** As the hub reaches it. */
  get kubeconfig(): string {
    return this.server.kubeconfig.replace(/127\.0\.0\.1:\d+/, `127.0.0.1:${this.relay.port}`)
  }

  async deploy(namespace: string, ...services: readonly string[]): Promise<void> {
    const { client } = this.server
    await client.create(Node, { metadata: { name: 'node-1' } })
    const addresses = [{ type: 'ExternalIP' as const, address: NODE[this.name] }]
    const status = { addresses, conditions: [{ type: 'Ready', status: 'True' as const }] }
    await client.patch(Node, 'node-1', 'merge', { status }, { subresource: 'status' })
    await client.create(Namespace, { metadata: { name: namespace } })
    for (const name of services) {
      await client.create(Service, {
        metadata: { namespace, name },
        spec: { ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
      })
      await client.create(EndpointSlice, {
        metadata: { namespace, name, labels: { 'kubernetes.io/service-name': name } },
        addressType: 'IPv4',
        endpoints: [{ addresses: [POD[this.name]], conditions: { ready: true } }],
        ports: [{ name: 'http', port: HTTP, protocol: 'TCP' }],
      })
    }
  }

  becomeHealthy(): void {
    this.#isHealthy = true
  }

  async startGateway(): Promise<void> {
    const address = GATEWAY[this.name]
    this.#gateway ??= await startProgram(
      'gateway',
      `--kubeconfig=${this.#kubeconfigFile}`,
      '--namespace=default',
      `--http-listen=${address}:${HTTP}`,
      `--https-listen=${address}:${HTTPS}`,
      `--ingress-status-address=${address}`,
    )
  }

  /** Its port is closed from then on; what it wrote to statuses stays. */
  async killGateway(): Promise<void> {
    await this.#gateway?.kill()
    this.#gateway = undefined
  }

  async close(): Promise<void> {
    await this.killGateway()
    this.#pod.closeAllConnections()
    this.#pod.close()
    await this.relay.close()
    await this.server.stop()
  }
}
