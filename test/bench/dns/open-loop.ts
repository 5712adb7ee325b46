/**
 * An open-loop client: questions leave by a fixed plan whatever comes back, and latencies are printed in milliseconds as JSON.
 * A latency counts from the planned moment, so that a question that leaves late is late (no coordinated omission). The first
 * seconds, while the client's own code is being compiled, are sent by the same plan and left out.
 * Arguments: port, questions a second, seconds, names in the zone.
 */
import { createSocket } from 'node:dgram'

const [port, rate, seconds, names] = process.argv.slice(2).map(Number) as [number, number, number, number]

const WARM_UP_SECONDS = 1.5
const SOCKETS = 8
const IDS = 65_536
/** How long after the last question an answer may come. */
const DRAIN_MS = 500

/** One packet for each name, made before the clock starts; the id is written as it leaves. */
const packets = Array.from({ length: names }, (_, n) => {
  const label = `host-${n}`
  return Buffer.concat([
    Buffer.of(0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, label.length),
    Buffer.from(label),
    Buffer.from('0562656e6368047465737400', 'hex'),
    Buffer.of(0, 1, 0, 1),
  ])
})

const total = Math.floor(rate * (WARM_UP_SECONDS + seconds))
const first = Math.floor(rate * WARM_UP_SECONDS)
const latencies = new Float64Array(total).fill(Number.POSITIVE_INFINITY)
/** Which question went out last under a socket's id, or -1. */
const waiting = new Int32Array(SOCKETS * IDS).fill(-1)
const gapMs = 1000 / rate
let startedAt = 0

const sockets = Array.from({ length: SOCKETS }, (_, s) => {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4 << 20 })
  socket.on('message', (answer) => {
    const slot = s * IDS + ((answer[0]! << 8) | answer[1]!)
    const asked = waiting[slot]!
    if (asked === -1) return
    waiting[slot] = -1
    latencies[asked] = performance.now() - (startedAt + asked * gapMs)
  })
  return socket
})
await Promise.all(
  sockets.map(async (socket) => new Promise<void>((resolve) => socket.connect(port, '127.0.0.1', resolve))),
)

/**
 * The least it sleeps when no question is due; what becomes due meanwhile leaves late and counts so. Without this rest the
 * client keeps a core busy, and on a machine with two its answers wait whenever anything but the server runs.
 */
const REST_MS = 0.1
const never = new Int32Array(new SharedArrayBuffer(4))

let sent = 0
startedAt = performance.now()
await new Promise<void>((resolve) => {
  const step = () => {
    // Late ones leave in small groups, so that the answers that wait meanwhile are read between them.
    const due = Math.min(total, (performance.now() - startedAt) / gapMs)
    for (let burst = 0; sent < due && burst < 16; burst++) {
      const s = sent % SOCKETS
      const id = Math.floor(sent / SOCKETS) % IDS
      const packet = packets[(sent * 7919) % names]!
      packet[0] = id >> 8
      packet[1] = id
      waiting[s * IDS + id] = sent++
      sockets[s]!.send(packet)
    }
    if (sent >= total) resolve()
    else {
      const early = startedAt + sent * gapMs - performance.now()
      if (early > 0) Atomics.wait(never, 0, 0, Math.max(early, REST_MS))
      setImmediate(step)
    }
  }
  step()
})
const sentAt = performance.now()
await new Promise((resolve) => setTimeout(resolve, DRAIN_MS))
for (const socket of sockets) socket.close()

// A question that was not answered has an infinite latency.
const counted = latencies.subarray(first)
const percentile = (sorted: Float64Array, share: number) =>
  Math.min(Number.MAX_VALUE, sorted[Math.floor(sorted.length * share)] ?? Number.MAX_VALUE)
const all = counted.toSorted()
process.stdout.write(
  `${JSON.stringify({
    sent: counted.length,
    answered: counted.filter((latency) => latency !== Number.POSITIVE_INFINITY).length,
    behindMs: sentAt - startedAt - total * gapMs,
    p50: percentile(all, 0.5),
    p90: percentile(all, 0.9),
    p99: percentile(all, 0.99),
  })}\n`,
)
