/**
 * The TCP port of xDS with the limits of every listener: gRPC gets connections from a table, and one counts as idle until it
 * has a stream. A socket file needs none; its folder is private.
 */
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { ConnectionTable, type ConnectionLimits } from '@seamark/kube'
import type { ConnectionInjector } from '@grpc/grpc-js'

/** A stream is served for each Envoy; the rest is room for those that connect again. */
const XDS_LIMITS = {
  maxConnections: 512,
  maxPerAddress: 256,
  headersTimeoutMs: 10_000,
  idleTimeoutMs: 60_000,
} as const satisfies ConnectionLimits

export interface LimitedPort {
  /** 0 before `listen` resolves. */
  readonly port: number
  listen(host: string, port: number): Promise<number>
  /** @param peer of a stream, as gRPC writes it. @returns to be called when the stream ends */
  follow(peer: string): () => void
  close(): void
}

export function limitedPort(injector: ConnectionInjector, limits: ConnectionLimits = XDS_LIMITS): LimitedPort {
  const connections = new ConnectionTable(limits)
  const sockets = new Set<Socket>()
  let bound = 0
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy())
    if (!connections.add(socket)) return
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    injector.injectConnection(socket)
  })
  return {
    get port() {
      return bound
    },
    async listen(host, port) {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen({ host, port }, () => {
          server.off('error', reject)
          resolve()
        })
      })
      bound = (server.address() as AddressInfo).port
      return bound
    },
    follow(peer) {
      const colon = peer.lastIndexOf(':')
      const address = {
        remoteAddress: peer.slice(0, colon),
        remotePort: Number(peer.slice(colon + 1)),
        localPort: bound,
      }
      connections.begin(address)
      let isOver = false
      return () => {
        if (!isOver) connections.end(address)
        isOver = true
      }
    },
    close() {
      connections.close()
      server.close()
      injector.destroy()
      for (const socket of sockets) socket.destroy()
    },
  }
}
