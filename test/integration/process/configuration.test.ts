/**
 * The configuration file of a manager that runs, as a process of its own: what may change without a restart does, what may not
 * is said, and a file that cannot be used changes nothing.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDnsClient, groupRecords, RCODE, rcodeName, type ServerAddress } from '@seamark/dns'
import { Event, Namespace, Secret } from '@seamark/kube'
import { DNSEndpoint } from '@seamark/operator'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { createNamespace, type TestEnvironment, environmentKinds } from '../publish/test-environment.ts'
import { addNode } from '../wildcard/bench.ts'
import { buildBundle, type ManagerProcess, startManager } from '../records/manager-process.ts'

const POLL_OPTIONS = { timeout: 30_000, interval: 20 }

const client = createDnsClient({ timeoutMs: 500, tries: 2 })
const cleanups: (() => Promise<unknown>)[] = []
let environment: TestEnvironment
let folder = ''

beforeAll(buildBundle)
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'seamark-configuration-'))
  cleanups.push(async () => rm(folder, { recursive: true, force: true }))
  const [embedded] = environmentKinds
  if (embedded === undefined) throw new Error('no embedded environment')
  environment = await embedded.start()
  cleanups.push(async () => environment[Symbol.asyncDispose]())
  for (const name of ['shop', 'seamark']) await createNamespace(environment.client, name)
  if ((await environment.client.find(Namespace, 'kube-system')) === undefined)
    await createNamespace(environment.client, 'kube-system')
  await writeFile(join(folder, 'kubeconfig'), environment.kubeconfig, { mode: 0o600 })
})
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})
afterAll(async () => client.close())

const write = async (settings: string): Promise<void> =>
  writeFile(
    join(folder, 'seamark.yaml'),
    `apiVersion: config.seamark.io/v1alpha1\nkind: ManagerConfiguration\npublish: { enabled: false }\n${settings}\n`,
  )

async function start(): Promise<{ readonly manager: ManagerProcess; readonly at: ServerAddress }> {
  const flags = ['--kubeconfig', join(folder, 'kubeconfig'), '--config', join(folder, 'seamark.yaml')]
  const manager = await startManager([...flags, '--namespace', 'seamark'])
  cleanups.push(async () => manager.kill())
  const dns = (): string | undefined => /^dns (\S+)$/m.exec(manager.log())?.[1]
  await expect.poll(dns, POLL_OPTIONS).toBeDefined()
  return { manager, at: { address: '127.0.0.1', port: Number(dns()?.split(':')[1]) } }
}

async function ask(server: ServerAddress, name: string): Promise<string> {
  const { message } = await client.query({ server, name, type: 'A' })
  if (message.rcode !== RCODE.NOERROR) return rcodeName(message.rcode)
  return groupRecords(message.answers)
    .flatMap(({ values }) => [...values])
    .sort()
    .join(' ')
}

async function answers(server: ServerAddress, name: string, wanted: string): Promise<void> {
  await expect.poll(async () => ask(server, name).catch(String), POLL_OPTIONS).toBe(wanted)
}

interface Line {
  readonly level: string
  readonly msg: string
  readonly reason?: string
}

/** Log lines and Events of the reason that name the text. */
async function said(manager: ManagerProcess, reason: string, text: string): Promise<Line[]> {
  const lines = (): Line[] =>
    manager
      .log()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Line)
      .filter((line) => line.reason === reason && line.msg.includes(text))
  await expect.poll(() => lines().length, POLL_OPTIONS).toBe(1)
  const notes = async (): Promise<(string | undefined)[]> => {
    const { items } = await environment.client.list(Event)
    return items.flatMap(({ reason: code, regarding, note }) =>
      code === reason && regarding?.kind === 'ConfigMap' && regarding.name === 'seamark' ? [note] : [],
    )
  }
  await expect.poll(notes, POLL_OPTIONS).toContain(lines()[0]?.msg)
  return lines()
}

const endpoint = async (name: string, dnsName: string): Promise<unknown> =>
  environment.client.create(DNSEndpoint, {
    metadata: { namespace: 'shop', name },
    spec: { endpoints: [{ dnsName, recordType: 'A', recordTTL: 60, targets: ['192.0.2.7'] }] },
  })

