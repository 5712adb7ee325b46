import { once } from 'node:events'
import { createServer, request, type Server } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type ConnectionLimits, type ConnectionTable, limitConnections } from './connection-table.ts'

const LIMITS: ConnectionLimits = {
  maxConnections: 6,
  maxPerAddress: 4,
  headersTimeoutMs: 60_000,
  idleTimeoutMs: 60_000,
}

interface Served {
  readonly table: ConnectionTable
  /** Requests that arrived. */
  readonly begun: () => number
  readonly open: (localAddress?: string) => Promise<Socket>
  /** The status, on a connection of its own. */
  readonly ask: (path?: string, localAddress?: string) => Promise<number>
}

async function serve(limits: Partial<ConnectionLimits> = {}): Promise<Served> {
  let begun = 0
  const server: Server = createServer((received, response) => {
    begun++
    if (received.url !== '/never') response.end('ok')
  })
  const table = limitConnections(server, { ...LIMITS, ...limits })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  return {
    table,
    begun: () => begun,
    async open(localAddress = '127.0.0.1') {
      const socket = connect({ host: '127.0.0.1', port, localAddress })
      onTestFinished(() => void socket.destroy())
      socket.on('error', () => undefined)
      const before = table.size
      await once(socket, 'connect')
      await expect.poll(() => table.size > before || table.size >= 4).toBe(true)
      return socket
    },
    ask: async (path = '/', localAddress = '127.0.0.1') =>
      new Promise((resolve) => {
        const call = request({ host: '127.0.0.1', port, path, agent: false, localAddress }, (response) => {
          response.resume()
          resolve(response.statusCode ?? 0)
        })
        onTestFinished(() => void call.destroy())
        call.on('error', () => resolve(0))
        call.end()
      }),
  }
}

/** Also by a reset, with which `once` of node:events would reject. */
const closed = async (socket: Socket): Promise<void> =>
  new Promise((resolve) => (socket.closed ? resolve() : socket.once('close', () => resolve())))

describe('connections', () => {
  it('that are silent give way to requests, the longest idle first', async () => {
    const { open, ask, table } = await serve()
    const [first, second] = [await open(), await open()]
    await open()
    await open()
    expect(await ask()).toBe(200)
    await closed(first)
    expect(second.destroyed).toBe(false)
    await expect.poll(() => table.size).toBe(3)
  })

  it('that have had a request are closed after those that never had one', async () => {
    const { open } = await serve()
    const kept = await open()
    kept.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    await once(kept, 'data')
    const silent = [await open(), await open(), await open(), await open()]
    await closed(silent[0] ?? kept)
    kept.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    await once(kept, 'data')
    expect(kept.destroyed).toBe(false)
  })

  it('of one address do not use up those of another', async () => {
    const { open, ask } = await serve()
    const other = await open('127.0.0.2')
    for (let index = 0; index < 10; index++) await open()
    expect(await ask('/', '127.0.0.3')).toBe(200)
    expect(other.destroyed).toBe(false)
  })

  it('with requests are not closed for others: what comes beyond is refused', async () => {
    const { ask, table } = await serve()
    const waiting = Array.from({ length: 4 }, async () => ask('/never'))
    await expect.poll(() => table.size).toBe(4)
    expect(await ask()).toBe(0)
    expect(await ask('/', '127.0.0.2')).toBe(200)
    expect(waiting).toHaveLength(4)
  })

  it('of few addresses do not use up all: each has a share of what the others leave', async () => {
    const { ask, begun } = await serve({ maxConnections: 16, maxPerAddress: 8 })
    const counts: number[] = []
    for (const address of ['127.0.0.1', '127.0.0.2', '127.0.0.3']) {
      const before = begun()
      let refused = 0
      for (let index = 1; index <= 16; index++) {
        void ask('/never', address).then(() => refused++)
        await expect.poll(() => begun() + refused).toBe(before + index)
      }
      counts.push(16 - refused)
    }
    expect(counts).toEqual([8, 4, 2])
    expect(await ask('/', '127.0.0.4')).toBe(200)
  })

  it('of an address with few are taken when all have requests: the address with most loses one', async () => {
    const { ask, table } = await serve({ maxConnections: 9, maxPerAddress: 9 })
    let lost = 0
    for (let index = 0; index < 8; index++) void ask('/never').then(() => lost++)
    await expect.poll(() => table.size).toBe(8)
    for (const address of ['127.0.0.2', '127.0.0.3', '127.0.0.4']) expect(await ask('/', address)).toBe(200)
    await expect.poll(() => lost).toBeGreaterThan(0)
    expect(lost).toBeLessThanOrEqual(3)
  })

  it('whose request makes no progress give way to new ones of their own address, those with progress do not', async () => {
    const { ask, open, begun } = await serve({
      maxConnections: 8,
      maxPerAddress: 2,
      headersTimeoutMs: 200,
      stalledMs: 400,
    })
    const post = 'POST /never HTTP/1.1\r\nhost: x\r\ncontent-length: 9999\r\n\r\n'
    const [silent, active] = [await open(), await open()]
    for (const socket of [silent, active]) socket.write(post)
    await expect.poll(begun).toBe(2)
    const sending = setInterval(() => active.write('x'), 20)
    onTestFinished(() => clearInterval(sending))
    await expect.poll(async () => ask(), { timeout: 10_000 }).toBe(200)
    await closed(silent)
    expect(active.destroyed).toBe(false)
  })

  it('that send octets and no request are closed within the time of a header', async () => {
    const { open } = await serve({ headersTimeoutMs: 400 })
    const began = performance.now()
    const socket = await open()
    socket.write('GET / HTTP/1.1\r\nx: ')
    const dripping = setInterval(() => socket.write('x'), 20)
    onTestFinished(() => clearInterval(dripping))
    await closed(socket)
    // Not at the first check: what arrives in time is served.
    expect(performance.now() - began).toBeGreaterThan(150)
  })

  it('that were kept have the time of a header from the first octet of the next request', async () => {
    const { open } = await serve({ headersTimeoutMs: 200, idleTimeoutMs: 600_000 })
    const socket = await open()
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    await once(socket, 'data')
    socket.write('GET / HTTP/1.1\r\nx: ')
    await closed(socket)
    expect(socket.destroyed).toBe(true)
  })

  it('are forgotten when they end', async () => {
    const { open, table } = await serve()
    const socket = await open()
    socket.destroy()
    await expect.poll(() => table.size).toBe(0)
  })
})
