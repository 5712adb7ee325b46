/** `seamark gateway translate` on the example: what a reader would run. */
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runCommand } from '../records/run-command.ts'

it('the example is served as it says', async () => {
  const file = join(import.meta.dirname, '../../../examples/gateway/shop.yaml')
  const { stdout, code } = await runCommand(['gateway', 'translate', '-f', file, '-o', 'json'])
  const { listeners, statuses } = JSON.parse(stdout) as {
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
