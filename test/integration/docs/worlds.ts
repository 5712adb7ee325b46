/** What each page of the documentation assumes that its reader has. Its ports stand for free ones. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createDnsServer, createRRset, createZone, type DnsServer, fqdn, TsigKey } from '@seamark/dns'
import { needs } from '@seamark/kit'
import { Namespace } from '@seamark/kube'
import { DNSEndpoint } from '@seamark/operator'
import { freePort } from '../dns/peers.ts'
import { type Server, startEmbedded, startReal, type StartServer } from '../fleet/test-environment.ts'
import type { Reader } from './run-page.ts'
import { addNode } from '../wildcard/bench.ts'
import { FleetWorld } from './fleet-world.ts'
import { applyFile } from './played-kubectl.ts'
import { kubectl, Terminal, type TerminalOptions } from './terminal.ts'

interface World {
  readonly name: string
  /** It needs a program that is not here. */
  readonly isSkipped?: boolean
  readonly start: () => Promise<Reader & AsyncDisposable>
}

type Replacement = readonly [page: string, test: string]

/** A folder, and nothing else. */
function machine(...ports: readonly number[]): World[] {
  return [{ name: 'this machine', start: async () => new Terminal({ replace: constant(await freePorts(ports)) }) }]
}

async function freePorts(ports: readonly number[]): Promise<Replacement[]> {
  const pairs: Replacement[] = []
  for (const port of ports) pairs.push([String(port), String(await freePort())])
  return pairs
}

const constant =
  <T>(value: T) =>
  (): T =>
    value

interface ClusterOptions {
  readonly replace?: () => Promise<readonly Replacement[]>
  readonly env?: (replaced: ReadonlyMap<string, string>) => Readonly<Record<string, string>>
}

/** An API server with nothing on it, which the kubeconfig of the reader names. */
function cluster({ replace, env }: ClusterOptions): World[] {
  return onBoth(async (startServer) => {
    const server = await startServer([])
    const replaced = (await replace?.()) ?? []
    return clusterTerminal(server, { replace: replaced, env: env?.(new Map(replaced)) ?? {} })
  })
}

function onBoth(start: (startServer: StartServer) => Promise<Terminal>): World[] {
  return [
    { name: 'an embedded server', start: async () => start(startEmbedded) },
    {
      name: 'kube-apiserver',
      isSkipped: !needs('kube-apiserver', 'etcd'),
      start: async () => start(startReal),
    },
  ]
}

interface ClusterTerminal extends Pick<TerminalOptions, 'env' | 'happenings' | 'onClose'> {
  readonly replace: readonly Replacement[]
}

function clusterTerminal(server: Server, { env, replace, onClose, ...options }: ClusterTerminal): Terminal {
  const terminal: Terminal = new Terminal({
    ...options,
    env: { KUBECONFIG: 'kubeconfig', ...env },
    lacks: server.embedded === undefined ? [] : ['kube-apiserver'],
    replace: constant(replace),
    play: async (command) => {
      const file = /^kubectl apply -f (\S+)$/.exec(command)?.[1]
      if (file === undefined || kubectl !== undefined) return undefined
      return applyFile(server.client, readFileSync(join(terminal.folder, file), 'utf8'))
    },
    onClose: async () => {
      await server.stop()
      await onClose?.()
    },
  })
  terminal.save('kubeconfig', server.kubeconfig)
  return terminal
}

/** A DNS server of somebody else, 192.0.2.53 on the page, with the zone of the page. */
async function zoneServer(): Promise<DnsServer> {
  const zone = createZone(ORIGIN, [
    createRRset(ORIGIN, 'SOA', 60, [`ns.${ORIGIN} admin.${ORIGIN} 1 3600 600 86400 30`]),
    createRRset(ORIGIN, 'NS', 60, [`ns.${ORIGIN}`]),
    createRRset(fqdn(`mail.${ORIGIN}`), 'A', 60, ['192.0.2.25']),
    createRRset(fqdn(`old.${ORIGIN}`), 'A', 60, ['192.0.2.7']),
    createRRset(fqdn(`a-old.${ORIGIN}`), 'TXT', 60, [
      '"heritage=external-dns,external-dns/owner=prod-a,external-dns/resource=ingress/shop/old"',
    ]),
  ])
  return createDnsServer({
    zones: [zone],
    listen: [{ address: '127.0.0.1', port: 0 }],
    keys: [KEY],
    defaultPolicy: { updateKeys: [KEY.name], transferKeys: [KEY.name] },
  })
}

