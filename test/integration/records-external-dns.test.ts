/**
 * Hand-over with the real ExternalDNS on a real BIND: it owns records, we adopt them while it runs, give them back, and
 * take them for ourselves alone. Needs the program external-dns; skipped visibly without it.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createDnsClient, fqdn, TsigKey } from '@seamark/dns'
import { findProgram, needs } from '@seamark/kit'
import { DNSEndpoint } from '@seamark/operator'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Key, type Peer, startBind } from './dns/peers.ts'
import { createNamespace, type World, worldKinds } from './publish-world.ts'
import { runCommand } from './records/run-command.ts'

const ZONE = 'example.test.'
const secret = Buffer.from('canary-tsig-secret-of-32-octets!').toString('base64')
const key: Key = { name: 'seamark', algorithm: 'hmac-sha256', secret }
const text = `$ORIGIN ${ZONE}\n$TTL 300\n@ IN SOA ns1 hostmaster 1 3600 600 86400 60\n@ IN NS ns1\nns1 IN A 127.0.0.1\n`

describe.skipIf(!needs('external-dns', 'named'))('hand-over with ExternalDNS', () => {
  let world: World
  let peer: Peer
  let folder: string
  const client = createDnsClient()
  const transfer = async () => {
    const sets = await client.transferSets({
      server: peer.address,
      zone: fqdn(ZONE),
      key: new TsigKey(key.name, key.algorithm, secret),
    })
    return sets.map((set) => `${set.name} ${set.ttl} ${set.type} ${set.values.toSorted().join(' | ')}`).sort()
  }
  const answers = async () => (await transfer()).filter((line) => !/ (TXT|SOA) /.test(line))
  const externalDns = async () =>
    promisify(execFile)(
      findProgram('external-dns') ?? '',
      [
        '--once',
        '--policy=sync',
        '--log-level=debug',
        '--source=crd',
        `--kubeconfig=${join(folder, 'kubeconfig')}`,
        '--crd-source-apiversion=externaldns.k8s.io/v1alpha1',
        '--crd-source-kind=DNSEndpoint',
        '--provider=rfc2136',
        `--rfc2136-host=${peer.address.address}`,
        `--rfc2136-port=${peer.address.port}`,
        '--rfc2136-zone=example.test',
        '--rfc2136-tsig-axfr',
        `--rfc2136-tsig-keyname=${key.name}`,
        `--rfc2136-tsig-secret=${secret}`,
        `--rfc2136-tsig-secret-alg=${key.algorithm}`,
        '--registry=txt',
        '--txt-owner-id=prod-a',
        '--metrics-address=127.0.0.1:0',
      ],
      { timeout: 60_000 },
    )
  const run = async (...argv: string[]) => {
    const result = await runCommand([...argv, '--config', join(folder, 'seamark.yaml')], { TSIG_SECRET: secret })
    expect(result.stderr).toBe('')
    return result
  }

  beforeAll(async () => {
    const [embedded] = worldKinds
    if (embedded === undefined) throw new Error('no embedded world')
    world = await embedded.start()
    peer = await startBind([{ origin: ZONE, text }], [key])
    folder = await mkdtemp(join(tmpdir(), 'seamark-external-dns-'))
    await writeFile(join(folder, 'kubeconfig'), world.kubeconfig)
    await writeFile(
      join(folder, 'seamark.yaml'),
      `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
records:
  owner: ours
  cluster: c-1
  stateFolder: ${join(folder, 'state')}
  providers:
    - { name: bind, type: rfc2136, server: "127.0.0.1:${peer.address.port}", zones: [example.test], key: { name: seamark, secretFrom: { env: TSIG_SECRET } } }
`,
    )
    await createNamespace(world.client, 'web')
    for (const [name, type, target] of [
      ['www', 'A', '192.0.2.1'],
      ['shop', 'CNAME', 'www.example.test'],
      ['six', 'AAAA', '2001:db8::1'],
    ] as const) {
      await world.client.create(DNSEndpoint, {
        metadata: { name, namespace: 'web' },
        spec: { endpoints: [{ dnsName: `${name}.example.test`, recordType: type, recordTTL: 60, targets: [target] }] },
      })
    }
    await externalDns()
  })
  afterAll(async () => {
    await client.close()
    await world[Symbol.asyncDispose]()
    await peer.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('adopts while it runs, gives back, and takes alone; ExternalDNS changes nothing, and answers never change', async () => {
    const before = await transfer()
    const served = await answers()
    expect(served).toContain('www.example.test. 60 A 192.0.2.1')

    expect((await run('adopt', '--from', 'external-dns/prod-a', '--apply')).stdout).toContain(
      '3 of 3 changes are in place',
    )
    const adopted = await transfer()
    await externalDns()
    expect(await transfer()).toEqual(adopted)
    expect(await answers()).toEqual(served)

    await run('release', '--apply')
    const released = await transfer()
    await externalDns()
    expect(await transfer()).toEqual(released)
    expect(released.filter((line) => !line.includes(' SOA '))).toEqual(before.filter((line) => !line.includes(' SOA ')))

    await run('adopt', '--from', 'external-dns/prod-a', '--apply')
    await run('transfer', '--from', 'external-dns/prod-a', '--apply')
    const taken = await transfer()
    await world.client.delete(DNSEndpoint, 'web/www')
    await externalDns()
    // It does not want the record any more, and it is not its own any more.
    expect(await transfer()).toEqual(taken)
    expect(await answers()).toEqual(served)
  })
})
