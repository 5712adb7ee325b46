import { CustomResourceDefinition, NotFound } from '@seamark/kube'
import { expect, describe, it, onTestFinished } from 'vitest'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import type { MemoryCluster } from '@seamark/kube/testing'
import { memoryProvider } from '../../providers/memory.ts'
import { ProviderError } from '../../rrset/error.ts'
import { ZONE } from '../../../testing/plan-fixture.ts'
import { definition, endpoint, startSync } from '../../../testing/sync-fixture.ts'

const names = (count: number) => Array.from({ length: count }, (_, index) => `n${index}`)

async function start(...options: Parameters<typeof startSync>) {
  const loop = await startSync(...options)
  onTestFinished(async () => loop.stop())
  return loop
}

/** A manager with this many names in place. */
async function settled(count: number, ...options: Parameters<typeof startSync>) {
  const loop = await start(...options)
  for (const name of names(count)) loop.cluster.put(DNSEndpoint, endpoint(name))
  await loop.clock.advance(2_000)
  expect(loop.memory.dump(ZONE).filter(({ type }) => type === 'A')).toHaveLength(count)
  return loop
}

it.each(['_acme-challenge', 's1._domainkey'])(
  '%s below a name of ours is written, at a service that is read by name',
  async (label) => {
    const { cluster, clock, memory, held } = await start()
    cluster.put(DNSEndpoint, endpoint('shop'))
    await clock.advance(2_000)
    const proof = {
      dnsName: `${label}.shop.${ZONE}`,
      recordType: 'CNAME' as const,
      recordTTL: 60,
      targets: ['proof.b.test'],
    }
    cluster.put(DNSEndpoint, { metadata: { name: 'proof', namespace: 'web' }, spec: { endpoints: [proof] } })
    await clock.advance(2_000)
    expect([memory.dump(ZONE).filter(({ type }) => type === 'CNAME').length, held]).toEqual([1, []])
  },
)

it('a DNSEndpoint whose name another one requests, too, is told which', async () => {
  const told: string[] = []
  const { cluster, clock } = await settled(1, {
    reports: {
      shared: ({ name, type }, { metadata }, holder) =>
        told.push(`${holder.metadata.name}: ${metadata.name} ${name} ${type}`),
    },
  })
  await clock.advance(2_000)
  cluster.put(DNSEndpoint, endpoint('z', ['192.0.2.9'], `n0.${ZONE}`))
  await clock.advance(2_000)
  cluster.put(DNSEndpoint, endpoint('z', ['192.0.2.8'], `n0.${ZONE}`))
  await clock.advance(2_000)
  expect(told).toEqual([`n0: z n0.${ZONE} A`])
})

it('a name that another source released is written as soon as the time that was said is over', async () => {
  const { cluster, clock, held, values } = await settled(30)
  // Away from the sweep of each minute.
  await clock.advance(11_000)
  cluster.put(DNSEndpoint, endpoint('heir', ['192.0.2.9'], `n3.${ZONE}`))
  await clock.advance(1_000)
  cluster.remove(DNSEndpoint, 'web/n3')
  await clock.advance(1_000)
  const { until = 0 } = held.findLast(({ code }) => code === 'ClaimPending') ?? {}
  expect(until).toBeGreaterThan(clock.now())
  await clock.advance(until - clock.now() - 1)
  expect(values('n3')).toEqual(['192.0.2.1'])
  await clock.advance(1_000)
  expect(values('n3')).toEqual(['192.0.2.9'])
})

