/**
 * `npm run generate:plain` writes examples/deploy from the chart, with the Helm of TEST_ASSET_HELM or PATH: manifests for those
 * without Helm. test/chart compares them.
 */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PLAIN_MANIFESTS, plainManifest } from './generate/plain-manifest.ts'

const root = join(import.meta.dirname, '..')
const program = process.env['TEST_ASSET_HELM'] ?? 'helm'

for (const file of Object.keys(PLAIN_MANIFESTS) as (keyof typeof PLAIN_MANIFESTS)[]) {
  const { status, stdout, stderr, error } = spawnSync(program, [...PLAIN_MANIFESTS[file].argv], {
    cwd: root,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`${program}: ${error?.message ?? stderr}`)
  writeFileSync(join(root, 'examples/deploy', file), plainManifest(file, stdout))
}
