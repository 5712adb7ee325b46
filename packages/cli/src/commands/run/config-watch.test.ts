import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@seamark/kube'
import { loadConfig } from '@seamark/operator'
import { expect, it } from 'vitest'
import { watchConfig } from './config-watch.ts'

const head = 'apiVersion: config.seamark.io/v1alpha1\nkind: ManagerConfiguration\n'

it('says once when the configuration file changes, becomes invalid, and is as before', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'seamark-config-'))
  const path = join(folder, 'config.yaml')
  writeFileSync(path, `${head}mode: observe\n`)
  const running = loadConfig({ file: `${head}mode: observe\n` })
  if (!running.ok) throw new Error('the configuration is invalid')
  const lines: string[] = []
  const say = (fields: object, message: string): void => {
    const { path: _, ...rest } = fields as Record<string, unknown>
    lines.push(`${message} ${JSON.stringify(rest)}`)
  }
  const stop = new AbortController()
  const watching = watchConfig(
    {
      path,
      running: running.config,
      parse: (file) => loadConfig({ file }),
      log: { info: say, warn: say } as never,
      clock: systemClock,
      pollMs: 1,
    },
    stop.signal,
  )
  const change = async (text: string, count: number): Promise<void> => {
    writeFileSync(path, text)
    await expect.poll(() => lines.length).toBe(count)
  }
  try {
    await change(`${head}mode: enforce\nlogLevel: debug\n`, 1)
    await change(`${head}mode: enforce\nlogLevel: debug\n# the same\n`, 1)
    await change(`${head}mode: perhaps\n`, 2)
    await change(head, 3)
    rmSync(path)
    await expect.poll(() => lines.length).toBe(4)
  } finally {
    stop.abort()
    await watching
    rmSync(folder, { recursive: true, force: true })
  }
  expect(lines[0]).toBe('configuration file changed; restart needed {"settings":["mode","logLevel"]}')
  expect(lines[1]).toContain('configuration file is invalid; the manager would not start with it {"faults":["mode: ')
  expect(lines[2]).toBe('configuration file is again as the manager runs {}')
  expect(lines[3]).toContain('ENOENT')
})
