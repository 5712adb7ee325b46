/** examples/deploy is what the chart renders. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '@seamark/kit'
import { describe, expect, it } from 'vitest'
import { PLAIN_MANIFESTS, plainManifest } from '../../scripts/generate/plain-manifest.ts'
import { helmOk } from './helm.ts'

const root = join(import.meta.dirname, '../..')

describe.skipIf(!needs('helm'))('examples/deploy', () => {
  it.each(Object.keys(PLAIN_MANIFESTS) as (keyof typeof PLAIN_MANIFESTS)[])(
    '%s is current; npm run generate:plain writes it',
    async (file) => {
      const { argv } = PLAIN_MANIFESTS[file]
      const rendered = await helmOk('helm', argv, { cwd: root })
      expect(readFileSync(join(root, 'examples/deploy', file), 'utf8')).toBe(plainManifest(file, rendered))
    },
  )
})
