/**
 * A manager of this version on the state that version 0.1.0 left (state-0.1.0.json, by record-state.ts): held changes of
 * publish and of records, zones in ConfigMaps, claims, leases, markers, and generated objects with their managed fields.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createDnsClient, groupRecords } from '@seamark/dns'
import { DNSEndpoint } from '@seamark/operator'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../dns/peers.ts'
import { buildBundle, type ManagerProcess, startManager } from '../records/manager-process.ts'
import { seamark } from './programs.ts'
import { MEMBERS, SERVERS, startStateWorld, type StateWorld } from './state-world.ts'
import { loadObjects, type StoredState } from './stored-state.ts'
import { eventually } from './waiting.ts'

/** The addresses of its gateways are on the loopback interface of Linux without further ado. */
const isLinux = process.platform === 'linux'
const state = JSON.parse(readFileSync(join(import.meta.dirname, 'state-0.1.0.json'), 'utf8')) as StoredState

const dns = createDnsClient({ tries: 1, timeoutMs: 1_000 })
let world: StateWorld
let manager: ManagerProcess
let flags: readonly string[] = []
let dnsPort = 0

/** Values of an RRset of the zone, sorted; undefined: no answer yet. */
async function ask(name: string, type: string): Promise<string | undefined> {
  try {
    const { message } = await dns.query({ server: { address: '127.0.0.1', port: dnsPort }, name, type })
    return groupRecords(message.answers)
      .filter((set) => set.type === type)
      .flatMap(({ values }) => [...values])
      .sort()
      .join(' ')
  } catch {
    return undefined
  }
}

async function approve(...ids: string[]) {
  return seamark('approve', ...ids, ...flags)
}

/** Of the sets that the state holds, those that are listed now. */
async function heldNow(): Promise<string[]> {
  const { stdout } = await approve()
  return state.held.filter((id) => stdout.includes(id))
}

/** `example.com A 192.0.2.1` of every name that the state answers, as it is answered now. */
async function answersNow(): Promise<string[]> {
  return Promise.all(
    state.answers.map(async (line) => {
      const [name = '', type = ''] = line.split(' ')
      return `${name} ${type} ${await ask(name, type)}`
    }),
  )
}

/** Names of the records that the manager wrote. */
function written(): string[] {
  const lines = manager.log().split('\n')
  const records = lines.flatMap((line) => (line.includes('"record written"') ? [JSON.parse(line) as Written] : []))
  return [...new Set(records.map(({ host }) => host.replace(/\.$/, '')))].sort()
}

interface Written {
  readonly host: string
}

beforeAll(async () => {
  if (!isLinux) return
  buildBundle()
  world = await startStateWorld()
  const kubeconfigs = new Map(MEMBERS.map((name) => [name, world.servers.get(name)?.kubeconfig ?? '']))
  for (const name of SERVERS) {
    const server = world.servers.get(name)?.server
    if (server === undefined) throw new Error(`no server ${name}`)
    loadObjects(server, state.servers[name] ?? [], { recordedAt: state.recordedAt, kubeconfigs })
  }
  dnsPort = await freePort()
  flags = world.configure(dnsPort, 'web/second')
  manager = await startManager(flags)
}, 120_000)

afterAll(async () => {
  await manager?.kill()
  await dns.close()
  await world?.close()
})

it.skipIf(!isLinux)(
  'makes no DNS change, forgets nothing that is held, and carries out what is approved',
  async () => {
    await eventually('the zone is served', async () => {
      const [first = ''] = state.answers
      return (await ask(first.split(' ')[0] ?? '', 'A')) || undefined
    })
    const serial = await ask('example.com', 'SOA')
    expect(await answersNow()).toEqual(state.answers)
    // From the first moment: it is stored, and no pass has to find it again.
    expect(await heldNow()).toEqual(state.held)
    await eventually('a pass over the zone', async () => {
      const line = /^seamark_records_last_sync_timestamp_seconds\{.*\} (\d+)/m.exec(await manager.metrics())
      return Number(line?.[1] ?? 0) * 1_000 > state.recordedAt ? true : undefined
    })
    expect([written(), await ask('example.com', 'SOA')]).toEqual([[], serial])

    // What comes after everything that was decided at the start.
    await world.client('hub').create(DNSEndpoint, {
      metadata: { namespace: 'infra', name: 'after' },
      spec: {
        endpoints: [{ dnsName: 'after.example.com', recordType: 'A', recordTTL: 60, targets: ['198.51.100.99'] }],
      },
    })
    await eventually('what is new is published', async () =>
      (await ask('after.example.com', 'A')) === '198.51.100.99' ? true : undefined,
    )
    expect(written()).toEqual(['after.example.com'])
    expect(await answersNow()).toEqual(state.answers)

    expect(await heldNow()).toEqual(state.held)
    for (const id of state.held) expect(await approve(id)).toMatchObject({ code: 0, stderr: '' })
    await eventually('the HTTPProxies have the address of the other Service', async () =>
      (await ask('p0.example.com', 'A')) === '192.0.2.81' ? true : undefined,
    )
    const deleted = state.answers.map((line) => line.split(' ')[0] ?? '').filter((name) => /^d\d/.test(name))
    expect(deleted.length).toBeGreaterThan(5)
    await eventually('the deleted DNSEndpoints are not answered', async () =>
      (await Promise.all(deleted.map(async (name) => ask(name, 'A')))).every((answer) => answer === '')
        ? true
        : undefined,
    )
    expect(await ask('shop.example.com', 'A')).toBe('127.77.1.1 127.77.2.1')
  },
  240_000,
)
