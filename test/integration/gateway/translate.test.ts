/** `seamark gateway translate` on the example: what a reader would run. */
import { join } from 'node:path'
import { findVerb, VERBS } from '@seamark/cli/testing'
import { expect, it } from 'vitest'

async function translate(...args: string[]): Promise<{ output: string; code: number }> {
  const found = findVerb(VERBS, ['gateway'])
  const loaded = await found?.verb.load()
  let [output, code] = ['', 0]
  const io = {
    stdout: { write: (text: string) => (output += text) } as never,
    stderr: process.stderr,
    env: {},
    signal: new AbortController().signal,
    exit: (exitCode: number) => (code = exitCode),
  }
  await loaded?.build(io).parseAsync(['translate', ...args], { from: 'user' })
  return { output, code }
}

it('the example is served as it says', async () => {
  const file = join(import.meta.dirname, '../../../examples/gateway/shop.yaml')
  const { output, code } = await translate('-f', file, '-o', 'json')
  const { listeners, statuses } = JSON.parse(output) as {
    listeners: { hosts: { host: string; routes: { match: { path: { value: string } } }[] }[] }[]
    statuses: { kind: string; key: string; status: { currentStatus?: string } }[]
  }
  expect(listeners[0]?.hosts.map(({ host, routes }) => [host, ...routes.map(({ match }) => match.path.value)])).toEqual(
    [
      ['admin.example.test', '/'],
      ['shop.example.test', '/api/old', '/api/', '/api', '/'],
    ],
  )
  expect(statuses.filter(({ kind }) => kind === 'HTTPProxy').map(({ status }) => status.currentStatus)).toEqual([
    'valid',
    'valid',
  ])
  expect(code).toBe(0)
})
