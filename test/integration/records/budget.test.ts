/** The delete budget over several commands: what one command spent is in the state folder, and the next one reads it. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type CommandZone, startCommandZone } from './command-zone.ts'
import { runCommand } from './run-command.ts'

const ALL = 100
/** Of 100 names, within ten minutes. */
const BUDGET = 10

let zone: CommandZone

beforeEach(async () => {
  zone = await startCommandZone('example.test')
})
afterEach(async () => zone.stop())

const published = (): number =>
  [...zone.dns.zones()].flatMap((served) => [...served.sets()]).filter(({ type }) => type === 'A').length

/** Plans and applies the names from `first` to the last one; returns what both commands printed. */
async function applyFrom(first: number): Promise<string> {
  const names = Array.from({ length: ALL - first }, (_, index) => `n${first + index}.example.test`)
  const endpoints = names.map((dnsName) => ({ dnsName, recordType: 'A', recordTTL: 60, targets: ['192.0.2.1'] }))
  const metadata = { name: 'shop', namespace: 'web', uid: '11111111-2222-3333-4444-555555555555' }
  const manifest = { apiVersion: 'externaldns.k8s.io/v1alpha1', kind: 'DNSEndpoint', metadata, spec: { endpoints } }
  const [file, plan] = [join(zone.folder, 'shop.yaml'), join(zone.folder, `plan-${first}.json`)]
  await writeFile(file, JSON.stringify(manifest))
  const run = async (...argv: string[]) => runCommand([...argv, '--config', zone.config], zone.env)
  const [planned, applied] = [await run('plan', '-f', file, '--out', plan), await run('apply', plan)]
  return [planned, applied].map(({ stdout, stderr }) => stdout + stderr).join('\n')
}

it('two commands that delete ten other names each stay within one budget', async () => {
  await applyFrom(0)
  expect(published()).toBe(ALL)
  await applyFrom(BUDGET)
  expect(published()).toBe(ALL - BUDGET)
  const second = await applyFrom(2 * BUDGET)
  expect(second).toMatch(/held: (?:DeleteBudgetSpent|Quarantined)/)
  expect(published()).toBe(ALL - BUDGET)
})
