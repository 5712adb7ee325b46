/**
 * Program: a client that sends requests with long header fields over connections of HTTP/2, as many as each takes at a time, and
 * waits for the answers. Arguments: port, host, connections, octets of the header fields. Prints `sent`, and how many were answered by
 * then; then it waits.
 */
import { connect } from 'node:http2'
import { setTimeout as pause } from 'node:timers/promises'

const [port = '', host = '', connections = '', octets = ''] = process.argv.slice(2)
/** Requests of a connection. */
const STREAMS = 100
/** A field is shorter than what a server takes as one. */
const FIELD_OCTETS = 5_000
/** After so many requests there is a pause: what is tried is what is held, and not how fast it is sent. */
const GROUP = 10
const PAUSE_MS = 10

const fields: Record<string, string> = {}
for (let left = Number(octets), index = 0; left > 0; left -= FIELD_OCTETS, index++)
  fields[`x-padding-${index}`] = 'x'.repeat(Math.min(left, FIELD_OCTETS))
const counts = new Map<number | undefined, number>()

for (let index = 0; index < Number(connections); index++) {
  const session = connect(`http://127.0.0.1:${port}`)
  session.on('error', () => undefined)
  for (let count = 0; count < STREAMS; count++) {
    const stream = session.request({ ':authority': host, ...fields })
    let status: number | undefined
    stream.on('response', (headers) => (status = headers[':status']))
    stream.on('error', () => undefined).resume()
    stream.on('close', () => counts.set(status, (counts.get(status) ?? 0) + 1))
    if (count % GROUP === 0) await pause(PAUSE_MS)
  }
}
process.stdout.write(`sent ${[...counts].map(([status, count]) => `${count} answered with ${status}`).join(', ')}\n`)
setInterval(() => undefined, 60_000)
