/**
 * An installation as docs/on-call.md assumes one: a cluster with the manager's namespace, a DNS server with TSIG, the manager,
 * and a folder with `config.yaml` in which a person types. A second cluster is registered for its wildcard.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { createDnsServer, createRRset, createZone, type DnsServer, fqdn, TsigKey, type Zone } from '@seamark/dns'
import { type Client, ConfigMap, createLogger, Event, Lease, Secret } from '@seamark/kube'
import { DNSEndpoint, HTTPProxy, loadConfig, publishOptions, runApp, wildcardOptions } from '@seamark/operator'
import {
  createLoadBalancer,
  createNamespace,
  eventually,
  type RunningApp,
  type UserCluster,
  type TestEnvironment,
} from '../publish/test-environment.ts'
import { kubectl } from './terminal.ts'
import { addNode } from '../wildcard/bench.ts'

const seamark = join(import.meta.dirname, '../../../bin/seamark')
const secret = Buffer.from('on-call-tsig-secret-of-32-octets').toString('base64')
const key = new TsigKey('seamark', 'hmac-sha256', secret)
const env = { TSIG_SECRET: secret }
const ORIGIN = fqdn('example.com.')

export interface Ran {
  readonly code: number | null
  /** stdout, then stderr. */
  readonly text: string
}

export class Installation implements AsyncDisposable {
  readonly environment: TestEnvironment
  readonly member: UserCluster
  readonly #folder: string
  #dns: DnsServer
  #zones: readonly Zone[]
  readonly #port: number
  #app: RunningApp | undefined
  #secondWriter: RunningApp | undefined
  #log = ''
  #metrics: string | undefined

  private constructor(environment: TestEnvironment, member: UserCluster, folder: string, dns: DnsServer) {
    this.environment = environment
    this.member = member
    this.#folder = folder
    this.#dns = dns
    this.#zones = [...dns.zones()]
    this.#port = dns.addresses[0]?.port ?? 0
  }

  static async start(startEnvironment: () => Promise<TestEnvironment>): Promise<Installation> {
    const environment = await startEnvironment()
    for (const name of ['seamark', 'web', 'infra']) await createNamespace(environment.client, name)
    await createLoadBalancer(environment.client, 'web/envoy', [{ ip: '192.0.2.1' }])
    const zone = createZone(ORIGIN, [
      createRRset(ORIGIN, 'SOA', 60, [`ns.${ORIGIN} admin.${ORIGIN} 1 3600 600 86400 30`]),
      createRRset(ORIGIN, 'NS', 60, [`ns.${ORIGIN}`]),
      createRRset(fqdn(`mail.${ORIGIN}`), 'A', 60, ['192.0.2.25']),
    ])
    const member = await environment.userCluster('fra1')
    await addNode(member.client, 'node-1', { external: ['203.0.113.11'] })
    const metadata = { namespace: 'seamark', name: 'cluster-fra1', labels: { 'seamark.io/cluster': 'fra1' } }
    await environment.client.create(Secret, { metadata, stringData: { kubeconfig: member.kubeconfig } })
    const folder = await mkdtemp(join(tmpdir(), 'seamark-on-call-'))
    const installation = new Installation(environment, member, folder, await serve([zone], 0))
    await writeFile(join(folder, 'kubeconfig'), environment.kubeconfig, { mode: 0o600 })
    await writeFile(join(folder, 'config.yaml'), installation.#config())
    await installation.startManager()
    return installation
  }

  get client(): Client {
    return this.environment.client
  }

  #config(): string {
    return `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
mode: enforce
publish: { sources: [HTTPProxy], children: [DNSEndpoint], services: [{ service: web/envoy }] }
wildcard: { enabled: true, zone: example.com }
records:
  enabled: true
  owner: prod
  dnsEndpoints: { enabled: true }
  providers:
    - name: bind
      type: rfc2136
      server: 127.0.0.1:${this.#port}
      zones: [example.com]
      key: { name: seamark, secretFrom: { env: TSIG_SECRET } }
`
  }

