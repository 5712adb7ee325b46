/**
 * The environment of the playground: an API server, a DNS server with one zone, and the manager, all in this process and
 * on 127.0.0.1. The code is the production code; only the cloud that assigns load balancer addresses is simulated.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ApiServer, createApiServer, newToken, writeKubeconfig } from '@seamark/apiserver'
import {
  createDnsClient,
  createDnsServer,
  createZone,
  type DnsClient,
  type DnsServer,
  fqdn,
  groupRecords,
  type ListenAddress,
  createRRset,
  serverText,
  TsigKey,
} from '@seamark/dns'
import {
  type Client,
  type Cluster,
  configFromText,
  connect,
  createLogger,
  CustomResourceDefinition,
  type Logger,
  Namespace,
  Node,
  Service,
} from '@seamark/kube'
import type { Kind, Obj } from '@seamark/kube/object'
import { writePrivateFile } from '@seamark/kube/private-file'
import {
  BalanceConfig,
  CONFIG_API_VERSION,
  embeddedProvider,
  HTTPProxy,
  playgroundCrds,
  RecordsConfig,
  runApp,
  unified,
  wildcardDefaults,
} from '@seamark/operator'
import { parseAllDocuments } from 'yaml'
import { CommandError } from '../../command.ts'

export const ZONE = 'demo.test'
export const LOAD_BALANCER = 'projectcontour/envoy'
const MANAGER_NAMESPACE = 'seamark'
/** Documentation addresses (RFC 5737): not used on any network. */
export const LB_ADDRESS = '192.0.2.10'
const NODE_ADDRESSES = ['203.0.113.11', '203.0.113.12', '203.0.113.13']
/** 5353 is the port of mDNS; when this port is in use, any free port is taken. */
const DNS_PORT = 8053

const OWNER = 'playground'

/** The zone is configured by RFC 2136 as well, so that commands in another terminal can read the plan and the records. */
const configText = (dnsAddress: ListenAddress, keyPath: string) => `apiVersion: ${CONFIG_API_VERSION}
kind: ManagerConfiguration
mode: enforce
publish:
  services:
    - service: ${LOAD_BALANCER}
records:
  owner: ${OWNER}
  dnsEndpoints:
    enabled: true
  providers:
    - name: embedded
      type: rfc2136
      server: ${dnsAddress.address}:${dnsAddress.port}
      zones: [${ZONE}]
      key:
        name: ${OWNER}
        secretFrom:
          file: ${keyPath}
`

export interface Environment {
  readonly server: ApiServer
  readonly client: Client
  readonly dns: DnsServer
  readonly dnsAddress: ListenAddress
  readonly apiUrl: string
  readonly kubeconfigPath: string
  /** The manager's configuration, for `seamark explain`. */
  readonly configPath: string
  /** Applies every document of an example file. */
  applyExample(path: string): Promise<string[]>
  ask(name: string): Promise<string[]>
  /** Refusals of records since the start, newest last. */
  readonly refusals: { name: string; code: string; why: string }[]
  stop(): Promise<void>
}

