/**
 * One question and its answer by UDP. A fresh connected socket per try: the kernel picks a random port and drops packets from
 * other addresses, and whatever does not pass `isAnswer` is ignored, so that a forged packet costs time, not truth.
 */
import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { DnsError } from '../error.ts'

export interface ServerAddress {
  readonly address: string
  /** @default 53 */
  readonly port?: number
}

export const serverText = (server: ServerAddress): string =>
  `${isIPv6(server.address) ? `[${server.address}]` : server.address}:${server.port ?? 53}`

/** Resolves with the first packet that passes; rejects with TIMEOUT, NETWORK or ABORTED. The socket is closed by then. */
export async function exchangeUdp(
  server: ServerAddress,
  question: Uint8Array,
  isAnswer: (packet: Buffer) => boolean,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const where = serverText(server)
    const socket = createSocket(isIPv6(server.address) ? 'udp6' : 'udp4')
    let isDone = false
    const finish = (settle: () => void) => {
      if (isDone) return
      isDone = true
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      socket.close(settle)
    }
    const abort = () => finish(() => reject(new DnsError('ABORTED', `the query to ${where} was aborted`)))
    const fail = (cause: Error) =>
      finish(() => reject(new DnsError('NETWORK', `cannot query ${where} over UDP: ${cause.message}`, { cause })))
    const timer = setTimeout(() => {
      finish(() => reject(new DnsError('TIMEOUT', `no answer from ${where} over UDP in ${timeoutMs} ms`)))
    }, timeoutMs)
    socket.on('error', fail)
    socket.on('message', (packet) => {
      if (isAnswer(packet)) finish(() => resolve(packet))
    })
    if (signal?.aborted === true) {
      abort()
      return
    }
    signal?.addEventListener('abort', abort)
    socket.connect(server.port ?? 53, server.address, () => {
      if (isDone) return
      socket.send(question, (error) => {
        if (error !== null) fail(error)
      })
    })
  })
}
