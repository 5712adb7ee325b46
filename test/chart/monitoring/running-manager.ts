/** A hub with two members whose manager runs every capability, with an object of each, and what it serves on /metrics. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import { freePort } from '../../integration/dns/peers.ts'
import { FleetWorld } from '../../integration/docs/fleet-world.ts'
import { applyFile } from '../../integration/docs/played-kubectl.ts'
import { Terminal } from '../../integration/docs/terminal.ts'
import { startEmbedded } from '../../integration/fleet/test-environment.ts'
import { createLoadBalancer, createNamespace, crds, eventually } from '../../integration/publish/test-environment.ts'
import { addNode } from '../../integration/wildcard/bench.ts'

/** A host of the gateway, a root of the fleet, and a load balancer whose endpoint may not be probed, as it is on loopback. */
const OBJECTS = `
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: { namespace: web, name: store }
spec:
  virtualhost: { fqdn: store.example.com }
  routes: [{ directResponsePolicy: { statusCode: 200 } }]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { namespace: shop, name: shop }
spec:
  ingressClassName: global
  rules:
    - host: shop.example.com
      http: { paths: [{ path: /, pathType: Prefix, backend: { service: { name: web, port: { number: 80 } } } }] }
---
apiVersion: loadbalancer.gardener.cloud/v1beta1
kind: DNSLoadBalancer
metadata: { namespace: web, name: app }
spec: { DNSName: app.example.com, healthPath: /healthz }
---
apiVersion: loadbalancer.gardener.cloud/v1beta1
kind: DNSLoadBalancerEndpoint
metadata: { namespace: web, name: app-1 }
spec: { loadbalancer: app, ipaddress: 127.0.0.1 }
`

export class RunningManager implements AsyncDisposable {
  readonly #world: FleetWorld
  readonly #terminal: Terminal
  readonly #metrics: string

  private constructor(world: FleetWorld, terminal: Terminal, metrics: string) {
    this.#world = world
    this.#terminal = terminal
    this.#metrics = metrics
  }

  static async start(): Promise<RunningManager> {
    const world = await FleetWorld.start(async () => startEmbedded(crds()))
    const [metrics, dns, http] = [await freePort(), await freePort(), await freePort()]
    const terminal = new Terminal({ env: { KUBECONFIG: 'kubeconfig' } })
    terminal.save('kubeconfig', world.kubeconfig())
    const manager = new RunningManager(world, terminal, `http://127.0.0.1:${metrics}/metrics`)
    try {
      await manager.#start(metrics, dns, http)
    } catch (error) {
      await manager[Symbol.asyncDispose]()
      throw error
    }
    return manager
  }

  async #start(metrics: number, dns: number, http: number): Promise<void> {
    const [world, terminal] = [this.#world, this.#terminal]
    await this.#type('seamark hub init --zone example.com')
    for (const member of ['eu1', 'us1']) await this.#type(`seamark cluster add ${member}`)
    await addNode(world.memberClient('eu1'), 'node-1', { external: ['203.0.113.11'] })
    const { client } = world.hub
    for (const name of ['web', 'shop']) await createNamespace(client, name)
    await createLoadBalancer(client, 'web/envoy', [{ ip: '192.0.2.1' }])
    const file = join(terminal.folder, 'seamark.yaml')
    writeFileSync(
      file,
      stringify({
        ...(parse(readFileSync(file, 'utf8')) as object),
        metrics: { address: `127.0.0.1:${metrics}` },
        probes: { address: '127.0.0.1:0' },
        publish: { sources: ['HTTPProxy'], children: ['DNSEndpoint'], services: [{ service: 'web/envoy' }] },
        wildcard: { enabled: true, zone: 'example.com' },
        gateway: { enabled: true, httpListen: `127.0.0.1:${http}`, httpsListen: '127.0.0.1:0' },
        dns: { listen: [`127.0.0.1:${dns}`], zones: ['example.com'] },
      }),
    )
    await this.#type('seamark run --config seamark.yaml &')
    await applyFile(client, OBJECTS)
    const dig = `seamark dig @127.0.0.1 -p ${dns} store.example.com +short`
    await eventually(
      'the answer',
      async () => (await terminal.type(dig)).text,
      (text) => text === '192.0.2.1\n',
    )
    await eventually(
      'the gateway',
      async () => (await fetch(`http://127.0.0.1:${http}/`)).status,
      (status) => status === 404,
    )
  }

  async #type(command: string): Promise<void> {
    const ran = await this.#terminal.type(command)
    if (ran.code !== 0) throw new Error(`${command} ended with ${ran.code}: ${ran.text}`)
  }

  /** The text format of Prometheus, when all of these series are there. */
  async metrics(series: readonly string[] = []): Promise<string> {
    const read = async (): Promise<string> => (await fetch(this.#metrics)).text()
    const missing = (text: string): string[] => series.filter((name) => !new RegExp(`^${name}[{ ]`, 'm').test(text))
    let seen = await read()
    await eventually(
      'every series',
      async () => missing((seen = await read())),
      (names) => names.length === 0,
    )
    return seen
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#terminal[Symbol.asyncDispose]()
    await this.#world[Symbol.asyncDispose]()
  }
}
