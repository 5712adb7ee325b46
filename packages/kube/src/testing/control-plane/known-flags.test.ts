import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { knownFlags } from './known-flags.ts'

const folders: string[] = []
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true })
})

async function program(script: string): Promise<{ command: string; calls: () => Promise<string> }> {
  const folder = await mkdtemp(join(tmpdir(), 'known-flags-'))
  folders.push(folder)
  const command = join(folder, 'server')
  await writeFile(command, `#!/bin/sh\necho "$@" >> ${folder}/calls\n${script}\n`, { mode: 0o700 })
  return { command, calls: async () => readFile(join(folder, 'calls'), 'utf8') }
}

describe('known flags', () => {
  it('are those at the start of a line of --help, and read once', async () => {
    const { command, calls } = await program(
      `printf -- "Usage:\\n  --data-dir 'x'\\n    Like --not-a-flag.\\n  -v, --log-level string\\n" >&2; exit 2`,
    )
    expect([...(await knownFlags(command))]).toEqual(['--data-dir', '--log-level'])
    await Promise.all([knownFlags(command), knownFlags(command)])
    expect(await calls()).toBe('--help\n')
  })

  it('of a program that prints none are an error that names it', async () => {
    const { command } = await program('exit 0')
    await expect(knownFlags(command)).rejects.toThrow(`${command} --help printed no flags`)
    await expect(knownFlags('/nowhere/etcd')).rejects.toThrow('/nowhere/etcd --help printed no flags')
  })
})