describe('the drift sweep (INV-23)', () => {
  it('reads each name once an hour, a part of them every minute, and not the whole zone', async () => {
    const { clock, memory } = await settled(600)
    memory.counts.readSets = 0
    await clock.advance(60_000)
    // A name has a record and a marker.
    expect(memory.counts.readSets).toBe(20)
    await clock.advance(59 * 60_000)
    expect(memory.counts.readSets).toBe(1_200)
  })

  it('finds records that another program changed or deleted within the hour', async () => {
    const { clock, memory, values } = await settled(120)
    memory.put(ZONE, { name: `n7.${ZONE}`, type: 'A', ttl: 60, values: ['203.0.113.9'] })
    memory.remove(ZONE, `n90.${ZONE}`, 'A')
    await clock.advance(61 * 60_000)
    expect(values('n7')).toEqual(['192.0.2.1'])
    expect(values('n90')).toEqual(['192.0.2.1'])
  })

  it('reads a service that returns only whole zones once an hour, not once a minute', async () => {
    const { clock, memory } = await settled(60, { capabilities: { readsByName: false } })
    memory.counts.reads = 0
    await clock.advance(120 * 60_000)
    expect(memory.counts.reads).toBe(2)
  })

  it('reads the whole zone once a day', async () => {
    const { clock, memory } = await settled(60)
    memory.put(ZONE, { name: `foreign.${ZONE}`, type: 'A', ttl: 60, values: ['203.0.113.9'] })
    memory.counts.readSets = 0
    await clock.advance(86_400_000)
    // 24 rounds over 60 names; the last step is part of the read of the whole zone.
    expect(memory.counts.readSets).toBe(24 * 120 - 2 + 121)
  })

  it('a change reads its own names only', async () => {
    const { clock, memory, cluster } = await settled(600)
    memory.counts.readSets = 0
    cluster.put(DNSEndpoint, endpoint('n5', ['192.0.2.5']))
    await clock.advance(1_000)
    // Once to plan, once before writing.
    expect(memory.counts.readSets).toBe(4)
  })
})

describe('what is held', () => {
  it('is reported once, planned again at its time, and then done', async () => {
    const { clock, memory, cluster, held, values } = await settled(20)
    for (const name of names(6)) cluster.remove(DNSEndpoint, `web/${name}`)
    await clock.advance(2_000)
    // Five names are deleted at once; the sixth is held and reported.
    expect(memory.dump(ZONE).filter(({ type }) => type === 'A')).toHaveLength(15)
    expect(held.map(({ name, code }) => `${name} ${code}`)).toEqual([`n5.${ZONE} Quarantined`])
    await clock.advance(20 * 60_000)
    expect(values('n5')).toEqual(['192.0.2.1'])
    await clock.advance(12 * 60_000)
    expect(values('n5')).toBeUndefined()
    expect(held).toHaveLength(1)
  })

  it('also an invalid name of an object that was added later is refused', async () => {
    const { clock, cluster, held, values } = await settled(1)
    cluster.put(DNSEndpoint, endpoint('bad', ['192.0.2.1'], `bad..name.${ZONE}`))
    cluster.put(DNSEndpoint, endpoint('good'))
    await clock.advance(1_000)
    expect(held.map(({ code }) => code)).toEqual(['RecordInvalid'])
    expect(values('good')).toEqual(['192.0.2.1'])
  })

  it('while a service is down is reported, published records stay, and the loop recovers by itself', async () => {
    const { clock, memory, cluster, held, values } = await settled(3)
    const read = memory.read.bind(memory)
    memory.read = async () => {
      throw new ProviderError('ProviderUnavailable', 'later', 'connection refused')
    }
    cluster.put(DNSEndpoint, endpoint('n0', ['192.0.2.9']))
    await clock.advance(120_000)
    expect([...new Set(held.map(({ name }) => name))]).toEqual([`n0.${ZONE}`])
    expect(held.at(-1)?.code).toBe('Stale')
    expect(values('n0')).toEqual(['192.0.2.1'])
    memory.read = read
    await clock.advance(120_000)
    expect(values('n0')).toEqual(['192.0.2.9'])
  })
})

describe('an adopted record', () => {
  it('has the values of its source at once, not only when the name is verified', async () => {
    const memory = memoryProvider({ zones: [ZONE] })
    memory.put(ZONE, { name: `n0.${ZONE}`, type: 'A', ttl: 60, values: ['203.0.113.9'] })
    const { clock, cluster, values } = await start({ memory })
    const object = endpoint('n0')
    const annotations = { 'seamark.io/adopt': '203.0.113.9' }
    cluster.put(DNSEndpoint, { ...object, metadata: { ...object.metadata, annotations } })
    await clock.advance(2_000)
    expect(values('n0')).toEqual(['192.0.2.1'])
  })
})

