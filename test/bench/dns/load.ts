/** Loads a zone file in a fresh process and prints seconds, and octets of heap and external memory per name. Needs --expose-gc. */
import { readFileSync } from 'node:fs'
import { isZoneFileError, loadZoneFile } from '@seamark/dns'

function used(): number {
  globalThis.gc!()
  globalThis.gc!()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const file = process.argv[2]!
// The text stays alive through both readings, so it is in neither difference.
const text = readFileSync(file)
const before = used()
const startedAt = performance.now()
const zone = loadZoneFile(text, { file })
const seconds = (performance.now() - startedAt) / 1000
if (isZoneFileError(zone)) throw new Error(`${zone.file}:${zone.line}: ${zone.reason}`)
const bytes = (used() - before) / zone.names
process.stdout.write(`${JSON.stringify({ seconds, bytes, names: zone.names, text: text.length })}\n`)
