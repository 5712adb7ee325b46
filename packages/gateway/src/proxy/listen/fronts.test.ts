import { once } from 'node:events'
import { request } from 'node:http'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { fakeClock } from '@seamark/kube/testing'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { PortFaults } from '../../ir/listen-addresses.ts'
import { route } from '../../../testing/proxy-fixture.ts'
import type { Ir, Listener } from '../../ir/model.ts'
import { Fronts } from './fronts.ts'
import { createProxy, type Proxy, type ProxyOptions } from '../proxy.ts'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

const FREE = { host: '127.0.0.1', port: 0 }

/** A listener that answers its own port. */
function listenerOf(port?: number): Listener {
  return {
    protocol: 'http',
    ...(port !== undefined && { port }),
    hosts: [{ host: '*', routes: [route({ kind: 'direct', status: 200, body: String(port ?? 'main') })] }],
  }
}

const irOf = (...ports: number[]): Ir => ({
  listeners: [listenerOf(), { protocol: 'https', hosts: [] }, ...ports.map((port) => listenerOf(port))],
  clusters: [],
  certificates: [],
})

async function start(ir: Ir, options: Partial<ProxyOptions>): Promise<Proxy> {
  const proxy = createProxy({ http: FREE, endpoints: () => [], ...options })
  cleanups.push(async () => proxy.close(0))
  proxy.apply(ir)
  await proxy.listen()
  return proxy
}

async function ask(port: number): Promise<string> {
  return await new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('end', () => resolve(text))
    })
    call.on('error', reject)
    call.end()
  })
}

/** One request on a connection that stays open; resolves with the status line. */
async function askOn(socket: Socket): Promise<string> {
  socket.write('GET / HTTP/1.1\r\nhost: x.test\r\n\r\n')
  return await new Promise((resolve) =>
    socket.once('data', (chunk: Buffer) => resolve(chunk.toString().split('\r\n', 1)[0] ?? '')),
  )
}

describe('listeners of other ports', () => {
  it('come and go with the configuration, and established connections stay', async () => {
    const proxy = await start(irOf(8_081), { ports: { 8_081: FREE, 8_082: FREE } })
    const first = proxy.addressOf('http:8081')?.port ?? 0
    expect([await ask(proxy.addresses.http?.port ?? 0), await ask(first)]).toEqual(['main', '8081'])

    const socket = connect({ host: '127.0.0.1', port: first })
    expect(await askOn(socket)).toBe('HTTP/1.1 200 OK')
    proxy.apply(irOf(8_082))
    await vi.waitUntil(() => proxy.addressOf('http:8082') !== undefined)
    expect(await ask(proxy.addressOf('http:8082')?.port ?? 0)).toBe('8082')
    expect(proxy.addressOf('http:8081')).toBeUndefined()
    await expect(ask(first)).rejects.toThrow('ECONNREFUSED')
    // The listener has no routes any more; the connection of the client is its own to close.
    expect(await askOn(socket)).toBe('HTTP/1.1 404 Not Found')
    socket.destroy()

    proxy.apply(irOf(8_081, 8_082))
    await vi.waitUntil(() => proxy.addressOf('http:8081') !== undefined)
    expect(await ask(proxy.addressOf('http:8081')?.port ?? 0)).toBe('8081')
  })

  it('whose address is in use are reported, and bound once it is free; the others are served', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const { port } = other.address() as AddressInfo
    const clock = fakeClock()
    const seen: PortFaults[] = []
    const proxy = await start(irOf(8_081), {
      ports: { 8_081: { host: '127.0.0.1', port } },
      clock,
      onPortFaults: (faults) => seen.push(new Map(faults)),
    })
    expect(seen).toEqual([new Map([['http:8081', `127.0.0.1:${port} is in use by another process`]])])
    expect(await ask(proxy.addresses.http?.port ?? 0)).toBe('main')

    await new Promise((resolve) => other.close(resolve))
    await vi.waitUntil(async () => {
      await clock.advance(2_000)
      return seen.length > 1
    })
    expect(seen.at(-1)).toEqual(new Map())
    expect(await ask(port)).toBe('8081')
  })

  it('that are removed while they cannot be bound are no longer reported', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    cleanups.push(async () => new Promise((resolve) => other.close(resolve)))
    const seen: PortFaults[] = []
    const proxy = await start(irOf(8_081), {
      ports: { 8_081: { host: '127.0.0.1', port: (other.address() as AddressInfo).port } },
      onPortFaults: (faults) => seen.push(new Map(faults)),
    })
    proxy.apply(irOf())
    expect(seen.map(({ size }) => size)).toEqual([1, 0])
  })

  /** Without a proxy; `server` is that of the listener. */
  function frontsOn(address: { host: string; port: number }) {
    const server = createServer()
    const clock = fakeClock()
    const seen: PortFaults[] = []
    const fronts = new Fronts({
      create: () => server,
      addressOf: () => address,
      clock,
      onFaults: (faults) => seen.push(new Map(faults)),
    })
    cleanups.push(async () => fronts.close())
    return { fronts, server, clock, seen }
  }

  it('that are removed while they are being bound are closed', async () => {
    const { fronts, server } = frontsOn(FREE)
    const listening = once(server, 'listening')
    const opening = fronts.update(new Set(['http:8081'] as const))
    await fronts.update(new Set())
    await listening
    await opening
    await expect.poll(() => server.listening).toBe(false)
  })

  it('are tried again while their address is in use, and reported once', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    cleanups.push(async () => new Promise((resolve) => other.close(resolve)))
    const { fronts, server, clock, seen } = frontsOn({ host: '127.0.0.1', port: (other.address() as AddressInfo).port })
    let attempts = 0
    server.on('error', () => attempts++)
    await fronts.update(new Set(['http:8081'] as const))
    await vi.waitUntil(async () => {
      await clock.advance(2_000)
      return attempts >= 3
    })
    expect(seen).toHaveLength(1)
  })
})
