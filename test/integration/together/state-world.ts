/**
 * The installation whose state is kept in state-0.1.0.json: a hub and two members on embedded API servers, and what listens
 * beside them. record-state.ts runs the version that wrote the state on it, upgrade.test.ts this one.
 */
import { createServer, type Server } from 'node:http'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type Client,
  configFromText,
  connect,
  CustomResourceDefinition,
  type Cluster as Connection,
} from '@seamark/kube'
import { fleetCrds, loadBalancerCrds, playgroundCrds } from '@seamark/operator'
import { gatewayClassCrd } from '../gateway/crds.ts'
import { type EmbeddedServer, startEmbeddedServer } from '../apiserver/embedded-server.ts'

/** Where the gateways of the members are: in the state, so always the same. */
export const GATEWAYS = { eu1: '127.77.1.1', us1: '127.77.2.1' } as const
export const GATEWAY_PORT = 18_077
export const MEMBERS = ['eu1', 'us1'] as const
export const SERVERS = ['hub', ...MEMBERS] as const
type ServerName = (typeof SERVERS)[number]

/** `service`: whose addresses publish gives to HTTPProxies. */
const configuration = (dnsPort: number, service: string): string => `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
mode: enforce
allowLoopback: true
publish: { services: [{ service: ${service} }] }
fleet: { enabled: true }
balance: { enabled: true }
wildcard: { enabled: true, zone: clusters.example.com }
records: { enabled: true, owner: together, dnsEndpoints: { enabled: true } }
dns: { listen: ['127.0.0.1:${dnsPort}'], zones: [example.com] }
metrics: { address: '0' }
probes: { address: '127.0.0.1:0' }
`

export interface StateWorld {
  readonly servers: ReadonlyMap<ServerName, EmbeddedServer>
  /** Of an administrator. */
  readonly client: (name: ServerName) => Client
  readonly folder: string
  /** Writes the configuration; returns the flags that name it. */
  readonly configure: (dnsPort: number, service: string) => readonly string[]
  readonly close: () => Promise<void>
}

export async function startStateWorld(): Promise<StateWorld> {
  const folder = mkdtempSync(join(tmpdir(), 'seamark-state-'))
  const servers = new Map<ServerName, EmbeddedServer>()
  const connections = new Map<ServerName, Connection>()
  for (const name of SERVERS) {
    const server = await startEmbeddedServer()
    servers.set(name, server)
    const connection = connect(configFromText(server.kubeconfig), { name, fieldManager: 'user' })
    connections.set(name, connection)
    const own = name === 'hub' ? [...fleetCrds(), ...loadBalancerCrds()] : []
    for (const definition of [...playgroundCrds(), ...gatewayClassCrd(), ...own])
      await connection.client.create(CustomResourceDefinition, definition as CustomResourceDefinition)
  }
  writeFileSync(join(folder, 'kubeconfig'), servers.get('hub')?.kubeconfig ?? '', { mode: 0o600 })
  const gateways = await Promise.all(Object.values(GATEWAYS).map(startGateway))
  return {
    servers,
    client(name) {
      const connection = connections.get(name)
      if (connection === undefined) throw new Error(`no server ${name}`)
      return connection.client
    },
    folder,
    configure(dnsPort, service) {
      const file = join(folder, 'seamark.yaml')
      writeFileSync(file, configuration(dnsPort, service))
      return ['--config', file, '--kubeconfig', join(folder, 'kubeconfig'), '-n', 'seamark']
    },
    async close() {
      for (const gateway of gateways) {
        gateway.closeAllConnections()
        gateway.close()
      }
      for (const connection of connections.values()) await connection.close()
      for (const server of servers.values()) await server.stop()
      rmSync(folder, { recursive: true })
    },
  }
}

async function startGateway(address: string): Promise<Server> {
  const server = createServer((_request, response) => response.end('ok'))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(GATEWAY_PORT, address, resolve)
  })
  return server
}
