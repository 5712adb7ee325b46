/** Program of hostile-requests.test.ts: the built-in proxy in front of two backends, one of which is the victim's. Prints its port. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createProxy, type Endpoint, type Route } from '@seamark/gateway'

const loopback = { host: '127.0.0.1', port: 0 }

async function backend(listener: RequestListener): Promise<Endpoint[]> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return [{ host: '127.0.0.1', port: (server.address() as AddressInfo).port }]
}

const endpoints: Readonly<Record<string, Endpoint[]>> = {
  // Anybody may ask it; what its own client asked for is told apart from what others did.
  victim: await backend(({ url }, response) => response.end(url === '/victim' ? 'victim' : 'not for the client')),
  tenant: await backend((request, response) => {
    request.resume().on('end', () => response.end('tenant'))
  }),
}

const routeTo = (cluster: string, more: Partial<Route> = {}): Route => ({
  upgradesToHttps: false,
  order: '',
  origin: { kind: 'HTTPProxy', namespace: cluster, name: 'x', at: '' },
  match: { path: { kind: 'prefix', value: '/' }, headers: [], query: [] },
  action: {
    kind: 'forward',
    backends: [{ cluster, weight: 1 }],
    mirrors: [],
    hash: [],
    retry: { count: 1, on: ['5xx', 'reset'], statusCodes: [], perTryTimeoutMs: 500 },
    timeoutMs: 1_000,
    idleTimeoutMs: 1_000,
    hasWebsocket: true,
  },
  ...more,
})

const proxy = createProxy({
  http: loopback,
  https: loopback,
  endpoints: (name) => endpoints[name] ?? [],
  isRefused: () => undefined,
})
proxy.apply({
  listeners: [
    {
      protocol: 'http',
      hosts: ['victim', 'tenant'].map((name) => ({ host: `${name}.test`, routes: [routeTo(name)] })),
    },
  ],
  clusters: ['victim', 'tenant'].map((name) => ({
    name,
    upstream: { kind: 'endpoints', name },
    protocol: 'http1',
    balancing: 'roundRobin',
    connectTimeoutMs: 1_000,
  })),
  certificates: [],
})
const { http } = await proxy.listen()
process.stdout.write(`ready ${http?.port}\n`)
