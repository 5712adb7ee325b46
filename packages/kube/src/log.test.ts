import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { createLogger, type Logger, type LogLevel, Secret } from './log.ts'
import { fakeClock } from './testing/clock.ts'

describe('log', () => {
  it('writes one JSON object per line, with level, time, message and fields', () => {
    const lines: string[] = []
    const log = createLogger({ level: 'debug', destination: { write: (line: string) => lines.push(line) } })
    log.child({ controller: 'shop' }).info({ host: 'a.test' }, 'published')
    log.debug('detail')
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      {
        level: 'info',
        time: expect.stringMatching(/^\d{4}-.*Z$/),
        controller: 'shop',
        host: 'a.test',
        msg: 'published',
      },
      { level: 'debug', time: expect.any(String), msg: 'detail' },
    ])
  })

  it('changes its level for every logger that comes from it', () => {
    const lines: string[] = []
    const level: { current: LogLevel } = { current: 'warn' }
    const log = createLogger({ level, destination: { write: (line: string) => lines.push(line) } })
    const child = log.child({ controller: 'shop' })
    const grandchild = child.child({ key: 'a/b' })
    grandchild.info('not yet')
    level.current = 'debug'
    grandchild.debug('detail')
    log.trace('too much')
    level.current = 'silent'
    child.error('nothing')
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(['detail'])
  })

  it('logs a warning with an error that repeats once, and then how often, less and less often while it goes on', async () => {
    const lines: { msg: string; error: string; repeated?: number; cluster?: string }[] = []
    const clock = fakeClock()
    const log = createLogger({ clock, destination: { write: (line: string) => lines.push(JSON.parse(line) as never) } })
    const member = log.child({ cluster: 'eu1' })
    const restarts = (to: Logger, kinds: number, error = 'forbidden'): void => {
      for (let n = 0; n < kinds; n++) to.warn({ kind: `Kind${n}`, error }, 'watch restarts')
    }
    const shown = () => lines.splice(0).map(({ msg, error, repeated, cluster }) => [msg, error, cluster, repeated])
    restarts(log, 13)
    restarts(member, 2)
    restarts(log, 1, 'another')
    log.warn({ reason: 'Paused' }, 'a state, each change of which counts')
    log.warn({ reason: 'Paused' }, 'a state, each change of which counts')
    expect(shown()).toEqual([
      ['watch restarts', 'forbidden', undefined, undefined],
      ['watch restarts', 'forbidden', 'eu1', undefined],
      ['watch restarts', 'another', undefined, undefined],
      ['a state, each change of which counts', undefined, undefined, undefined],
      ['a state, each change of which counts', undefined, undefined, undefined],
    ])
    await clock.advance(60_000)
    expect(shown()).toEqual([
      ['watch restarts', 'forbidden', undefined, 12],
      ['watch restarts', 'forbidden', 'eu1', 1],
    ])
    restarts(log, 1)
    await clock.advance(60_000)
    expect(shown()).toEqual([])
    await clock.advance(60_000)
    expect(shown()).toEqual([['watch restarts', 'forbidden', undefined, 1]])
    await clock.advance(4 * 60_000)
    restarts(log, 1)
    expect(shown()).toEqual([['watch restarts', 'forbidden', undefined, undefined]])
  })

  it('never prints a secret, in any form', () => {
    const lines: string[] = []
    const log = createLogger({ destination: { write: (line: string) => lines.push(line) } })
    const token = new Secret('hunter2')
    const error = Object.assign(new Error(`refused ${String(token)}`), { token })
    log.info({ token, nested: { token } }, 'with a token')
    log.error({ err: error }, 'with an error')
    const everything = [...lines, JSON.stringify({ token }), inspect({ token }), inspect(error), String(token)].join(
      '\n',
    )
    expect(everything).not.toContain('hunter2')
    expect(everything).toContain('[redacted]')
    expect(token.reveal()).toBe('hunter2')
  })
})
