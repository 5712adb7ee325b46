/**
 * Changes one record at a time on our server and asks a BIND secondary until it answers the new value; prints the 99th
 * percentile and the median in seconds. Arguments: names, changes.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  createDnsClient,
  createDnsServer,
  createRRset,
  fqdn,
  isZoneFileError,
  loadZoneFile,
  TsigKey,
} from '@seamark/dns'
import { freePort, startBindSecondary } from '../../integration/dns/peers.ts'
import { zoneText } from './servers.ts'

const [names = 0, changes = 0] = process.argv.slice(2).map(Number)
const secret = Buffer.alloc(32, 3).toString('base64')
const key = new TsigKey('bench', 'hmac-sha256', secret)
const zone = loadZoneFile(zoneText(names))
if (isZoneFileError(zone)) throw new Error(zone.reason)
const port = await freePort()
const server = await createDnsServer({
  zones: [zone],
  keys: [key],
  listen: [{ address: '127.0.0.1', port: 0 }],
  defaultPolicy: { transferKeys: [key.name], secondaries: [{ address: '127.0.0.1', port, key: key.name }] },
})
const bind = await startBindSecondary(
  'bench.test',
  server.addresses[0]!.port,
  { name: 'bench', algorithm: 'hmac-sha256', secret },
  port,
)
const client = createDnsClient({ timeoutMs: 1000 })
const seconds: number[] = []
try {
  for (let i = 0; i < changes; i++) {
    const set = createRRset(fqdn('changed.bench.test'), 'A', 1, [`192.0.${i >> 8}.${i & 255}`])
    const startedAt = performance.now()
    server.swap(server.findZone(zone.origin)!.with([{ kind: 'put', set }]))
    for (;;) {
      const { message } = await client.query({ server: bind.address, name: set.name, type: 'A' })
      const data = message.answers[0]?.data
      if (data !== undefined && data[2] === i >> 8 && data[3] === (i & 255)) break
      await sleep(1)
    }
    seconds.push((performance.now() - startedAt) / 1000)
  }
} finally {
  await client.close()
  await bind.close()
  await server.close()
}
seconds.sort((a, b) => a - b)
const at = (part: number) => seconds[Math.min(seconds.length - 1, Math.floor(seconds.length * part))]
process.stdout.write(`${JSON.stringify({ p99: at(0.99), median: at(0.5) })}\n`)
