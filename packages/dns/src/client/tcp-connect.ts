/** Opens a TCP connection to a server by a deadline. Used by pipelined queries (tcp-pool.ts) and transfers. */
import { connect, type Socket } from 'node:net'
import { DnsError } from '../error.ts'
import { type ServerAddress, serverText } from './udp-exchange.ts'

export async function connectTcp(server: ServerAddress, timeoutMs: number, signal?: AbortSignal): Promise<Socket> {
  const where = serverText(server)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: server.address, port: server.port ?? 53, noDelay: true })
    const fail = (error: DnsError) => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      socket.destroy()
      reject(error)
    }
    const abort = () => fail(new DnsError('ABORTED', `the connection to ${where} was aborted`))
    const timer = setTimeout(
      () => fail(new DnsError('TIMEOUT', `no connection to ${where} in ${timeoutMs} ms`)),
      timeoutMs,
    )
    // Kept for the life of the socket: a later reset must not be an uncaught error.
    socket.on('error', (cause) =>
      fail(new DnsError('NETWORK', `cannot connect to ${where}: ${cause.message}`, { cause })),
    )
    socket.once('connect', () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      resolve(socket)
    })
    if (signal?.aborted === true) abort()
    else signal?.addEventListener('abort', abort)
  })
}
