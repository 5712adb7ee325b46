/** The ports of the DNS server: free, or answered by a manager that runs. */
import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { createDnsClient } from '@seamark/dns'
import { messageOf } from '@seamark/kube'
import type { ManagerConfiguration } from '@seamark/operator'
import type { Finding } from './finding.ts'

const LOOPBACK = { '': '127.0.0.1', '0.0.0.0': '127.0.0.1', '::': '::1' } as const

export async function checkDnsPorts({ dns }: ManagerConfiguration): Promise<Finding[]> {
  return Promise.all(
    dns.listen.map(async (text): Promise<Finding> => {
      const at = /^(?:\[(?<v6>[^\]]+)\]|(?<host>[^:]*)):(?<port>\d+)$/.exec(text)?.groups ?? {}
      const host = at['v6'] ?? at['host'] ?? ''
      const port = Number(at['port'])
      const taken = await Promise.all([bindUdp(host, port), bindTcp(host, port)]).then(
        () => undefined,
        (error: NodeJS.ErrnoException) => error,
      )
      if (taken === undefined) return { topic: 'DNS ports', state: 'ok', message: `${text} can be opened` }
      const zone = dns.zones[0]?.split('=')[0] ?? '.'
      const address = LOOPBACK[host as keyof typeof LOOPBACK] ?? host
      if (taken.code === 'EADDRINUSE' && (await isAnswered({ address, port }, zone)))
        return { topic: 'DNS ports', state: 'ok', message: `${text} is open, and answers for ${zone}` }
      const todo =
        taken.code === 'EACCES'
          ? 'use a port from 1024, as the chart does behind its Service'
          : 'end the other program, or change dns.listen'
      return { topic: 'DNS ports', state: 'fault', message: `${text} cannot be opened: ${messageOf(taken)}; ${todo}` }
    }),
  )
}

async function bindUdp(host: string, port: number): Promise<void> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.bind(port, host === '' ? undefined : host, resolve)
    })
  } finally {
    socket.close()
  }
}

async function bindTcp(host: string, port: number): Promise<void> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host === '' ? undefined : host, resolve)
  })
  await new Promise((resolve) => server.close(resolve))
}

async function isAnswered(server: { address: string; port: number }, zone: string): Promise<boolean> {
  const client = createDnsClient({ tries: 1 })
  try {
    const name = zone.endsWith('.') ? zone : `${zone}.`
    const { message } = await client.query({ server, name, type: 'SOA' })
    return message.answers.length > 0
  } catch {
    return false
  } finally {
    await client.close()
  }
}