const ORIGIN = fqdn('example.com.')
const SECRET = Buffer.from('docs-tsig-secret-of-32-octets-in').toString('base64')
const KEY = new TsigKey('seamark', 'hmac-sha256', SECRET)

async function startRecords(startServer: StartServer): Promise<Terminal> {
  const dns = await zoneServer()
  const server = await startServer([])
  const endpoints = [{ dnsName: 'mail.example.com', recordType: 'AAAA' as const, targets: ['2001:db8::26'] }]
  const terminal: Terminal = clusterTerminal(server, {
    env: {},
    replace: [['192.0.2.53:53', `127.0.0.1:${dns.addresses[0]?.port}`]],
    happenings: {
      'the manager runs, and an AAAA record is wanted for mail': async () => {
        await server.client.apply(DNSEndpoint, {
          metadata: { namespace: 'web', name: 'mail' },
          spec: { endpoints } as DNSEndpoint['spec'],
        })
        const ports = '--metrics-address 0 --probes-address 127.0.0.1:0'
        await terminal.type(`seamark run --config seamark.yaml -n seamark ${ports} &`)
      },
    },
    onClose: async () => dns.close(),
  })
  return terminal
}

/** Of DNS, metrics and probes. */
const MANAGER_PORTS = [8053, 8180, 8181]

function listenOn(ports: ReadonlyMap<string, string>): Record<string, string> {
  return {
    SEAMARK_DNS_LISTEN: `127.0.0.1:${ports.get('8053')}`,
    SEAMARK_METRICS_ADDRESS: `127.0.0.1:${ports.get('8180')}`,
    SEAMARK_PROBES_ADDRESS: `127.0.0.1:${ports.get('8181')}`,
  }
}

/** The page has a source and a target cluster of the original, with its namespace; they are one here. */
async function startBalance(startServer: StartServer): Promise<Terminal> {
  const ports = await freePorts([...MANAGER_PORTS, 8000, 8080, 8081, 5353])
  const server = await startServer([])
  await server.client.create(Namespace, { metadata: { name: 'garden' } })
  const terminal = clusterTerminal(server, {
    env: listenOn(new Map(ports)),
    replace: ports,
  })
  for (const file of ['source.yaml', 'target.yaml']) terminal.save(file, server.kubeconfig)
  return terminal
}

async function startWildcard(startServer: StartServer): Promise<Terminal> {
  const world = await FleetWorld.start(startServer)
  await addNode(world.memberClient('eu1'), 'node-1', { external: ['203.0.113.11'] })
  const ports = await freePorts(MANAGER_PORTS)
  const terminal = new Terminal({
    env: { KUBECONFIG: 'kubeconfig', ...listenOn(new Map(ports)) },
    replace: constant(ports),
    onClose: async () => world[Symbol.asyncDispose](),
  })
  terminal.save('kubeconfig', world.kubeconfig())
  return terminal
}

/** Listeners of a gateway on all addresses are ones on loopback, on free ports. */
const GATEWAY: readonly Replacement[] = [
  [':18080', '127.0.0.1:0'],
  [':8080', '127.0.0.1:0'],
  [':8443', '127.0.0.1:0'],
]

export const WORLDS: Readonly<Record<string, readonly World[]>> = {
  'docs/apiserver.md': machine(),
  'docs/balance.md': onBoth(startBalance),
  'docs/cli.md': machine(),
  'docs/debugging.md': cluster({
    replace: async () => freePorts(MANAGER_PORTS),
    env: listenOn,
  }),
  'docs/dns.md': machine(5353),
  // Helm is a process that the page starts a dozen times; test/chart installs on a kube-apiserver.
  'docs/install.md': cluster({})
    .slice(0, 1)
    .map((world) => ({ ...world, isSkipped: !needs('helm') })),
  'docs/gateway.md': cluster({ replace: async () => GATEWAY }),
  'docs/providers/webhook.md': machine(8888),
  'docs/publish.md': cluster({}),
  'docs/wildcard.md': onBoth(startWildcard),
  'docs/records.md': onBoth(startRecords),
}
