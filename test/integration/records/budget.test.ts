/** The delete budget over several commands: what one command spent is in the state folder, and the next one reads it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDnsServer, createRRset, createZone, type DnsServer, fqdn, TsigKey } from '@seamark/dns'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runCommand } from './run-command.ts'

const ZONE = fqdn('example.test.')
const secret = Buffer.from('tsig-secret-of-thirty-two-octets').toString('base64')
const key = new TsigKey('seamark', 'hmac-sha256', secret)
const ALL = 100
/** Of 100 names, within ten minutes. */
const BUDGET = 10

let dns: DnsServer
let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'seamark-budget-'))
  const zone = createZone(ZONE, [
    createRRset(ZONE, 'SOA', 60, [`ns.${ZONE} admin.${ZONE} 1 3600 600 86400 30`]),
    createRRset(ZONE, 'NS', 60, [`ns.${ZONE}`]),
  ])
  const defaultPolicy = { updateKeys: [key.name], transferKeys: [key.name] }
  dns = await createDnsServer({
    zones: [zone],
    listen: [{ address: '127.0.0.1', port: 0 }],
    keys: [key],
    defaultPolicy,
  })
  await writeFile(
    join(folder, 'seamark.yaml'),
    `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
records:
  owner: mine
  cluster: c-1
  stateFolder: ${join(folder, 'state')}
  providers:
    - name: own
      type: rfc2136
      server: 127.0.0.1:${dns.addresses[0]?.port}
      zones: [example.test]
      key: { name: seamark, secretFrom: { env: TSIG_SECRET } }
`,
  )
})
afterEach(async () => {
  await dns.close()
  await rm(folder, { recursive: true, force: true })
})

const published = (): number =>
  [...dns.zones()].flatMap((zone) => [...zone.sets()]).filter(({ type }) => type === 'A').length

/** Plans and applies the names from `first` to the last one; returns what both commands printed. */
async function applyFrom(first: number): Promise<string> {
  const names = Array.from({ length: ALL - first }, (_, index) => `n${first + index}.example.test`)
  const endpoints = names.map((dnsName) => ({ dnsName, recordType: 'A', recordTTL: 60, targets: ['192.0.2.1'] }))
  const metadata = { name: 'shop', namespace: 'web', uid: '11111111-2222-3333-4444-555555555555' }
  const manifest = { apiVersion: 'externaldns.k8s.io/v1alpha1', kind: 'DNSEndpoint', metadata, spec: { endpoints } }
  const [file, plan] = [join(folder, 'shop.yaml'), join(folder, `plan-${first}.json`)]
  await writeFile(file, JSON.stringify(manifest))
  const run = async (...argv: string[]) =>
    runCommand([...argv, '--config', join(folder, 'seamark.yaml')], { TSIG_SECRET: secret })
  const [planned, applied] = [await run('plan', '-f', file, '--out', plan), await run('apply', plan)]
  return [planned, applied].map(({ stdout, stderr }) => stdout + stderr).join('\n')
}

it('two commands that delete ten other names each stay within one budget', async () => {
  await applyFrom(0)
  expect(published()).toBe(ALL)
  await applyFrom(BUDGET)
  expect(published()).toBe(ALL - BUDGET)
  const second = await applyFrom(2 * BUDGET)
  expect(second).toMatch(/n1\d\.example\.test\. A .* held: (?:DeleteBudgetSpent|Quarantined)/)
  expect(published()).toBe(ALL - BUDGET)
})
