/** docs/migrate.md: its commands in their order, there and back, on a zone that ExternalDNS wrote. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createDnsClient, createRRset, fqdn } from '@seamark/dns'
import { loadConfig } from '@seamark/operator'
import { expect, it } from 'vitest'
import { startEmbeddedServer } from '../apiserver/embedded-server.ts'
import { startCommandZone } from './command-zone.ts'
import { runCommand } from './run-command.ts'
import { isSoa, zoneLines } from './zone-lines.ts'

const page = readFileSync(join(import.meta.dirname, '../../../docs/migrate.md'), 'utf8')
const NAME = fqdn('shop.example.com.')
const ENTRY = '"heritage=external-dns,external-dns/owner=prod-a"'
const ENDPOINTS = `apiVersion: v1
kind: List
items:
  - apiVersion: externaldns.k8s.io/v1alpha1
    kind: DNSEndpoint
    metadata: { name: shop, namespace: web, uid: 11111111-2222-3333-4444-555555555555 }
    spec: { endpoints: [{ dnsName: shop.example.com, recordType: A, recordTTL: 300, targets: [192.0.2.1] }] }
`

/** The lines of the blocks that are to be typed. */
function commands(): string[] {
  const blocks = [...page.matchAll(/^ *```sh\n([\s\S]*?)^ *```$/gm)]
  return blocks.flatMap(([, text = '']) => text.split('\n').map((line) => line.trim())).filter((line) => line !== '')
}

it('moves from contour-plus and ExternalDNS, and back, as the page says', async () => {
  const server = await startEmbeddedServer()
  const zone = await startCommandZone('example.com', [
    createRRset(NAME, 'A', 300, ['192.0.2.1']),
    createRRset(fqdn('a-shop.example.com.'), 'TXT', 300, [ENTRY]),
  ])
  const client = createDnsClient()
  const [address] = zone.dns.addresses
  try {
    if (address === undefined) throw new Error('the zone is not served')
    const kubeconfig = join(zone.folder, 'kubeconfig')
    writeFileSync(kubeconfig, server.kubeconfig, { mode: 0o600 })
    const endpoints = join(zone.folder, 'dnsendpoints.yaml')
    writeFileSync(endpoints, ENDPOINTS)
    const lines = async () => {
      const key = { name: 'seamark', algorithm: 'hmac-sha256', secret: zone.env.TSIG_SECRET } as const
      return (await zoneLines(client, address, 'example.com.', key)).filter((line) => !isSoa(line))
    }
    const before = await lines()
    const seen: [command: string, code: number, text: string][] = []
    const zones: string[][] = []
    for (const command of commands()) {
      const words = command
        .split(' ')
        .map((word) => ({ 'seamark.yaml': zone.config, 'dnsendpoints.yaml': endpoints })[word] ?? word)
      expect(words.shift()).toBe('seamark')
      const { code, stdout, stderr } = await runCommand(words, { ...zone.env, KUBECONFIG: kubeconfig })
      seen.push([command.replace(/ --config seamark\.yaml$/, ''), code, stdout + stderr])
      zones.push(await lines())
    }
    expect(seen).toEqual([
      [
        'seamark contour-plus --dry-run --service-name projectcontour/envoy',
        2,
        expect.stringContaining('0 proxies') as string,
      ],
      ['seamark provider test', 0, expect.stringContaining('ok\town') as string],
      ['seamark adopt --from external-dns/prod-a', 2, expect.stringContaining('shop.example.com') as string],
      [
        'seamark adopt --from external-dns/prod-a --apply',
        0,
        expect.stringContaining('1 of 1 changes are in place') as string,
      ],
      [
        'seamark plan -f dnsendpoints.yaml',
        0,
        expect.stringMatching(/SourceReplaced[\s\S]*0 changes, 0 held; 1 change of the marker alone/) as string,
      ],
      ['seamark transfer --from external-dns/prod-a --apply', 0, expect.anything() as string],
      ['seamark release --to external-dns/prod-a --apply', 0, expect.anything() as string],
    ])
    const [, , shown, adopted = [], , transferred = [], back] = zones
    expect(shown).toEqual(before)
    expect(before.filter((line) => !adopted.includes(line))).toEqual([])
    expect(transferred.join('\n')).not.toContain('heritage=external-dns')
    expect(transferred.join('\n')).toContain('192.0.2.1')
    expect(back).toEqual(before)
  } finally {
    await client.close()
    await zone.stop()
    await server.stop()
  }
})

it('says which owner ids are right', () => {
  const isRight = (owner: string) => loadConfig({ flags: { 'records-owner': owner } }).ok
  for (const owner of ['a', 'prod-a', 'prod.eu/1', 'A'.repeat(63), "it's"])
    expect([owner, isRight(owner)]).toEqual([owner, true])
  for (const owner of ['A'.repeat(64), 'a b', 'a"b', 'a,b', 'a=b', String.raw`a\b`, 'a|b', 'é'])
    expect([owner, isRight(owner)]).toEqual([owner, false])
})

it('shows a configuration that loads', () => {
  const [, file = ''] = /```yaml\n([\s\S]*?)```/.exec(page) ?? []
  expect(loadConfig({ file })).toMatchObject({ ok: true, config: { records: { owner: 'prod-a' } } })
})
