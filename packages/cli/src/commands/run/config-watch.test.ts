import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@seamark/kube'
import { loadConfig } from '@seamark/operator'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { watchConfig } from './config-watch.ts'

const HEAD = 'apiVersion: config.seamark.io/v1alpha1\nkind: ManagerConfiguration\n'

let folder: string
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'seamark-config-'))))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Watches `path`, which exists. `log` has one line per notice, `taken` the settings that took effect. */
function watch(path: string, text: string) {
  const running = loadConfig({ file: text })
  if (!running.ok) throw new Error('the configuration is invalid')
  const log: string[] = []
  const taken: string[] = []
  const events: string[] = []
  const say = (fields: object, message: string): void => {
    log.push(`${(fields as { reason: string }).reason}: ${message.replace(/ at \S+Z/, '')}`)
  }
  const stop = new AbortController()
  const watching = watchConfig(
    {
      path,
      running: running.config,
      parse: (file) => loadConfig({ file }),
      replace: (config, settings) => taken.push(`${settings.join()} ${config.safety.maxChanges} ${config.mode}`),
      notify: ({ reason }) => events.push(reason),
      log: { info: say, warn: say } as never,
      clock: systemClock,
      pollMs: 1,
    },
    stop.signal,
  )
  return {
    log,
    taken,
    events,
    [Symbol.asyncDispose]: async () => {
      stop.abort()
      await watching
    },
  }
}

it('takes what may change, and says once what needs a restart, what is invalid, and that it is as before', async () => {
  const path = join(folder, 'config.yaml')
  const first = `${HEAD}mode: observe\nsafety: {maxChanges: 5}\n`
  writeFileSync(path, first)
  await using watched = watch(path, first)
  const { log, taken, events } = watched
  const change = async (text: string, count: number): Promise<void> => {
    writeFileSync(path, text)
    await expect.poll(() => log.length).toBe(count)
  }
  const second = `${HEAD}mode: enforce\nsafety: {maxChanges: 7}\n`
  await change(second, 2)
  await change(`${second}# the same\n`, 2)
  await change(`${HEAD}mode: perhaps\nsafety: {maxChanges: 9}\n`, 3)
  await change('', 4)
  await change(first, 5)
  rmSync(path)
  await expect.poll(() => log.length).toBe(6)
  expect(log[0]).toBe(`ConfigurationChanged: ${path} was changed; in effect without a restart: safety.maxChanges`)
  expect(log[1]).toBe(`RestartNeeded: ${path} was changed; restart the manager for: mode`)
  expect(log[2]).toContain(
    `ConfigurationInvalid: ${path} was changed and cannot be used; the manager keeps what it runs with`,
  )
  expect(log[2]).toContain('mode: ')
  expect(log[3]).toContain('the file is empty')
  expect(log[4]).toContain('in effect without a restart: safety.maxChanges')
  expect(log[5]).toContain('ENOENT')
  expect(taken).toEqual(['safety.maxChanges 7 observe', 'safety.maxChanges 5 observe'])
  expect(events).toEqual(log.map((line) => line.split(':')[0]))
})

it('follows the link that Kubernetes swaps in a mounted ConfigMap', async () => {
  const version = (name: string, text: string): void => {
    mkdirSync(join(folder, name))
    writeFileSync(join(folder, name, 'config.yaml'), text)
    symlinkSync(name, join(folder, `${name}.link`))
    renameSync(join(folder, `${name}.link`), join(folder, '..data'))
  }
  const first = `${HEAD}safety: {maxChanges: 5}\n`
  version('..2026_01', first)
  symlinkSync('..data/config.yaml', join(folder, 'config.yaml'))
  await using watched = watch(join(folder, 'config.yaml'), first)
  version('..2026_02', `${HEAD}safety: {maxChanges: 6}\n`)
  await expect.poll(() => watched.taken).toEqual(['safety.maxChanges 6 observe'])
  version('..2026_03', `${HEAD}safety: {maxChanges: 7}\n`)
  await expect.poll(() => watched.taken.at(-1)).toBe('safety.maxChanges 7 observe')
})
