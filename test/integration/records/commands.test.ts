/** plan, apply, undo, adopt, release, transfer, export and provider, as users run them, on a real BIND. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDnsClient, type DnsClient } from '@seamark/dns'
import { needs } from '@seamark/kit'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Key, type Peer, startBind } from '../dns/peers.ts'
import { runCommand } from './run-command.ts'
import { isSoa, zoneLines } from './zone-lines.ts'

const ZONE = 'example.test.'
const secret = Buffer.from('canary-tsig-secret-of-32-octets!').toString('base64')
const key: Key = { name: 'seamark', algorithm: 'hmac-sha256', secret }
const text = `$ORIGIN ${ZONE}
$TTL 300
@ IN SOA ns1 hostmaster 1 3600 600 86400 60
@ IN NS ns1
ns1 IN A 127.0.0.1
mail IN A 192.0.2.25
old IN A 192.0.2.10
a-old IN TXT "heritage=external-dns,external-dns/owner=prod-a,external-dns/resource=ingress/web/old"
`
const manifest = (target: string) => `apiVersion: externaldns.k8s.io/v1alpha1
kind: DNSEndpoint
metadata: { name: shop, namespace: web, uid: 11111111-2222-3333-4444-555555555555 }
spec:
  endpoints:
    - { dnsName: www.example.test, recordType: A, recordTTL: 60, targets: [${target}] }
    - { dnsName: mail.example.test, recordType: A, recordTTL: 60, targets: [192.0.2.99] }
    - { dnsName: "bad..name", recordType: A, recordTTL: 60, targets: [192.0.2.99] }
`

describe.skipIf(!needs('named'))('the commands about records', () => {
  let peer: Peer
  let folder: string
  let config: string
  const env = { TSIG_SECRET: secret }
  const file = (name: string) => join(folder, name)
  const run = async (...argv: string[]) => {
    const result = await runCommand([...argv, '--config', config], env)
    expect(`${result.stdout}${result.stderr}`).not.toContain(secret)
    return result
  }
  /** Plans and writes the manifest with this target. */
  const publish = async (target: string) => {
    const manifestFile = file(`${target}.yaml`)
    await writeFile(manifestFile, manifest(target))
    await run('plan', '-f', manifestFile, '--out', file(`${target}.json`))
    expect(await run('apply', file(`${target}.json`))).toMatchObject({ code: 0 })
  }
  let client: DnsClient
  const transfer = async () => (await zoneLines(client, peer.address, ZONE, key)).filter((line) => !isSoa(line))
  const serial = async () =>
    (await client.query({ server: peer.address, name: ZONE, type: 'SOA' })).message.answers[0]?.data

  beforeEach(async () => {
    client = createDnsClient()
    peer = await startBind([{ origin: ZONE, text }], [key])
    folder = await mkdtemp(join(tmpdir(), 'seamark-records-'))
    config = file('seamark.yaml')
    await writeFile(file('shop.yaml'), manifest('192.0.2.1'))
    await writeFile(
      config,
      `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
records:
  owner: test-owner
  cluster: 99999999-0000-0000-0000-000000000000
  stateFolder: ${file('state')}
  providers:
    - name: bind
      type: rfc2136
      server: 127.0.0.1:${peer.address.port}
      zones: [example.test]
      key: { name: seamark, secretFrom: { env: TSIG_SECRET } }
`,
    )
  })
  afterEach(async () => {
    await client.close()
    await peer.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('plan says when the manager is in observe mode and writes none of it', async () => {
    const note = 'note: the manager is in observe mode and writes none of this'
    expect((await run('plan', '-f', file('shop.yaml'))).stderr).toContain(note)
    await writeFile(config, `${await readFile(config, 'utf8')}mode: enforce\n`)
    expect((await run('plan', '-f', file('shop.yaml'))).stderr).not.toContain(note)
  })

  it('plan shows what would change and what is held, and writes nothing', async () => {
    const before = await serial()
    const plan = await run('plan', '-f', file('shop.yaml'), '--detailed-exitcode', '--out', file('plan.json'))
    expect(plan.stdout).toContain('+ www.example.test. A  192.0.2.1')
    expect(plan.stdout).toContain('mail.example.test. A  update held: UnownedRecordExists')
    expect(plan.stderr).toContain('RecordInvalid')
    expect(plan.code).toBe(2)
    expect((await run('plan', '-f', file('shop.yaml'))).code).toBe(0)
    expect((await run('plan', '-f', file('shop.yaml'), '-o', 'md')).stdout).toContain(
      '| create | www.example.test. | A |',
    )
    expect(JSON.parse(await readFile(file('plan.json'), 'utf8'))).toMatchObject({
      apiVersion: 'seamark.io/v1alpha1',
      kind: 'Plan',
      changes: [
        {
          op: 'create',
          name: 'www.example.test.',
          type: 'A',
          from: null,
          to: ['192.0.2.1'],
          ttl: 60,
          reason: 'SourceWants',
          owner: 'test-owner',
          risk: 'low',
        },
      ],
    })
    expect(await serial()).toEqual(before)
  })

  it('apply writes it, a second plan is empty, and undo leaves the zone as it was', async () => {
    const before = await transfer()
    await run('plan', '-f', file('shop.yaml'), '--out', file('plan.json'))
    const applied = await run('apply', file('plan.json'))
    expect(applied).toMatchObject({ code: 0 })
    expect(await transfer()).toContain('www.example.test. 60 A 192.0.2.1')
    expect((await run('plan', '-f', file('shop.yaml'), '--detailed-exitcode')).code).toBe(0)
    expect(await run('undo', file('plan.json'))).toMatchObject({ code: 0 })
    expect(await transfer()).toEqual(before)
  })

  it('apply refuses a plan whose base moved', async () => {
    await run('plan', '-f', file('shop.yaml'), '--out', file('plan2.json'))
    await publish('192.0.2.77')
    const late = await run('apply', file('plan2.json'))
    expect(late.code).toBe(3)
    expect(late.stdout).toMatch(/Superseded|BaseMoved/)
    expect(await transfer()).toContain('www.example.test. 60 A 192.0.2.77')
  })

  it('adopt shows, then writes markers only; release takes them away again', async () => {
    const before = await transfer()
    const shown = await run('adopt', '--from', 'external-dns/prod-a')
    expect(shown.code).toBe(2)
    expect(await transfer()).toEqual(before)
    expect((await run('adopt', '--from', 'external-dns/prod-a', '--apply')).code).toBe(0)
    const adopted = await transfer()
    expect(adopted.filter((line) => !before.includes(line))).toEqual([
      expect.stringContaining('_seamark-a.old.example.test. 300 TXT'),
    ])
    expect(before.filter((line) => !adopted.includes(line))).toEqual([])
    expect((await run('release', 'old.example.test', '--apply')).code).toBe(0)
    expect(await transfer()).toEqual(before)
  })

  it('transfer hands a name to another owner, and then it is not ours', async () => {
    await publish('192.0.2.1')
    expect((await run('transfer', 'www.example.test', '--to', 'east', '--to-cluster', 'c-2', '--apply')).code).toBe(0)
    expect((await run('plan', '-f', file('shop.yaml'))).stdout).toContain('ForeignOwner')
  })

  it('export gives our records as DNSEndpoints, or the zone as a file', async () => {
    await publish('192.0.2.1')
    await run('transfer', 'www.example.test', '--to', 'east', '--to-cluster', 'c-2', '--apply')
    await run('adopt', 'mail.example.test', '--from', 'unmarked', '--apply')
    const endpoints = await run('export', '--as', 'dnsendpoint')
    expect(endpoints.stdout).toContain('dnsName: mail.example.test')
    expect(endpoints.stdout).not.toContain('www.example.test')
    expect((await run('export', '--all')).stdout).toContain('ns1.example.test.')
  })

  it('provider lists, tests and checks', async () => {
    expect((await run('provider', 'list', '-o', 'wide')).stdout).toMatch(
      /^bind +example\.test\. +public +yes +yes +\d/m,
    )
    expect((await run('provider', 'test')).stdout).toContain('ok\tbind')
    const kit = await run('provider', 'conformance', '--zone', 'example.test')
    expect(kit.stdout).not.toContain('FAIL')
    expect(kit.code).toBe(0)
  })

  it('plan never exits 0 with a zone that cannot be read', async () => {
    const other = join(folder, 'wrong.yaml')
    await writeFile(other, (await readFile(config, 'utf8')).replace('TSIG_SECRET', 'WRONG_SECRET'))
    const wrong = { ...env, WRONG_SECRET: Buffer.from('another-secret-of-32-octets-long').toString('base64') }
    const result = await runCommand(['plan', '-f', file('shop.yaml'), '--config', other], wrong)
    expect(result.code).toBe(1)
    expect(result.stderr).toContain('unread: example.test.')
  })

  it('plan without providers asks the authoritative server', async () => {
    await publish('192.0.2.77')
    await run('transfer', 'www.example.test', '--to', 'east', '--to-cluster', 'c-2', '--apply')
    await run('adopt', 'mail.example.test', '--from', 'unmarked', '--apply')
    const bare = join(folder, 'bare.yaml')
    await writeFile(
      bare,
      'apiVersion: config.seamark.io/v1alpha1\nkind: ManagerConfiguration\nrecords: { owner: east, cluster: c-2 }\n',
    )
    const server = ['--server', `127.0.0.1:${peer.address.port}`, '--config', bare]
    const result = await runCommand(['plan', '-f', file('192.0.2.77.yaml'), ...server, '--detailed-exitcode'], env)
    expect(result.stdout).toContain('equal    www.example.test. A has 192.0.2.77')
    expect(result.stdout).toContain('foreign  mail.example.test. A')
    expect(result.code).toBe(2)
    const dead = await runCommand(
      ['plan', '-f', file('192.0.2.77.yaml'), '--server', '127.0.0.1:9', '--config', bare],
      env,
    )
    expect(dead.stdout).toContain('unread')
    expect(dead.code).toBe(1)
  })

  it('the owner id is required, and has no default', async () => {
    const bare = join(folder, 'anonymous.yaml')
    await writeFile(
      bare,
      'apiVersion: config.seamark.io/v1alpha1\nkind: ManagerConfiguration\nrecords: { cluster: c-2 }\n',
    )
    const result = await runCommand(['plan', '-f', file('shop.yaml'), '--config', bare], env)
    expect(result).toMatchObject({ code: 5 })
    expect(result.stderr).toContain('records.owner is required')
  })
})
