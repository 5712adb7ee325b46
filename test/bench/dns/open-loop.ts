/**
 * An open-loop client: sends at a fixed rate whatever comes back, and prints the latencies in milliseconds as JSON.
 * Arguments: port, questions a second, seconds, names in the zone.
 */
import { createSocket } from 'node:dgram'

const [port, rate, seconds, names] = process.argv.slice(2).map(Number) as [number, number, number, number]

const SOCKETS = 8
const sentAt = new Float64Array(SOCKETS * 65_536)
const latencies: number[] = []
let sent = 0

function question(id: number, n: number): Buffer {
  const label = `host-${n}`
  return Buffer.concat([
    Buffer.of(id >> 8, id & 255, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, label.length),
    Buffer.from(label),
    Buffer.from('0562656e63680474657374000001 0001'.replace(' ', ''), 'hex'),
  ])
}

const sockets = Array.from({ length: SOCKETS }, (_, s) => {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4 << 20 })
  socket.on('message', (answer) => {
    const slot = s * 65_536 + ((answer[0]! << 8) | answer[1]!)
    if (sentAt[slot]! > 0) latencies.push(performance.now() - sentAt[slot]!)
    sentAt[slot] = 0
  })
  return socket
})
await Promise.all(
  sockets.map(async (socket) => new Promise<void>((resolve) => socket.connect(port, '127.0.0.1', resolve))),
)

const startedAt = performance.now()
const total = rate * seconds
await new Promise<void>((resolve) => {
  const step = () => {
    const due = Math.min(total, ((performance.now() - startedAt) / 1000) * rate)
    for (; sent < due; sent++) {
      const s = sent % SOCKETS
      const id = Math.floor(sent / SOCKETS) & 0xffff
      sentAt[s * 65_536 + id] = performance.now()
      sockets[s]!.send(question(id, (sent * 7919) % names))
    }
    if (sent >= total) resolve()
    else setImmediate(step)
  }
  step()
})
await new Promise((resolve) => setTimeout(resolve, 500))
for (const socket of sockets) socket.close()
// A question that was not answered has waited for ever.
const answered = latencies.length
while (latencies.length < sent) latencies.push(Number.MAX_VALUE)
latencies.sort((a, b) => a - b)
const at = (share: number) => latencies[Math.floor(latencies.length * share)]!
process.stdout.write(`${JSON.stringify({ sent, answered, p50: at(0.5), p99: at(0.99) })}\n`)
