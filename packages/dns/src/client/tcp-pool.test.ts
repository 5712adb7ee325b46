import { EventEmitter, once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { TcpPool } from './tcp-pool.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

/** Connections are given to `serve` with their number. */
async function listen(serve: (socket: Socket, index: number) => void) {
  let count = 0
  const server = createServer((socket) =>
    serve(
      socket.on('error', () => undefined),
      count++,
    ),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const pool = new TcpPool()
  cleanups.push(
    async () => pool.close(),
    () => server.close(),
  )
  const { port } = server.address() as AddressInfo
  const ask = async (timeoutMs: number, signal?: AbortSignal) => {
    return pool.exchange({ address: '127.0.0.1', port }, Buffer.from('question'), () => true, timeoutMs, signal)
  }
  return { ask, connections: () => count }
}

const echo = (socket: Socket) => socket.on('data', (chunk) => socket.write(chunk))

it('questions share a connection that answers', async () => {
  const { ask, connections } = await listen(echo)
  await Promise.all([ask(5_000), ask(5_000)])
  expect((await ask(5_000)).toString()).toBe('question')
  expect(connections()).toBe(1)
})

it('a connection that gave no answer in time is closed, and the next question takes a new one', async () => {
  let closed: Promise<unknown> | undefined
  const { ask, connections } = await listen((socket, index) => {
    if (index > 0) echo(socket)
    else closed = once(socket.resume(), 'close')
  })
  await expect(ask(50)).rejects.toMatchObject({ code: 'TIMEOUT' })
  await closed
  expect((await ask(5_000)).toString()).toBe('question')
  expect(connections()).toBe(2)
})

it('a question that is aborted ends at once, also before it was sent, and the connection stays usable', async () => {
  const asked = new EventEmitter()
  const { ask, connections } = await listen((socket) =>
    socket.on('data', (chunk) => asked.emit('question', socket, chunk)),
  )
  const answered = once(asked, 'question').then(([socket, chunk]) => (socket as Socket).write(chunk as Buffer))
  await ask(5_000)
  await answered
  await expect(ask(5_000, AbortSignal.abort())).rejects.toMatchObject({ code: 'ABORTED' })
  const controller = new AbortController()
  const sent = once(asked, 'question')
  const waiting = ask(5_000, controller.signal)
  await sent
  controller.abort()
  await expect(waiting).rejects.toMatchObject({ code: 'ABORTED' })
  expect(connections()).toBe(1)
})

it('questions that wait are told when the server closes the connection', async () => {
  const { ask } = await listen((socket) => socket.once('data', () => socket.destroy()))
  await expect(Promise.all([ask(60_000), ask(60_000)])).rejects.toMatchObject({ code: 'NETWORK' })
})
