/** What docs/apiserver.md shows is run as it is written. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findProgram, needs } from '@seamark/kit'
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

  it.skipIf(!needs('kubectl'))('the commands of the shell work', async () => {
    const [start = '', use = ''] = blocks('sh')
    const [, ...flags] = start.trim().split(' ')
    const server = spawn(join(root, 'bin/seamark'), flags, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = once(server, 'exit') as Promise<[number | null]>
    try {
      const [ready] = await Promise.race([once(server.stdout.setEncoding('utf8'), 'data'), ended])
      expect(ready).toMatch(/^ready https:\/\/127\.0\.0\.1:\d+\n$/)
      const kubectl = `kubectl() { "${findProgram('kubectl')}" "$@"; }`
      const { stdout } = await run('/bin/sh', ['-euc', `${kubectl}\n${use}`], { cwd: folder, env: { HOME: folder } })
      expect(stdout).toMatch(
        /^namespace\/demo created\nconfigmap\/greeting created\nNAME +DATA +AGE\ngreeting +1 +\d+s\n/,
      )
    } finally {
      server.kill('SIGTERM')
      expect((await ended)[0]).toBe(0)
    }
  })
})