const settings = (more: { grants: string; zones: string; mode?: string; more?: string }): string =>
  `mode: ${more.mode ?? 'enforce'}
grants: [{ namespace: shop, domains: [${more.grants}] }]
dns: { listen: ["127.0.0.1:0"], zones: [${more.zones}] }
${more.more ?? ''}`

it('allow-lists, zones, limits and the log level change while it answers; the rest is said', async () => {
  await write(settings({ grants: 'one.a.test', zones: 'a.test' }))
  const { manager, at } = await start()
  for (const [name, dnsName] of [
    ['one', 'one.a.test'],
    ['two', 'two.a.test'],
    ['three', 'three.b.test'],
  ] as const)
    await endpoint(name, dnsName)
  await answers(at, 'one.a.test', '192.0.2.7')
  expect([await ask(at, 'two.a.test'), await ask(at, 'three.b.test')]).toEqual(['NXDOMAIN', 'REFUSED'])

  await write(
    settings({ grants: 'a.test, b.test', zones: 'a.test, b.test', more: 'logLevel: warn\nsafety: { maxChanges: 9 }' }),
  )
  const [changed] = await said(manager, 'ConfigurationChanged', 'in effect without a restart: logLevel')
  expect(changed?.level).toBe('info')
  for (const path of ['logLevel', 'grants', 'safety.maxChanges', 'dns.zones']) expect(changed?.msg).toContain(path)
  await answers(at, 'two.a.test', '192.0.2.7')
  await answers(at, 'three.b.test', '192.0.2.7')
  expect(await ask(at, 'one.a.test')).toBe('192.0.2.7')
  expect(manager.log()).toContain('"host":"one.a.test."')
  expect(manager.log()).not.toContain('"host":"two.a.test."')

  await write(settings({ grants: 'b.test', zones: 'b.test' }))
  await answers(at, 'two.a.test', 'REFUSED')
  expect(await ask(at, 'three.b.test')).toBe('192.0.2.7')

  await write(settings({ grants: 'b.test', zones: 'b.test', mode: 'observe' }))
  const [restart] = await said(manager, 'RestartNeeded', 'restart the manager for: mode')
  expect(restart?.level).toBe('warn')

  await write('records: { zones: [')
  await said(manager, 'ConfigurationInvalid', 'the manager keeps what it runs with')
  await answers(at, 'three.b.test', '192.0.2.7')
  await endpoint('four', 'four.b.test')
  await answers(at, 'four.b.test', '192.0.2.7')

  await write(settings({ grants: 'b.test', zones: 'b.test', more: 'pause: true' }))
  await expect.poll(() => manager.log(), POLL_OPTIONS).toContain('writing is paused by configuration')
  await endpoint('five', 'five.b.test')
  await write(settings({ grants: 'b.test', zones: 'b.test' }))
  await answers(at, 'five.b.test', '192.0.2.7')
  expect(manager.log()).toContain('"host":"five.b.test."')
  expect(manager.log().match(/"reason":"LeaderElected"/g)).toHaveLength(1)
  expect(await manager.stop()).toBe(0)
})

it('address ranges that members must not have apply to the members that are there, and their end as well', async () => {
  const member = await environment.userCluster('par1')
  cleanups.push(async () => member.stop())
  await environment.client.create(Secret, {
    metadata: { namespace: 'seamark', name: 'cluster-par1', labels: { 'seamark.io/cluster': 'par1' } },
    data: { kubeconfig: Buffer.from(member.kubeconfig).toString('base64') },
  })
  const members = (denied: string): string =>
    settings({
      grants: 'a.test',
      zones: 'a.test',
      more: `allowLoopback: true\nwildcard: { enabled: true, zone: a.test }\ndenyAddresses: [${denied}]`,
    })
  await addNode(member.client, 'node-1', { external: ['203.0.113.11'] })
  await write(members(''))
  const { manager, at } = await start()
  await answers(at, 'any.par1.a.test', '203.0.113.11')
  await write(members('127.0.0.0/8'))
  await said(manager, 'KubeconfigRefused', 'cluster-par1')
  expect(await ask(at, 'any.par1.a.test')).toBe('203.0.113.11')
  await write(members(''))
  await addNode(member.client, 'node-2', { external: ['203.0.113.12'] })
  await answers(at, 'any.par1.a.test', '203.0.113.11 203.0.113.12')
})
