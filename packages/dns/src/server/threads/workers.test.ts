/** Threads that share the port: all of them answer, follow changes, and pass on what the server itself has to answer. */
import { afterEach, describe, expect, it } from 'vitest'
import { createDnsClient, type DnsClient } from '../../client/client.ts'
import { RCODE } from '../../wire/codes.ts'
import { fqdn } from '../../wire/name.ts'
import { createRRset, groupRecords } from '../../wire/record.ts'
import { TsigKey } from '../../wire/tsig.ts'
import { createZone } from '../../zone/zone-table.ts'
import { createDnsServer, type DnsServer } from '../server.ts'
import { CAN_SHARE_PORT } from './workers.ts'

const ORIGIN = fqdn('example.test')
const KEY = new TsigKey('k', 'hmac-sha256', 'c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0')
const open: { close(): Promise<void> }[] = []

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close()
})

async function start(): Promise<{ server: DnsServer; client: DnsClient }> {
  const server = await createDnsServer({
    zones: [
      createZone(ORIGIN, [
        createRRset(ORIGIN, 'SOA', 60, ['ns.example.test. host.example.test. 1 3600 600 86400 60']),
        createRRset('www.example.test', 'A', 60, ['192.0.2.1']),
      ]),
    ],
    suspended: [fqdn('later.test')],
    listen: [{ address: '127.0.0.1', port: 0 }],
    keys: [KEY],
    defaultPolicy: { updateKeys: [KEY.name], transferKeys: [KEY.name] },
    workers: 2,
  })
  const client = createDnsClient({ timeoutMs: 2000 })
  open.push(server, client)
  return { server, client }
}

describe('a server with workers', () => {
  it('answers, updates and transfers as with one, whether the threads can share a port or not', async () => {
    const { server, client } = await start()
    const at = server.addresses[0]!
    const ask = async (name: string) => {
      // Each query has a socket, and so a port, of its own: the kernel distributes them over the threads.
      const replies = await Promise.all(
        Array.from({ length: 16 }, async () => client.query({ server: at, name, type: 'A' })),
      )
      return new Set(
        replies.map(({ message }) =>
          message.rcode === RCODE.NOERROR
            ? (groupRecords(message.answers)[0]?.values[0] ?? '')
            : `rcode ${message.rcode}`,
        ),
      )
    }
    expect(await ask('www.example.test')).toEqual(new Set(['192.0.2.1']))
    expect(await ask('a.later.test')).toEqual(new Set([`rcode ${RCODE.REFUSED}`]))
    const set = createRRset('new.example.test', 'A', 60, ['192.0.2.9'])
    const { message } = await client.update({ server: at, zone: ORIGIN, key: KEY, operations: [{ kind: 'add', set }] })
    expect(message.rcode).toBe(RCODE.NOERROR)
    await expect.poll(async () => ask('new.example.test'), { timeout: 5000 }).toEqual(new Set(['192.0.2.9']))
    server.swap(server.findZone(ORIGIN)!.with([{ kind: 'delete', name: set.name, type: 'A' }]))
    await expect
      .poll(async () => ask('new.example.test'), { timeout: 5000 })
      .toEqual(new Set([`rcode ${RCODE.NXDOMAIN}`]))
    const records = await client.transferRRsets({ server: at, zone: ORIGIN, key: KEY })
    expect(records).toHaveLength(2)
    server.suspend(ORIGIN)
    await expect
      .poll(async () => ask('www.example.test'), { timeout: 5000 })
      .toEqual(new Set([`rcode ${RCODE.REFUSED}`]))
    await expect.poll(() => server.counters().queries, { timeout: 5000 }).toBeGreaterThan(60)
  })

  it('says whether this Node can share a port', () => {
    const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
    expect(CAN_SHARE_PORT).toBe(major * 100 + minor >= 2301)
  })
})
