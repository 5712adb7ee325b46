/**
 * `node --import tsx scripts/release.ts --base DIGEST`: pins the base image of the Containerfile to a digest, which the releaser
 * looked up for all platforms (`skopeo inspect --raw`, or what `docker pull` printed). Without `--base` it only checks that the
 * base is pinned, and exits with 1 when it is not.
 *
 * `… --krew ARCHIVE --uri URI`: prints the manifest of the kubectl plug-in for the packed npm package, which is published at URI.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { krewManifest } from './krew.ts'
import { findUnpinnedBases, pinBase } from './supply-chain.ts'

const root = join(import.meta.dirname, '..')
const { base, krew, uri } = parseArgs({
  options: { base: { type: 'string' }, krew: { type: 'string' }, uri: { type: 'string' } },
}).values

function printKrewManifest(archive: string): void {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const template = readFileSync(join(root, 'packaging/krew.yaml'), 'utf8')
  process.stdout.write(krewManifest(template, version, uri ?? '', readFileSync(archive)))
}

function pin(): void {
  const path = join(root, 'Containerfile')
  const before = readFileSync(path, 'utf8')
  const after = base === undefined ? before : pinBase(before, base)
  if (after !== before) writeFileSync(path, after)
  const faults = findUnpinnedBases(after)
  for (const fault of faults) console.error(fault)
  process.exitCode = faults.length === 0 ? 0 : 1
}

try {
  if (krew === undefined) pin()
  else printKrewManifest(krew)
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
}
