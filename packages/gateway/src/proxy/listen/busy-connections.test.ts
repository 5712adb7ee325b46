import { connect, createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import type { Ir } from '../../ir/model.ts'
import { forwardTo, irOf, listen, route, start } from '../../../testing/proxy-fixture.ts'

/** As 10 000 and 5 000. */
const LIMITS = { maxConnections: 100, maxPerAddress: 50 }
/** In addresses of one tenant. */
const ADDRESSES = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5', '127.0.0.6', '127.0.0.7', '127.0.0.8']
const UPGRADE = 'connection: upgrade\r\nupgrade: websocket\r\n'

/** A tenant's route that never ends for silence, beside the host of another tenant. */
function irWithVictim(): Ir {
  const ir = irOf([route(forwardTo(['one'], { idleTimeoutMs: 0, timeoutMs: 0, hasWebsocket: true }))])
  const [listener] = ir.listeners
  const victim = { host: 'victim.test', routes: [route({ kind: 'direct', status: 200, body: 'ok' })] }
  return { ...ir, listeners: [{ protocol: 'http', hosts: [...(listener?.hosts ?? []), victim] }] }
}

it.each([
  ['bodies that are not completed', 'POST / HTTP/1.1\r\nhost: x.test\r\ncontent-length: 10\r\n\r\n', ''],
  ['bodies of an octet now and then', 'POST / HTTP/1.1\r\nhost: x.test\r\ncontent-length: 9999\r\n\r\n', 'x'],
  ['tunnels', `GET / HTTP/1.1\r\nhost: x.test\r\n${UPGRADE}\r\n`, ''],
])('connections with %s, of seven addresses, close the proxy for nobody', async (_name, octets, drip) => {
  const sockets = new Set<Socket>()
  const held: Socket[] = []
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()))
  const silent = await listen(
    createServer((socket) => {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.once('data', (head) => {
        if (head.includes('websocket'))
          socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n')
      })
    }),
  )
  const { port } = await start(irWithVictim(), { one: [silent] }, { limits: LIMITS })
  const open = async (localAddress: string): Promise<Socket> => {
    const socket = connect({ host: '127.0.0.1', port, localAddress })
    sockets.add(socket)
    socket.on('error', () => undefined).resume()
    await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve))
    return socket
  }
  const victim = async () => {
    const socket = await open('127.0.0.9')
    let text = ''
    socket.on('data', (part: Buffer) => (text += part.toString()))
    socket.write('GET / HTTP/1.1\r\nhost: victim.test\r\nconnection: close\r\n\r\n')
    await new Promise((resolve) => (socket.closed ? resolve(undefined) : socket.once('close', resolve)))
    return text.slice(0, 15)
  }
  for (const address of ADDRESSES)
    for (let index = 0; index < LIMITS.maxPerAddress; index++) {
      const socket = await open(address)
      socket.write(octets)
      held.push(socket)
      if (index % 10 === 0) {
        if (drip !== '') for (const each of held) if (each.writable) each.write(drip)
        expect(await victim()).toBe('HTTP/1.1 200 OK')
      }
    }
  expect(await victim()).toBe('HTTP/1.1 200 OK')
})