describe('observedGeneration', () => {
  const observed = async (cluster: MemoryCluster, name: string) =>
    (await cluster.client.get(DNSEndpoint, `web/${name}`)).status?.observedGeneration

  it('is written once when everything is in place, and not while a change is held', async () => {
    const memory = memoryProvider({ zones: [ZONE] })
    memory.put(ZONE, { name: `n1.${ZONE}`, type: 'A', ttl: 60, values: ['203.0.113.9'] })
    const { clock, cluster } = await start({ memory })
    for (const name of names(2)) cluster.put(DNSEndpoint, endpoint(name))
    await clock.advance(2_000)
    expect(await observed(cluster, 'n0')).toBe(1)
    expect(await observed(cluster, 'n1')).toBeUndefined()
    const patches = () => cluster.requests.filter(({ verb }) => verb === 'patch').length
    expect(patches()).toBe(1)
    await clock.advance(3_600_000)
    expect(patches()).toBe(1)
  })
})

describe('sources that are not in the cache', () => {
  const runLoop = async (
    memory: ReturnType<typeof memoryProvider>,
    prepare: (loop: Awaited<ReturnType<typeof start>>) => void,
  ) => {
    const loop = await startSync({ memory })
    prepare(loop)
    await loop.clock.advance(5_000)
    await loop.stop()
    return loop
  }
  const filled = async (count: number) => {
    const memory = memoryProvider({ zones: [ZONE] })
    await runLoop(memory, ({ cluster }) => {
      for (const name of names(count)) cluster.put(DNSEndpoint, endpoint(name))
    })
    return memory
  }

  it('a version that reads no sources deletes nothing, also where a breaker would allow it', async () => {
    const memory = await filled(3)
    const before = memory.dump(ZONE)
    const { held } = await runLoop(memory, () => undefined)
    expect(memory.dump(ZONE)).toEqual(before)
    expect(held.map(({ code }) => code)).toEqual(['SourceUnconfirmed', 'SourceUnconfirmed', 'SourceUnconfirmed'])
  })

  it('nor does one whose filter excludes them all', async () => {
    const memory = await filled(3)
    const before = memory.dump(ZONE)
    const loop = await startSync({ memory, isServed: () => false })
    for (const name of names(3)) loop.cluster.put(DNSEndpoint, endpoint(name))
    await loop.clock.advance(5_000)
    await loop.stop()
    expect(memory.dump(ZONE)).toEqual(before)
  })

  it.each([
    ['is being removed', definition('2020-01-01T00:00:00Z', { deletionTimestamp: '2030-01-01T00:00:00Z' })],
    ['was installed again', definition('2030-01-01T00:01:00Z', { uid: 'new' })],
    [
      'was installed again in the second in which the record was written',
      definition('2030-01-01T00:00:00Z', { uid: 'new' }),
    ],
  ])('a kind that %s causes no deletion of records', async (_what, next) => {
    const { clock, cluster, held, memory } = await settled(3)
    await clock.advance(60_000)
    if (next.metadata.uid !== undefined) cluster.remove(CustomResourceDefinition, next.metadata.name ?? '')
    cluster.put(CustomResourceDefinition, next)
    for (const name of names(3)) cluster.remove(DNSEndpoint, `web/${name}`)
    await clock.advance(5_000)
    expect(memory.dump(ZONE)).toHaveLength(6)
    expect(new Set(held.map(({ code }) => code))).toEqual(new Set(['SourceUnconfirmed']))
  })

  it('nor is anything deleted when the kind is no longer served', async () => {
    const { clock, cluster, memory } = await settled(3)
    cluster.remove(CustomResourceDefinition, definition('').metadata.name ?? '')
    cluster.intercept = ({ verb, kind }) => {
      if (verb === 'list' && kind.startsWith('DNSEndpoint.')) throw notServed()
    }
    for (const name of names(3)) cluster.remove(DNSEndpoint, `web/${name}`)
    await clock.advance(5_000)
    expect(memory.dump(ZONE)).toHaveLength(6)
  })

  it('a deletion that could not be confirmed while the watch was down is made soon after it is live again', async () => {
    const { clock, cluster, held, memory } = await settled(3)
    cluster.setState(DNSEndpoint, 'backoff')
    cluster.remove(DNSEndpoint, 'web/n0')
    await clock.advance(5_000)
    expect(held.map(({ code }) => code)).toEqual(['SourceUnconfirmed'])
    expect(memory.dump(ZONE)).toHaveLength(6)
    cluster.setState(DNSEndpoint, 'live')
    await clock.advance(30_000)
    expect(memory.dump(ZONE)).toHaveLength(4)
  })

  it('a deletion is made soon, also if the watch is live again before the pass ends', async () => {
    const { clock, cluster, memory } = await settled(3, {
      reports: { held: () => cluster.setState(DNSEndpoint, 'live') },
    })
    cluster.setState(DNSEndpoint, 'backoff')
    cluster.remove(DNSEndpoint, 'web/n0')
    await clock.advance(30_000)
    expect(memory.dump(ZONE)).toHaveLength(4)
  })

  it('a record that this process wrote in the second in which the kind was installed is deleted with its source', async () => {
    const { clock, cluster, memory } = await settled(3, { installed: '2030-01-01T00:00:00Z' })
    cluster.remove(DNSEndpoint, 'web/n0')
    await clock.advance(1_000)
    expect(memory.dump(ZONE)).toHaveLength(4)
  })

  it('so does a process that started later', async () => {
    const { memory } = await settled(3, { installed: '2030-01-01T00:00:00Z' })
    const { clock, cluster } = await start({ memory, installed: '2030-01-01T00:00:00Z' })
    for (const name of names(2)) cluster.put(DNSEndpoint, endpoint(name))
    await clock.advance(10_000)
    expect(memory.dump(ZONE)).toHaveLength(4)
  })

  it('a record that was written before the kind was installed waits until its source cannot be restored', async () => {
    const memory = await filled(3)
    const { clock, cluster, held } = await start({ memory, installed: '2030-01-01T00:00:05Z' })
    for (const name of names(2)) cluster.put(DNSEndpoint, endpoint(name))
    await clock.advance(10_000)
    const until = Date.UTC(2030, 0, 1, 0, 30, 6)
    expect(held.map((each) => [each.name, each.code, each.until])).toEqual([[`n2.${ZONE}`, 'SourceUnconfirmed', until]])
    await clock.advance(until - clock.now() - 1_000)
    expect(memory.dump(ZONE)).toHaveLength(6)
    await clock.advance(2_000)
    expect(memory.dump(ZONE)).toHaveLength(4)
  })

  it('a record whose source is confirmed gone is deleted at once', async () => {
    const { clock, cluster, memory } = await settled(3)
    cluster.remove(DNSEndpoint, 'web/n0')
    await clock.advance(1_000)
    expect(memory.dump(ZONE)).toHaveLength(4)
  })
})

