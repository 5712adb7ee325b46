import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { createLogger, Secret } from './log.ts'

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
