/**
 * Program of gateway-backends.ts: clients that send, without a pause and without waiting for answers, as many requests or chunks as
 * a packet can have. Arguments: port, flood, connections, seconds.
 */
import { connect, type Socket } from 'node:net'

const [port = '0', flood = '', connections = '0', seconds = '0'] = process.argv.slice(2)
const host = 'host: tenant.test\r\n'
const chunked = `POST / HTTP/1.1\r\n${host}transfer-encoding: chunked\r\n\r\n`

/** What a connection begins with, and what it repeats. */
const FLOODS: Readonly<Record<string, readonly [first: string, repeated: string]>> = {
  requests: ['', `GET / HTTP/1.1\r\n${host}\r\n`.repeat(500)],
  trailers: ['', `${chunked}0\r\n${'x: y\r\n'.repeat(200)}\r\n`],
  chunks: [chunked, '1\r\nx\r\n'.repeat(3_000)],
}

const [first, repeated] = FLOODS[flood] ?? ['', '']
const until = performance.now() + Number(seconds) * 1_000
let packets = 0

function send(socket: Socket): void {
  while (performance.now() < until && !socket.destroyed) {
    packets++
    if (!socket.write(repeated)) return void socket.once('drain', () => setImmediate(send, socket))
  }
}

for (let count = 0; count < Number(connections); count++) {
  const socket = connect(Number(port), '127.0.0.1', () => {
    socket.write(first)
    send(socket)
  })
  socket.on('error', () => undefined).resume()
}
setTimeout(
  () => {
    process.stdout.write(`sent ${packets}\n`)
    process.exit()
  },
  Number(seconds) * 1_000,
)
