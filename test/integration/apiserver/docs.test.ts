/** The programs in docs/apiserver.md run; its commands are run by test/integration/docs. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../../..')
const text = readFileSync(join(root, 'docs/apiserver.md'), 'utf8')
const blocks = (language: string) =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(([, code = '']) => code)

const run = promisify(execFile)

describe('docs/apiserver.md', () => {
  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'docs-'))
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
    await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  })
  afterAll(async () => rm(folder, { recursive: true, force: true }))

  it.each(blocks('ts').map((code, index) => ({ index, code })))('example $index runs', async ({ index, code }) => {
    const file = join(folder, `example-${index}.ts`)
    await writeFile(file, code)
    const tsx = join(root, 'node_modules/tsx/dist/esm/index.mjs')
    const { stderr } = await run(process.execPath, ['--conditions=source', `--import=${tsx}`, file], { cwd: folder })
    expect(stderr).not.toContain('Error')
  })
})
