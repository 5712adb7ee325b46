/**
 * Hand-over with the real ExternalDNS on a real BIND: it owns records, we adopt them while it runs, give them back, and
 * take them for ourselves alone. Needs the program external-dns; skipped visibly without it.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createDnsClient } from '@seamark/dns'
import { findProgram, needs } from '@seamark/kit'
import { DNSEndpoint } from '@seamark/operator'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bundleProgram } from '../cli/bundle-program.ts'
import { type Key, type Peer, startBind } from '../dns/peers.ts'
import { isDnsUpdate, startFaultProxy } from '../providers/fault-proxy.ts'
import { createNamespace, type TestEnvironment, environmentKinds } from '../publish/test-environment.ts'
import { runCommand } from './run-command.ts'
import { isSoa, zoneLines } from './zone-lines.ts'

const ZONE = 'example.test.'
const secret = Buffer.from('canary-tsig-secret-of-32-octets!').toString('base64')
const key: Key = { name: 'seamark', algorithm: 'hmac-sha256', secret }
const text = `$ORIGIN ${ZONE}\n$TTL 300\n@ IN SOA ns1 hostmaster 1 3600 600 86400 60\n@ IN NS ns1\nns1 IN A 127.0.0.1\n`

describe.skipIf(!needs('external-dns', 'named'))('hand-over with ExternalDNS', () => {
  let environment: TestEnvironment
  let peer: Peer
  let folder: string
  const client = createDnsClient()
  const transfer = async () => zoneLines(client, peer.address, ZONE, key)
  const answers = async () => (await transfer()).filter((line) => !/ (TXT|SOA) /.test(line))
  const externalDnsArguments = (...more: string[]) => [
    ...more,
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
  ]
  const externalDns = async (...more: string[]) =>
    promisify(execFile)(findProgram('external-dns') ?? '', externalDnsArguments('--once', ...more), { timeout: 60_000 })
  const run = async (...argv: string[]) => {
    const result = await runCommand([...argv, '--config', join(folder, 'seamark.yaml')], { TSIG_SECRET: secret })
    expect(result.stderr).toBe('')
    return result
  }

  beforeAll(async () => {
    const [embedded] = environmentKinds
    if (embedded === undefined) throw new Error('no embedded environment')
    environment = await embedded.start()
    peer = await startBind([{ origin: ZONE, text }], [key])
    folder = await mkdtemp(join(tmpdir(), 'seamark-external-dns-'))
    await writeFile(join(folder, 'kubeconfig'), environment.kubeconfig)
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
    await createNamespace(environment.client, 'web')
    for (const [name, type, target] of [
      ['www', 'A', '192.0.2.1'],
      ['shop', 'CNAME', 'www.example.test'],
      ['six', 'AAAA', '2001:db8::1'],
    ] as const) {
      await environment.client.create(DNSEndpoint, {
        metadata: { name, namespace: 'web' },
        spec: { endpoints: [{ dnsName: `${name}.example.test`, recordType: type, recordTTL: 60, targets: [target] }] },
      })
    }
    await externalDns()
  })
  afterAll(async () => {
    await client.close()
    await environment[Symbol.asyncDispose]()
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
    expect(released.filter((line) => !isSoa(line))).toEqual(before.filter((line) => !isSoa(line)))

    await run('adopt', '--from', 'external-dns/prod-a', '--apply')
    await run('transfer', '--from', 'external-dns/prod-a', '--apply')
    const taken = await transfer()
    await environment.client.delete(DNSEndpoint, 'web/www')
    await externalDns()
    // It does not request the record any more, and does not own it any more.
    expect(await transfer()).toEqual(taken)
    expect(await answers()).toEqual(served)
  })

  it(
    'adopts name by name, killed at every request, while ExternalDNS runs: no answer ever changes',
    { timeout: 300_000 },
    async () => {
      const names = ['one', 'two', 'three'].map((label) => `${label}.example.test`)
      for (const [index, dnsName] of names.entries()) {
        await environment.client.create(DNSEndpoint, {
          metadata: { name: `live-${index}`, namespace: 'web' },
          spec: { endpoints: [{ dnsName, recordType: 'A', recordTTL: 60, targets: [`192.0.2.${index + 10}`] }] },
        })
      }
      await externalDns()
      const before = (await transfer()).filter((line) => !isSoa(line))
      const program = join(folder, 'seamark.mjs')
      await bundleProgram(join(import.meta.dirname, '../../../packages/cli/src/index.ts'), program)
      const proxy = await startFaultProxy({ address: '127.0.0.1', port: peer.address.port ?? 53 }, isDnsUpdate)
      const config = (await readFile(join(folder, 'seamark.yaml'), 'utf8')).replace(
        `:${peer.address.port}"`,
        `:${proxy.address.port}"`,
      )
      await writeFile(join(folder, 'proxied.yaml'), config)

      /** `seamark …` in a process of its own, killed when its n-th request arrives; its exit code, or undefined. */
      const seamark = async (argv: readonly string[], killAt = Infinity): Promise<number | null> => {
        const child = spawn(process.execPath, [program, ...argv, '--config', join(folder, 'proxied.yaml')], {
          env: { ...process.env, TSIG_SECRET: secret },
          stdio: 'ignore',
        })
        const until = proxy.counts.requests + killAt
        proxy.onRequest = () => void (proxy.counts.requests >= until && child.kill('SIGKILL'))
        const [code] = (await once(child, 'exit')) as [number | null]
        proxy.onRequest = undefined
        return code
      }
      /** Until it ends by itself: killed at the first request, at the second, and so on. */
      const persist = async (argv: readonly string[]): Promise<number> => {
        for (let killAt = 1; ; killAt++) {
          const code = await seamark(argv, killAt)
          if (code === null) continue
          expect(code).toBe(0)
          return killAt
        }
      }

      const running = spawn(findProgram('external-dns') ?? '', externalDnsArguments('--interval=1s'), {
        stdio: 'ignore',
      })
      const stop = new AbortController()
      const wrong: string[] = []
      let samples = 0
      const sampling = (async () => {
        while (!stop.signal.aborted) {
          for (const [index, name] of names.entries()) {
            const { message } = await client.query({ server: peer.address, name: `${name}.`, type: 'A' })
            const octets = message.answers.map(({ data, ttl }) => `${[...data].join('.')} ${ttl}`).join()
            if (octets !== `192.0.2.${index + 10} 60`) wrong.push(`${name}: ${octets}`)
            samples++
          }
          await sleep(20)
        }
      })()
      try {
        let kills = 0
        for (const name of names)
          kills += (await persist(['adopt', name, '--from', 'external-dns/prod-a', '--apply'])) - 1
        const lines = await transfer()
        for (const name of names) expect(lines.join('\n')).toContain(`_seamark-a.${name}.`)
        for (const name of names) kills += (await persist(['release', name, '--apply'])) - 1
        // Each command was killed at several points of its way.
        expect(kills).toBeGreaterThanOrEqual(2 * names.length * 3)
      } finally {
        stop.abort()
        await sampling
        const ended = once(running, 'exit')
        running.kill('SIGTERM')
        await ended
        await proxy.close()
      }
      expect(wrong).toEqual([])
      expect(samples).toBeGreaterThan(100)
      expect((await transfer()).filter((line) => !isSoa(line))).toEqual(before)
      const dry = await externalDns('--dry-run')
      expect(dry.stderr + dry.stdout).toContain('All records are already up to date')
    },
  )
})
