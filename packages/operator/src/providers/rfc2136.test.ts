import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { rfc2136Provider } from './rfc2136.ts'

const ZONE = 'a.test.'
const zone = { id: ZONE, name: ZONE }
const { signal } = new AbortController()
const batch = [{ from: undefined, to: { name: `www.${ZONE}`, type: 'A', ttl: 60, values: ['192.0.2.1'] } }]

let server: Server | undefined
afterEach(async () => {
  const closing = server
  server = undefined
  if (closing !== undefined) await new Promise<void>((resolve) => closing.close(() => resolve()))
})

/** A server that answers every update with this code. */
async function answering(rcode: number) {
  const updates: Buffer[] = []
  server = createServer((socket) => {
    let unread = Buffer.alloc(0)
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      unread = Buffer.concat([unread, chunk])
      while (unread.length >= 2 && unread.length >= 2 + unread.readUInt16BE(0)) {
        const message = Buffer.from(unread.subarray(2, 2 + unread.readUInt16BE(0)))
        unread = unread.subarray(2 + message.length)
        updates.push(message)
        const reply = Buffer.alloc(14)
        reply.writeUInt16BE(12, 0)
        message.copy(reply, 2, 0, 2)
        reply.writeUInt16BE(0xa800 | rcode, 4)
        socket.write(reply)
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const provider = rfc2136Provider({ name: 'bind', server: { address: '127.0.0.1', port }, zones: [ZONE] })
  return { provider, updates }
}

describe('an update by RFC 2136', () => {
  it.each([
    ['SERVFAIL', 2, 'ProviderUnavailable', 'unknown'],
    ['FORMERR', 1, 'RecordRejected', 'rejected'],
    ['YXRRSET', 7, 'BaseMoved', 'moved'],
    ['NXRRSET', 8, 'BaseMoved', 'moved'],
    ['NOTZONE', 10, 'RecordRejected', 'rejected'],
    ['REFUSED', 5, 'PermissionDenied', 'later'],
  ] as const)('that is answered with %s is %3$s, with the outcome %4$s', async (_name, rcode, code, outcome) => {
    const { provider, updates } = await answering(rcode)
    await expect(provider.apply(zone, batch, signal)).rejects.toMatchObject({ code, outcome })
    // After REFUSED or SERVFAIL one without operations finds out whether the cause is the record.
    expect(updates).toHaveLength(rcode === 5 || rcode === 2 ? 2 : 1)
    await provider.close?.()
  })
})
