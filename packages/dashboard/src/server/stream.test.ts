import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, it } from 'vitest'
import { Channel } from './stream.ts'

const STALLED_MS = 150
const SNAPSHOT = 'x'.repeat(4_000_000)
const PIECE = 64 * 1024
/** Of a difference. */
const OCTETS = 100_000

/** A channel with a snapshot that no socket buffer holds. */
async function serveChannel() {
  let number = 0
  const channel: Channel = new Channel(
    {
      snapshot: () => ({ version: `v${number}`, pieces: piecesOf(SNAPSHOT) }),
      beat: () => ({ at: '', data: { isCurrent: true, readAt: '' } }),
    },
    'v0',
    STALLED_MS,
  )
  const responses: ServerResponse[] = []
  const stop = new AbortController()
  const server = createServer((_, response) => {
    responses.push(response)
    void channel.serve(response, undefined, stop.signal).then(() => response.end())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    channel,
    responses,
    port,
    publish: () => {
      const base = `v${number++}`
      channel.publish({ base, version: `v${number}`, changedAt: 'y'.repeat(OCTETS) })
    },
    [Symbol.asyncDispose]: async () => {
      stop.abort()
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function* piecesOf(text: string): Generator<string> {
  for (let at = 0; at < text.length; at += PIECE) yield text.slice(at, at + PIECE)
}

it('a reader that never reads costs a piece, holds nobody up, and is closed', async () => {
  await using served = await serveChannel()
  const { channel, responses, port, publish } = served
  const silent = connect(port, '127.0.0.1')
  silent.on('error', () => undefined)
  silent.pause()
  silent.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  await expect.poll(() => responses.length).toBe(1)
  const [stuck] = responses
  const reader = await new Promise<IncomingMessage>((resolve) => get({ port, agent: false }, resolve))
  let text = ''
  reader.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  let most = 0
  for (let round = 0; round < 50; round++) {
    publish()
    most = Math.max(most, stuck?.writableLength ?? 0)
    await expect.poll(() => text.includes(`id: v${round + 1}\n`)).toBe(true)
    // What is read is not looked through again.
    text = text.slice(-OCTETS)
  }
  expect(most).toBeLessThan(3 * PIECE)
  await expect.poll(() => channel.readers).toBe(1)
  expect(stuck?.destroyed).toBe(true)
  silent.destroy()
  reader.destroy()
})

it('a reader that was away for longer than differences are kept gets a snapshot, and then what follows', async () => {
  await using served = await serveChannel()
  const { responses, port, publish } = served
  const reader = await new Promise<IncomingMessage>((resolve) => get({ port, agent: false }, resolve))
  // It reads again before it is closed.
  reader.pause()
  await expect.poll(() => responses[0]?.writableNeedDrain).toBe(true)
  for (let round = 0; round < 40; round++) publish()
  let text = ''
  reader.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  reader.resume()
  await expect.poll(() => text.match(/event: \w+/g)).toEqual(['event: snapshot', 'event: snapshot', 'event: beat'])
  publish()
  await expect.poll(() => text.includes('id: v41\nevent: difference')).toBe(true)
  reader.destroy()
})
