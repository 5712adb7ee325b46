/**
 * Changes one record at a time in a zone of many names that is being served and asked, and prints the milliseconds that a
 * change takes: for so long no question is answered. Argument: names.
 */
import { createDnsClient, createDnsServer, fqdn, isZoneFileError, loadZoneFile } from '@seamark/dns'
import { zoneText } from './servers.ts'

const names = Number(process.argv[2])
const zone = loadZoneFile(zoneText(names))
if (isZoneFileError(zone)) throw new Error(zone.reason)
const server = await createDnsServer({ zones: [zone], listen: [{ address: '127.0.0.1', port: 0 }] })
const client = createDnsClient()
const durations: number[] = []
for (let i = 0; i < 600; i++) {
  const set = {
    name: fqdn(`host-${(i * 7919) % names}.bench.test`),
    type: 'A',
    ttl: 60,
    values: [`192.0.2.${i % 250}`],
  }
  const startedAt = performance.now()
  server.swap(server.findZone(zone.origin)!.with([{ kind: 'put', set }]))
  if (i >= 100) durations.push(performance.now() - startedAt)
  const { message } = await client.query({ server: server.addresses[0]!, name: set.name, type: 'A' })
  if (message.answers.length !== 1 || message.answers[0]!.data.at(-1) !== i % 250)
    throw new Error('the answer is not the new one')
}
await client.close()
await server.close()
durations.sort((a, b) => a - b)
process.stdout.write(
  `${JSON.stringify({ median: durations[durations.length >> 1], p95: durations[Math.floor(durations.length * 0.95)] })}\n`,
)
