import { createServer as createHttpServer, request } from 'node:http'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import type { Ir, WeightedAddress } from '../ir/model.ts'
import { createProxy, type Proxy } from './proxy.ts'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

async function ask(port: number): Promise<string> {
  return await new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('end', () => resolve(`${response.statusCode} ${text}`))
    })
    call.on('error', reject)
    call.end()
  })
}

const irOf = (name: string, addresses: readonly WeightedAddress[]): Ir => ({
  listeners: [
    {
      protocol: 'http',
      hosts: [
        {
          host: '*',
          routes: [
            {
              match: { path: { kind: 'prefix', value: '/' }, headers: [], query: [] },
              action: {
                kind: 'forward',
                backends: [{ cluster: name, weight: 1 }],
                mirrors: [],
                hash: [],
                retry: { count: 1, on: ['connect-failure'], statusCodes: [] },
                timeoutMs: 15_000,
                idleTimeoutMs: 0,
                hasWebsocket: false,
              },
              upgradesToHttps: false,
              origin: { kind: 'GlobalIngress', namespace: 'a', name: 'x', at: '' },
              order: '',
            },
          ],
        },
      ],
    },
  ],
  clusters: [
    {
      name,
      upstream: { kind: 'addresses', addresses },
      protocol: 'http1',
      balancing: 'random',
      connectTimeoutMs: 2_000,
    },
  ],
  certificates: [],
})

async function start(ir: Ir): Promise<{ proxy: Proxy; port: number }> {
  const proxy = createProxy({ http: { host: '127.0.0.1', port: 0 }, endpoints: () => [] })
  proxy.apply(ir)
  const { http } = await proxy.listen()
  cleanups.push(async () => proxy.close(0))
  return { proxy, port: http?.port ?? 0 }
}

async function otherBackend(): Promise<WeightedAddress> {
  const other = createHttpServer((_request, response) => response.end('other'))
  cleanups.push(async () => new Promise((resolve) => other.close(resolve)))
  return { host: '127.0.0.1', port: await listen(other), weight: 1, priority: 1 }
}

it('a request is retried although a new configuration has removed its cluster meanwhile', async () => {
  const other = await otherBackend()
  const failing = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => {
      proxy.apply(irOf('two', [other]))
      socket.destroy()
    })
  })
  cleanups.push(async () => new Promise((resolve) => failing.close(resolve)))
  const address = { host: '127.0.0.1', port: await listen(failing), weight: 1, priority: 0 }
  const { proxy, port } = await start(irOf('one', [address, other]))
  expect(await ask(port)).toBe('200 other')
})

it('a backend that is lost between two requests of a kept connection costs no request: the next one answers', async () => {
  let requests = 0
  const lost = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', () => {
      requests++
      if (requests === 1) return void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlost')
      // New connections are refused from now on.
      lost.close()
      socket.destroy()
    })
  })
  const addresses = [{ host: '127.0.0.1', port: await listen(lost), weight: 1, priority: 0 }, await otherBackend()]
  const { port } = await start(irOf('one', addresses))
  expect(await ask(port)).toBe('200 lost')
  expect(await ask(port)).toBe('200 other')
  expect(requests).toBe(2)
})