  async startManager(): Promise<void> {
    const loaded = loadConfig({ file: this.#config() })
    if (!loaded.ok) throw new Error(loaded.faults.join('; '))
    const { publish, records, wildcard } = loaded.config
    const destination = new Writable({
      write: (chunk, _encoding, done) => {
        this.#log += String(chunk)
        done()
      },
    })
    this.#metrics = undefined
    this.#app = this.environment.launch('contour-plus', async (cluster, { clock }, signal) =>
      runApp(
        {
          cluster,
          clock,
          namespace: 'seamark',
          mode: 'enforce',
          ownsConfigurationObject: true,
          publish: publishOptions(publish),
          records: { config: records, env },
          wildcard: wildcardOptions(wildcard),
          allowLoopback: true,
          metrics: '127.0.0.1:0',
          log: createLogger({ level: 'info', destination }),
          onReady: ({ metrics }) => (this.#metrics = metrics),
        },
        signal,
      ),
    )
    await eventually('the manager', async () => this.#metrics)
  }

  async stopManager(): Promise<void> {
    await this.#app?.stop()
    this.#app = undefined
  }

  log(): string {
    return this.#log
  }

  async metrics(): Promise<string> {
    return (await fetch(`http://${this.#metrics}/metrics`)).text()
  }

  /** The DNS server stops, and starts again with what it served. */
  async stopDns(): Promise<void> {
    this.#zones = [...this.#dns.zones()]
    await this.#dns.close()
  }

  async returnDns(): Promise<void> {
    this.#dns = await serve(this.#zones, this.#port)
  }

  async publish(names: readonly string[], targets: readonly string[]): Promise<void> {
    for (const name of names) {
      const endpoints = [
        { dnsName: `${name}.example.com`, recordType: 'A' as const, recordTTL: 60, targets: [...targets] },
      ]
      const manifest = { metadata: { namespace: 'web', name }, spec: { endpoints } }
      await this.client.apply(DNSEndpoint, manifest)
    }
  }

  /**
   * contour-plus as it is: no guard against a second writer, and a Lease in its own namespace. It applies its own targets
   * whenever another client changes the object.
   */
  async startSecondWriter(): Promise<void> {
    await this.stopManager()
    const { client } = this
    const renewTime = new Date().toISOString().replace('Z', '000Z')
    const metadata = { namespace: 'infra', name: 'contour-plus-leader' }
    await client.create(Lease, {
      metadata,
      spec: { holderIdentity: 'contour-plus-1', leaseDurationSeconds: 15, renewTime, acquireTime: renewTime },
    })
    await client.create(HTTPProxy, {
      metadata: { namespace: 'web', name: 'store' },
      spec: { routes: [], virtualhost: { fqdn: 'store.example.com' } } as NonNullable<HTTPProxy['spec']>,
    })
    this.#secondWriter = this.environment.launch('contour-plus', async ({ informers, client: own }, _, signal) => {
      const informer = informers.informer(DNSEndpoint, { namespace: 'web', fieldSelector: 'metadata.name=store' })
      const undo = async (object: DNSEndpoint): Promise<void> => {
        if (object.spec.endpoints[0]?.targets[0] === '192.0.2.66') return
        const endpoints = object.spec.endpoints.map((endpoint) => ({ ...endpoint, targets: ['192.0.2.66'] }))
        const { annotations = {}, ownerReferences = [] } = object.metadata
        const intent = {
          metadata: { namespace: 'web', name: 'store', annotations, ownerReferences },
          spec: { endpoints },
        }
        await own.apply(DNSEndpoint, intent, { fieldManager: 'contour-plus', force: true })
      }
      informer.subscribe((change) => {
        if (change.type !== 'deleted') undo(structuredClone(change.object) as DNSEndpoint).catch(() => undefined)
      })
      await informers.start(signal)
    })
    await this.startManager()
  }

  /** Types a command of the page. `192.0.2.53` is the DNS server there. */
  async type(command: string): Promise<Ran> {
    const scale = /^kubectl -n seamark scale deployment seamark --replicas=(\d)$/.exec(command)
    // No kubelet runs here: the effect of a change of replicas is played.
    if (scale !== null) {
      await (scale[1] === '0' ? this.stopManager() : this.startManager())
      return { code: 0, text: 'deployment.apps/seamark scaled\n' }
    }
    if (command === 'kubectl -n infra scale deployment contour-plus --replicas=0') {
      await this.#secondWriter?.stop()
      this.#secondWriter = undefined
      return { code: 0, text: 'deployment.apps/contour-plus scaled\n' }
    }
    if (command.startsWith('kubectl ') && kubectl !== undefined) return this.#run(kubectl, command.split(' ').slice(1))
    // Without kubectl the effects of its commands are played, too.
    if (command === 'kubectl get leases -A') {
      const { items } = await this.client.list(Lease)
      const rows = items.map(({ metadata, spec }) => [metadata.namespace, metadata.name, spec?.holderIdentity, '1m'])
      return {
        code: 0,
        text: [['NAMESPACE', 'NAME', 'HOLDER', 'AGE'], ...rows].map((row) => `${row.join('   ')}\n`).join(''),
      }
    }
    if (command === 'kubectl -n seamark get events --field-selector involvedObject.name=seamark') {
      const { items } = await this.client.list(Event, { namespace: 'seamark' })
      const about = items.filter(({ regarding }) => regarding?.name === 'seamark')
      return { code: 0, text: about.map(({ type, reason, note }) => `${type}   ${reason}   ${note}\n`).join('') }
    }
    const annotation = /^kubectl -n seamark annotate (?:--overwrite )?configmap seamark ([^=\s]+)(?:=(\S+)|-)$/.exec(
      command,
    )
    if (annotation !== null) {
      const [, name = '', value] = annotation
      // What an apply no longer names, it removes.
      const annotations: Record<string, string> = value === undefined ? {} : { [name]: value }
      const metadata = { namespace: 'seamark', name: 'seamark', annotations }
      await this.client.apply(ConfigMap, { metadata }, { force: true })
      return { code: 0, text: 'configmap/seamark annotated\n' }
    }
    const [program, ...words] = command.split(' ').flatMap((word) => {
      if (word === '@192.0.2.53') return ['@127.0.0.1', '-p', String(this.#port)]
      return [word === '192.0.2.53' ? `127.0.0.1:${this.#port}` : word]
    })
    if (program !== 'seamark') throw new Error(`the page types '${command}', which the test cannot play`)
    return this.#run(seamark, words)
  }

  async #run(program: string, words: readonly string[]): Promise<Ran> {
    const child = spawn(program, words, {
      cwd: this.#folder,
      env: {
        ...env,
        PATH: process.env['PATH'] ?? '',
        HOME: this.#folder,
        KUBECONFIG: join(this.#folder, 'kubeconfig'),
      },
    })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    const [code] = (await once(child, 'close')) as [number | null]
    return { code, text: (stdout + stderr).replaceAll(`127.0.0.1:${this.#port}`, '192.0.2.53:53') }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#secondWriter?.stop()
    await this.stopManager()
    await this.#dns.close()
    await this.member.stop()
    await this.environment[Symbol.asyncDispose]()
    await rm(this.#folder, { recursive: true, force: true })
  }
}

async function serve(zones: readonly Zone[], port: number): Promise<DnsServer> {
  return createDnsServer({
    zones: [...zones],
    listen: [{ address: '127.0.0.1', port }],
    keys: [key],
    defaultPolicy: { updateKeys: [key.name], transferKeys: [key.name] },
  })
}