export async function openEnvironment(onFailure: (error: unknown) => void): Promise<Environment> {
  const token = newToken()
  const server = createApiServer({
    tokens: new Map([[token, { name: 'admin', groups: ['system:masters'] }]]),
    anonymous: 'anonymous',
  })
  const listener = await server.listen({ tls: 'self-signed' })
  const folder = await mkdtemp(join(tmpdir(), 'seamark-playground-'))
  const kubeconfigPath = join(folder, 'kubeconfig')
  const kubeconfig = writeKubeconfig({
    server: listener.url,
    token,
    ...(listener.caPem !== undefined && { caPem: listener.caPem }),
  })
  await writePrivateFile(kubeconfigPath, kubeconfig)
  const config = configFromText(kubeconfig)
  const user = connect(config, { name: 'user', fieldManager: 'you' })
  const secret = randomBytes(32).toString('base64')
  const dns = await startDns(new TsigKey(OWNER, 'hmac-sha256', secret))
  const resolver = createDnsClient()
  const [dnsAddress] = dns.addresses
  if (dnsAddress === undefined) throw new CommandError('the DNS server has no address')
  const keyPath = join(folder, 'tsig-key')
  await writePrivateFile(keyPath, secret)
  const configPath = join(folder, 'config.yaml')
  await writeFile(configPath, configText(dnsAddress, keyPath))
  await createInitialObjects(user.client)
  const refusals: Environment['refusals'] = []
  const running = runManager(
    connect(config, { name: 'playground', fieldManager: 'contour-plus' }),
    dns,
    refusalLogger(refusals),
    onFailure,
  )
  return {
    server,
    dns,
    dnsAddress,
    client: user.client,
    apiUrl: listener.url,
    kubeconfigPath,
    configPath,
    refusals,
    applyExample: async (path) => applyFile(user.client, path),
    ask: async (name) => askFor(resolver, dnsAddress, name),
    async stop() {
      await running.stop()
      await resolver.close()
      await dns.close()
      await user.close()
      await server.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function startDns(key: TsigKey): Promise<DnsServer> {
  const origin = fqdn(`${ZONE}.`)
  const zone = createZone(origin, [
    createRRset(origin, 'SOA', 60, [`ns.${origin} hostmaster.${origin} 1 3600 600 86400 30`]),
    createRRset(origin, 'NS', 60, [`ns.${origin}`]),
    createRRset(`ns.${origin}`, 'A', 60, ['127.0.0.1']),
  ])
  const defaultPolicy = { updateKeys: [key.name], transferKeys: [key.name] }
  const listen = async (port: number): Promise<DnsServer> =>
    createDnsServer({ zones: [zone], listen: [{ address: '127.0.0.1', port }], keys: [key], defaultPolicy })
  return listen(DNS_PORT).catch(async () => listen(0))
}

/** Creates the initial objects of the cluster: kinds, nodes, namespaces. */
async function createInitialObjects(client: Client): Promise<void> {
  for (const definition of playgroundCrds()) await client.create(CustomResourceDefinition, definition)
  await client.create(Namespace, { metadata: { name: MANAGER_NAMESPACE } })
  for (const [index, address] of NODE_ADDRESSES.entries()) {
    const name = `node-${index + 1}`
    await client.create(Node, { metadata: { name } })
    const status = { addresses: [{ type: 'ExternalIP', address }], conditions: [{ type: 'Ready', status: 'True' }] }
    await client.patch(Node, name, 'merge', { status }, { subresource: 'status' })
  }
}

function runManager(
  cluster: Cluster,
  dns: DnsServer,
  log: Logger,
  onFailure: (error: unknown) => void,
): { stop(): Promise<void> } {
  const controller = new AbortController()
  const records = RecordsConfig.parse({ enabled: true, owner: OWNER, dnsEndpoints: { enabled: true } })
  const done = runApp(
    {
      cluster,
      log,
      mode: 'enforce',
      namespace: MANAGER_NAMESPACE,
      publish: { ...unified, services: [{ service: LOAD_BALANCER }] },
      wildcard: { ...wildcardDefaults, zone: ZONE, localCluster: 'play' },
      records: { config: records, env: {}, providers: [embeddedProvider({ server: dns })] },
      // Names are resolved by the DNS server of the playground: nothing leaves this machine.
      balance: { config: BalanceConfig.parse({ enabled: true, resolver: dns.addresses.map(serverText)[0] }) },
      allowLoopback: true,
    },
    controller.signal,
  )
  done.catch(onFailure)
  return {
    async stop() {
      controller.abort()
      await done.catch(() => undefined)
      await cluster.close()
    },
  }
}

/** A logger that keeps only the refusals of the manager. */
function refusalLogger(refusals: Environment['refusals']): Logger {
  const destination = {
    write(line: string): void {
      const { name, code, why } = JSON.parse(line) as { name?: string; code?: string; why?: string }
      if (name !== undefined && code !== undefined) refusals.push({ name, code, why: why ?? '' })
    },
  }
  return createLogger({ level: 'info', destination })
}

const KINDS: readonly Kind[] = [Namespace, Service, HTTPProxy]

async function applyFile(client: Client, path: string): Promise<string[]> {
  const text = await readFile(path, 'utf8').catch((error: Error) => error)
  if (text instanceof Error) throw new CommandError(`the examples are not beside the program: ${text.message}`)
  const applied: string[] = []
  for (const document of parseAllDocuments(text)) {
    const object = document.toJS() as Obj | null
    const kind = KINDS.find((candidate) => candidate.kind === object?.kind)
    if (object === null || kind === undefined) continue
    await client.apply(kind, object)
    applied.push(`${object.kind} ${object.metadata.name}`)
  }
  return applied
}

async function askFor(resolver: DnsClient, server: ListenAddress, name: string): Promise<string[]> {
  const { message } = await resolver.query({ server, name, type: 'A' })
  return groupRecords(message.answers).flatMap((set) => [...set.values])
}
