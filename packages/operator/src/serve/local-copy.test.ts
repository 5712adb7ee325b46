/** Zones in ConfigMaps, several processes, and an API server that is away: who answers what. */
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDnsClient, groupRecords, RCODE, rcodeName } from '@seamark/dns'
import { ConfigMap, createLogger, systemClock, TransportError } from '@seamark/kube'
import { memoryCluster } from '@seamark/kube/testing'
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest'
import { DnsConfig } from './config.ts'
import { openDnsService } from './dns-service.ts'

const ZONE = { id: 'example.test.', name: 'example.test.' }
const client = createDnsClient({ timeoutMs: 500, tries: 1 })
const { signal } = new AbortController()
const open: (() => Promise<void>)[] = []
let folder = ''
let cluster = memoryCluster()
let isAway = false

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'seamark-local-copy-'))
  cluster = memoryCluster()
  isAway = false
  cluster.intercept = () => {
    if (isAway) throw new TransportError('RESET', 'the API server is away')
  }
})
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
  rmSync(folder, { recursive: true, force: true })
})
afterAll(async () => client.close())

/** `name`: its own folder; none: no local copy. Its clock is that of the system, with seconds ten times as short. */
async function start(name?: string, namespace = 'seamark') {
  const lines: string[] = []
  let isLeading = false
  const service = await openDnsService({
    config: DnsConfig.parse({ listen: ['127.0.0.1:0'], zones: ['example.test'] }),
    env: {},
    client: cluster.client,
    namespace,
    ...(name !== undefined && { copyFolder: join(folder, name) }),
    isLeading: () => isLeading,
    waitsForRecords: true,
    log: createLogger({ level: 'info', destination: { write: (line: string) => lines.push(line) } }),
    clock: {
      now: () => systemClock.now(),
      monotonic: () => systemClock.monotonic() * 50,
      after: (ms, run) => systemClock.after(ms / 50, run),
    },
  })
  const stopping = new AbortController()
  const following = service.follow(stopping.signal)
  let isStopped = false
  const stop = async () => {
    if (isStopped) return
    isStopped = true
    stopping.abort()
    await following
    await service.close()
  }
  open.push(stop)
  return {
    service,
    lines,
    stop,
    serial: () => service.zones()[0]?.serial ?? 0,
    async lead() {
      isLeading = true
      service.renew()
      return service.lead(stopping.signal)
    },
    follow: () => void (isLeading = false),
    async ask(host = 'www') {
      const [server] = service.addresses
      const name_ = `${host}.example.test`
      const { message } = await client.query({ server: server!, name: name_, type: 'A' })
      if (message.rcode !== RCODE.NOERROR) return rcodeName(message.rcode)
      return groupRecords(message.answers)
        .flatMap(({ values }) => [...values])
        .join()
    },
    async write(value: string, from?: string) {
      const set = (address: string) => ({ name: 'www.example.test.', type: 'A', ttl: 60, values: [address] })
      await service.provider.apply(ZONE, [{ to: set(value), from: from === undefined ? undefined : set(from) }], signal)
    },
  }
}

/** A process that led, wrote one record, and ended. */
async function leaderBefore(name?: string): Promise<void> {
  const leader = await start(name)
  await leader.lead()
  await leader.write('192.0.2.1')
  leader.service.complete(ZONE.name)
  await expect
    .poll(() => cluster.informers.list(ConfigMap).some(({ data }) => data?.['complete'] === 'false'))
    .toBe(false)
  if (name !== undefined)
    await expect.poll(() => existsSync(join(folder, name, 'copies', 'seamark', 'example.test'))).toBe(true)
  await leader.stop()
}

it('a process that starts while the API server is away answers from its copy; one without a copy refuses until it is back', async () => {
  await leaderBefore('a')
  isAway = true
  const [copied, bare] = [await start('a'), await start()]
  expect(await copied.ask()).toBe('192.0.2.1')
  expect(copied.service.check()).toBeUndefined()
  expect(await copied.ask('missing')).toBe('NXDOMAIN')
  expect(await bare.ask()).toBe('REFUSED')
  expect(bare.service.check()).toContain('the API server is away')
  // Without the stored truth nothing is planned and nothing is written.
  await copied.lead()
  await expect(copied.service.provider.read(ZONE, 'all', signal)).rejects.toThrow('the API server is away')
  await expect(copied.write('192.0.2.2', '192.0.2.1')).rejects.toMatchObject({ code: 'ZoneNotStored' })
  expect(await copied.ask()).toBe('192.0.2.1')
  isAway = false
  await expect.poll(async () => bare.ask()).toBe('192.0.2.1')
  expect(await copied.service.lead(signal)).toBe(true)
  await copied.write('192.0.2.2', '192.0.2.1')
  await expect.poll(async () => bare.ask()).toBe('192.0.2.2')
})

