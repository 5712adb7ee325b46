/**
 * `node --import tsx scripts/release.ts --base DIGEST`: pins the base image of the Containerfile to a digest, which the releaser
 * looked up for all platforms (`skopeo inspect --raw`, or what `docker pull` printed). `--image` and `--envoy` pin the images of the
 * chart in the same way. Without a digest it only checks that all are pinned, and exits with 1 when one is not.
 *
 * `… --krew ARCHIVE --uri URI`: prints the manifest of the kubectl plug-in for the packed npm package, which is published at URI.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { krewManifest } from './krew.ts'
import { findUnpinnedBases, findUnpinnedImages, pinBase, pinImage } from './supply-chain.ts'

const root = join(import.meta.dirname, '..')
const text = { type: 'string' } as const
const { base, image, envoy, krew, uri } = parseArgs({
  options: { base: text, image: text, envoy: text, krew: text, uri: text },
}).values

function printKrewManifest(archive: string): void {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const template = readFileSync(join(root, 'packaging/krew.yaml'), 'utf8')
  process.stdout.write(krewManifest(template, version, uri ?? '', readFileSync(archive)))
}

/** Returns what the file has afterwards. */
function edit(path: string, change: (before: string) => string): string {
  const before = readFileSync(join(root, path), 'utf8')
  const after = change(before)
  if (after !== before) writeFileSync(join(root, path), after)
  return after
}

function pin(): void {
  const containerfile = edit('Containerfile', (before) => (base === undefined ? before : pinBase(before, base)))
  const values = edit('charts/seamark/values.yaml', (before) =>
    Object.entries({ image, 'gateway.image': envoy }).reduce(
      (all, [path, digest]) => (digest === undefined ? all : pinImage(all, path, digest)),
      before,
    ),
  )
  const faults = [...findUnpinnedBases(containerfile), ...findUnpinnedImages(values, ['image', 'gateway.image'])]
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
