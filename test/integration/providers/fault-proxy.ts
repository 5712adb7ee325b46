/**
 * A proxy on loopback that injects faults: no answer, connection refused, a lost reply to a change that was made, or a
 * given answer. TCP, and UDP on the same port for DNS; it parses of the protocols only what distinguishes a change from a
 * query.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

type FaultMode =
  | 'pass'
  /** Requests are taken and never answered. */
  | 'hang'
  | 'down'
  /** The next change is made, and its answer is lost; later ones pass. */
  | 'lose-reply'
  /** Changes are cut off before they arrive; questions pass. */
  | 'refuse-writes'

export interface Faults {
  mode: FaultMode
  /** Requests that arrived, whatever became of them, and how many of them were changes. */
  readonly counts: { requests: number; writes: number }
  /** Changes that still pass before `mode` becomes `down`. */
  writesLeft: number | undefined
}

interface FaultProxy extends Faults {
  readonly address: { readonly address: string; readonly port: number }
  /** Where requests go; may be changed at any time. */
  target: { readonly address: string; readonly port: number }
  /** Called with each request before it is forwarded. */
  onRequest: (() => void) | undefined
  /** Sent instead of forwarding, for as many requests as there are. */
  readonly canned: Buffer[]
  close(): Promise<void>
}

/** A DNS message over TCP with opcode UPDATE (RFC 1035 §4.1.1, §4.2.2; RFC 2136 §2.2). */
export const isDnsUpdate = (chunk: Buffer): boolean => chunk.length > 4 && (((chunk[4] ?? 0) >> 3) & 15) === 5

export const isHttpWrite = (chunk: Buffer): boolean => /^(POST|PATCH|PUT|DELETE) /.test(chunk.toString('latin1', 0, 8))

export async function startFaultProxy(
  target: { address: string; port: number },
  isWrite: (chunk: Buffer) => boolean,
): Promise<FaultProxy> {
  const open = new Set<Socket>()
  const server = createServer((client) => serve(client))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const udp = createSocket('udp4')
  udp.bind(port, '127.0.0.1')
  await once(udp, 'listening')

  const proxy: FaultProxy = {
    address: { address: '127.0.0.1', port },
    target,
    mode: 'pass',
    counts: { requests: 0, writes: 0 },
    writesLeft: undefined,
    onRequest: undefined,
    canned: [],
    async close() {
      for (const socket of open) socket.destroy()
      udp.close()
      server.close()
      await once(server, 'close')
    },
  }

  udp.on('message', (message, from) => {
    proxy.counts.requests++
    proxy.onRequest?.()
    if (proxy.mode === 'hang' || proxy.mode === 'down') return
    const upstream = createSocket('udp4')
    upstream.once('message', (reply) => {
      udp.send(reply, from.port, from.address)
      upstream.close()
    })
    upstream.send(message, proxy.target.port, proxy.target.address)
  })

  function serve(client: Socket): void {
    open.add(client)
    client.on('error', () => client.destroy())
    if (proxy.mode === 'down') {
      client.resetAndDestroy()
      return
    }
    const upstream = connect(proxy.target.port, proxy.target.address)
    open.add(upstream)
    upstream.on('error', () => client.destroy())
    upstream.on('close', () => client.end())
    client.on('close', () => {
      upstream.destroy()
      open.delete(client)
      open.delete(upstream)
    })
    let isDeaf = false
    upstream.on('data', (reply) => {
      if (!isDeaf && proxy.mode !== 'hang') client.write(reply)
    })
    client.on('data', (chunk) => {
      const isChange = isWrite(chunk)
      proxy.counts.requests++
      if (isChange) proxy.counts.writes++
      proxy.onRequest?.()
      if (isChange && proxy.writesLeft !== undefined && proxy.writesLeft-- === 0) proxy.mode = 'down'
      if (proxy.mode === 'down' || (proxy.mode === 'refuse-writes' && isChange)) {
        client.resetAndDestroy()
        return
      }
      if (proxy.mode === 'hang') return
      const canned = isChange ? proxy.canned.shift() : undefined
      if (canned !== undefined) {
        client.end(canned)
        return
      }
      if (proxy.mode === 'lose-reply' && isChange) {
        isDeaf = true
        proxy.mode = 'pass'
      }
      upstream.write(chunk)
    })
  }
  return proxy
}