it('a process that loses its lease or the API server goes on answering, and follows whoever leads', async () => {
  const [a, b] = [await start('a'), await start('b')]
  await a.lead()
  await a.write('192.0.2.1')
  // Stored, but records may be missing: nobody answers from it.
  await expect.poll(() => b.serial()).toBeGreaterThan(0)
  expect([await a.ask(), await b.ask()]).toEqual(['REFUSED', 'REFUSED'])
  a.service.complete(ZONE.name)
  await expect.poll(async () => b.ask()).toBe('192.0.2.1')
  isAway = true
  a.follow()
  expect([await a.ask(), await b.ask()]).toEqual(['192.0.2.1', '192.0.2.1'])
  isAway = false
  const before = a.serial()
  await b.lead()
  await b.write('192.0.2.2', '192.0.2.1')
  await expect.poll(async () => a.ask()).toBe('192.0.2.2')
  expect(a.serial()).toBeGreaterThan(before)
  // And back, in the same process.
  b.follow()
  await a.lead()
  await a.write('192.0.2.3', '192.0.2.2')
  await expect.poll(async () => b.ask()).toBe('192.0.2.3')
})

it('a change that is under way when the lease is lost is not made in memory alone', async () => {
  const a = await start('a')
  await a.lead()
  await a.write('192.0.2.1')
  a.service.complete(ZONE.name)
  let release: (() => void) | undefined
  cluster.intercept = async ({ verb }) => {
    if (verb !== 'update') return
    await new Promise<void>((resolve) => (release = resolve))
    throw new TransportError('RESET', 'no response')
  }
  const first = a.write('192.0.2.2', '192.0.2.1').catch((error: unknown) => error)
  const second = a.write('192.0.2.3', '192.0.2.1').catch((error: unknown) => error)
  await expect.poll(() => release).toBeDefined()
  a.follow()
  cluster.intercept = undefined
  release?.()
  expect(await first).toMatchObject({ code: 'ZoneNotStored' })
  expect(await second).toMatchObject({ code: 'ZoneNotStored' })
  expect(await a.ask()).toBe('192.0.2.1')
})

it('a copy that is damaged is not answered from, is named, and is made anew', async () => {
  await leaderBefore('a')
  const zone = join(folder, 'a', 'copies', 'seamark', 'example.test')
  expect(readdirSync(zone)).toContain('snapshot')
  writeFileSync(join(zone, 'snapshot'), 'garbage')
  isAway = true
  const damaged = await start('a')
  expect(await damaged.ask()).toBe('REFUSED')
  expect(damaged.lines.join()).toContain('the local copy cannot be used and is made anew')
  isAway = false
  await expect.poll(async () => damaged.ask()).toBe('192.0.2.1')
  await damaged.stop()
  isAway = true
  expect(await (await start('a')).ask()).toBe('192.0.2.1')
})

it('a copy of another namespace is not answered from', async () => {
  await leaderBefore('a')
  isAway = true
  expect(await (await start('a', 'other')).ask()).toBe('REFUSED')
})

it('what is stored replaces a copy that differs, also an older one with a newer serial, and the serial never goes back', async () => {
  await leaderBefore('a')
  // The ConfigMaps are restored from a backup that was made earlier and of other content.
  const copies = cluster.informers.list(ConfigMap)
  for (const { metadata } of copies) cluster.remove(ConfigMap, `seamark/${metadata.name}`)
  const other = await start()
  await other.lead()
  await other.write('192.0.2.9')
  other.service.complete(ZONE.name)
  await other.stop()
  const back = await start('a')
  await expect.poll(async () => back.ask()).toBe('192.0.2.9')
  const before = back.serial()
  await back.lead()
  await back.write('192.0.2.10', '192.0.2.9')
  expect(back.serial()).toBeGreaterThan(before)
})
