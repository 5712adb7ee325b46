/** Answers that are sent later than the query was read: how many a connection may have, and what a peer gets that does not read. */
import { connect, type Socket } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { Deframer, frame } from '../../wire/tcp-frame.ts'
import { listenTcp, type TcpListener } from './tcp.ts'

const QUERIES = 1_000
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

/** Every answer is deferred. */
async function listenDeferring(answer: () => Promise<Uint8Array>, idleMs = 60_000) {
  let taken = 0
  const listener: TcpListener = await listenTcp({
    address: '127.0.0.1',
    port: 0,
    idleMs,
    answerer: {
      isDeferred: true,
      answer: (_query, _length, peer) => {
        taken++
        peer.defer?.(answer())
        return 0
      },
    },
    transfer: () => undefined,
    onError: (error) => {
      throw error
    },
  })
  cleanups.push(() => listener.close())
  return { port: listener.port, taken: () => taken, connections: listener.connections }
}

function sendQueries(port: number): Socket {
  const socket = connect({ host: '127.0.0.1', port })
  socket.on('error', () => undefined)
  cleanups.push(() => socket.destroy())
  socket.write(Buffer.concat(Array.from({ length: QUERIES }, () => frame(Buffer.alloc(12)))))
  return socket
}

it('a connection has at most 100 updates in progress, and every one is answered', async () => {
  const pending: ((answer: Uint8Array) => void)[] = []
  const { port, taken } = await listenDeferring(async () => new Promise((resolve) => pending.push(resolve)))
  const socket = sendQueries(port)
  let answers = 0
  const deframer = new Deframer()
  socket.on('data', (chunk: Buffer) => {
    deframer.push(chunk)
    while (deframer.next() !== undefined) answers++
  })
  await expect.poll(taken).toBe(100)
  pending.shift()?.(new Uint8Array(12))
  await expect.poll(taken).toBe(101)
  await expect
    .poll(() => {
      for (const answer of pending.splice(0)) answer(new Uint8Array(12))
      return answers
    })
    .toBe(QUERIES)
})

it('nothing more is read from a peer that does not read its deferred answers, until it is closed as idle', async () => {
  const { port, taken, connections } = await listenDeferring(async () => new Uint8Array(65_000), 100)
  sendQueries(port)
  await expect.poll(taken).toBeGreaterThan(0)
  await expect.poll(connections, { timeout: 20_000 }).toBe(0)
  expect(taken()).toBeLessThan(QUERIES)
})
