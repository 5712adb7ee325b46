/** HTTP servers on several loopback addresses with one port: the backends of a load balancer. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createDnsClient, groupRecords, type ServerAddress } from '@seamark/dns'
import { expect } from 'vitest'

export interface Backends {
  readonly port: number
  /** Ends the backend at this address, with all its connections. */
  stop(address: string): Promise<void>
  start(address: string): Promise<void>
  /** Starts a backend that accepts connections and never answers. */
  startSilent(address: string): Promise<void>
  /** The Host headers of all requests to this address. */
  hostsAt(address: string): ReadonlySet<string>
  close(): Promise<void>
}

export async function startBackends(...addresses: string[]): Promise<Backends> {
  const servers = new Map<string, Server>()
  const hosts = new Map<string, Set<string>>()
  let port = 0
  const start = async (address: string, isSilent = false): Promise<void> => {
    const seen = hosts.get(address) ?? new Set<string>()
    hosts.set(address, seen)
    const server = createServer((request, response) => {
      seen.add(request.headers.host ?? '')
      if (isSilent) return
      response.statusCode = request.url === '/healthz' ? 200 : 404
      response.end('ok')
    })
    server.listen(port, address)
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
    servers.set(address, server)
  }
  const stop = async (address: string): Promise<void> => {
    const server = servers.get(address)
    if (server === undefined) return
    servers.delete(address)
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
  for (const address of addresses) await start(address)
  return {
    port,
    start: async (address) => start(address),
    startSilent: async (address) => start(address, true),
    hostsAt: (address) => hosts.get(address) ?? new Set(),
    stop,
    async close() {
      for (const address of servers.keys()) await stop(address)
    },
  }
}

/** The values of an answer, sorted; `-` for none. */
export async function ask(server: ServerAddress, name: string, type = 'A'): Promise<string> {
  const client = createDnsClient()
  try {
    const { message } = await client.query({ server, name, type })
    const values = groupRecords(message.answers)
      .filter((set) => set.type === type)
      .flatMap((set) => [...set.values])
    return values.length === 0 ? '-' : values.toSorted().join(' ')
  } finally {
    await client.close()
  }
}

/** Only a failure takes this long. */
export const POLL_OPTIONS = { timeout: 60_000, interval: 50 }

export async function expectAnswer(server: ServerAddress, name: string, wanted: string): Promise<void> {
  await expect.poll(async () => ask(server, name), POLL_OPTIONS).toBe(wanted)
}
