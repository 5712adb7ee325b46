/**
 * `node --import tsx scripts/release.ts --base DIGEST`: pins the base image of the Containerfile to a digest, which the releaser
 * looked up for all platforms (`skopeo inspect --raw`, or what `docker pull` printed). Without `--base` it only checks that the
 * base is pinned, and exits with 1 when it is not.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { findUnpinnedBases, pinBase } from './supply-chain.ts'

const path = join(import.meta.dirname, '../Containerfile')
const { base } = parseArgs({ options: { base: { type: 'string' } } }).values
const before = readFileSync(path, 'utf8')
try {
  const after = base === undefined ? before : pinBase(before, base)
  if (after !== before) writeFileSync(path, after)
  const faults = findUnpinnedBases(after)
  for (const fault of faults) console.error(fault)
  process.exitCode = faults.length === 0 ? 0 : 1
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
}
