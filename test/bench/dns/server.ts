/** Our server with one zone file, as `seamark dns serve` runs it. */
import { readFileSync } from 'node:fs'
import { createDnsServer, isZoneFileError, loadZoneFile } from '@seamark/dns'

const zone = loadZoneFile(readFileSync(process.argv[2]!), { file: process.argv[2]! })
if (isZoneFileError(zone)) throw new Error(`${zone.file}:${zone.line}: ${zone.reason}`)
const server = await createDnsServer({ zones: [zone], listen: [{ address: '127.0.0.1', port: 0 }] })
process.stdout.write(`ready 127.0.0.1:${server.addresses[0]!.port}\n`)
process.on('SIGTERM', () => void server.close().then(() => process.exit(0)))
