/** A process that changes a stored zone is killed again and again: what it acknowledged is there. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { FolderStore, fqdn, isNewer } from '@seamark/dns'
import { bundleProgram } from '../cli/bundle-program.ts'

const folder = mkdtempSync(join(tmpdir(), 'seamark-kill-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it('a zone has every acknowledged change after kill -9', { timeout: 120_000 }, async () => {
  const origin = fqdn('example.test')
  const program = join(folder, 'store-writer.mjs')
  await bundleProgram(join(import.meta.dirname, 'store-writer.ts'), program)
  const data = join(folder, 'data')
  let last = 0
  for (let round = 0; round < 6; round++) {
    const child = spawn(process.execPath, [program, data], { stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = once(child, 'exit')
    let text = ''
    // Killed while it writes: after a different number of acknowledged changes each time.
    for await (const chunk of child.stdout) {
      text += String(chunk)
      if (text.split('\n').length > 15 + round * 17) child.kill('SIGKILL')
    }
    await ended
    const acknowledged = Number(text.split('\n').at(-2))
    expect(isNewer(acknowledged, last)).toBe(true)
    const stored = await new FolderStore({ folder: data, origin }).load()
    expect(stored).toBeDefined()
    const serial = stored!.zone.serial
    expect(serial === acknowledged || isNewer(serial, acknowledged), `${serial} after ${acknowledged}`).toBe(true)
    expect(stored!.zone.find(fqdn('count.example.test'), 'TXT')?.values).toEqual([`"${serial}"`])
    last = serial
  }
})