function notServed(): NotFound {
  const status = { kind: 'Status', apiVersion: 'v1', reason: 'NotFound', message: 'not served' } as const
  return new NotFound('NotFound', 'the server could not find the requested resource', 404, status)
}

it('the kill switch holds everything, and the pending changes follow when it is turned off', async () => {
  const { clock, cluster, memory, killSwitch, values } = await settled(2)
  killSwitch.set('annotation', true)
  const [writes, requests] = [memory.counts.writes, cluster.requests.filter(({ verb }) => verb === 'patch').length]
  cluster.put(DNSEndpoint, endpoint('n0', ['192.0.2.9']))
  await clock.advance(600_000)
  expect(memory.counts.writes).toBe(writes)
  expect(cluster.requests.filter(({ verb }) => verb === 'patch')).toHaveLength(requests)
  killSwitch.set('annotation', false)
  await clock.advance(1_000)
  expect(values('n0')).toEqual(['192.0.2.9'])
})

describe('a name of two sources', () => {
  it('is assigned to the younger one a minute after the older was deleted, also when nothing else changes', async () => {
    const { clock, cluster, values } = await settled(1)
    cluster.put(DNSEndpoint, endpoint('younger', ['192.0.2.9'], `n0.${ZONE}`))
    await clock.advance(2_000)
    expect(values('n0')).toEqual(['192.0.2.1'])
    cluster.remove(DNSEndpoint, 'web/n0')
    await clock.advance(30_000)
    expect(values('n0')).toEqual(['192.0.2.1'])
    await clock.advance(3 * 60_000)
    expect(values('n0')).toEqual(['192.0.2.9'])
  })
})
