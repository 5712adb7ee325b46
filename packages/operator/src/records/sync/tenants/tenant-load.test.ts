/** One namespace requests very much: the changes of others are not held up, and what is published stays. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { DNSEndpoint } from '../../../api/dns-endpoint.ts'
import { plan, record, owned, source, want, ZONE } from '../../../../testing/plan-fixture.ts'
import { OPEN_RULES, startSync } from '../../../../testing/sync-fixture.ts'
import { SourceIndex } from '../sources/source-index.ts'

function objectOf(namespace: string, name: string, count: number, address = '192.0.2.1'): DNSEndpoint {
  const endpoints = Array.from({ length: count }, (_, index) => ({
    dnsName: `${name}-${index}.${ZONE}`,
    recordType: 'A' as const,
    recordTTL: 60,
    targets: [address],
  }))
  return { metadata: { namespace, name }, spec: { endpoints } }
}

async function start(...options: Parameters<typeof startSync>) {
  const loop = await startSync(...options)
  onTestFinished(async () => loop.stop())
  const written = (namespace: string) =>
    loop.memory.dump(ZONE).filter(({ name, type }) => type === 'A' && name.startsWith(`${namespace}-`)).length
  return { ...loop, written }
}

const limited = (perObject: number, perNamespace: number) => ({ ...OPEN_RULES, limits: { perObject, perNamespace } })

describe('a namespace with very many changes', () => {
  it('does not delay the change of another: both have their part of the next pass', async () => {
    const { clock, cluster, memory, written } = await start({ passNames: 10 })
    await clock.advance(1_000)
    const seen: { greedy: number; shop: number }[] = []
    let mostNames = 0
    const apply = memory.apply.bind(memory)
    const read = memory.read.bind(memory)
    memory.read = async (zone, names, ...given) => {
      if (names !== 'all')
        mostNames = Math.max(mostNames, [...names].filter((name) => !name.startsWith('_') && name !== ZONE).length)
      return await read(zone, names, ...given)
    }
    memory.apply = async (...given) => {
      await apply(...given)
      seen.push({ greedy: written('greedy'), shop: written('shop') })
    }
    cluster.put(DNSEndpoint, objectOf('a', 'greedy', 200))
    cluster.put(DNSEndpoint, objectOf('b', 'shop', 2))
    await clock.advance(5_000)
    expect(seen[0]).toEqual({ greedy: 8, shop: 2 })
    expect(seen).toHaveLength(21)
    expect(seen.at(-1)).toEqual({ greedy: 200, shop: 2 })
    // No pass plans more than its share, either.
    expect(mostNames).toBe(10)
  })

  it('is in place only when all of its names are: the status is written once', async () => {
    const { clock, cluster, written } = await start({ passNames: 10 })
    const writtenAtStatus: number[] = []
    cluster.intercept = ({ verb, kind }) => {
      if (verb === 'patch' && kind.startsWith('DNSEndpoint')) writtenAtStatus.push(written('greedy'))
    }
    cluster.put(DNSEndpoint, objectOf('a', 'greedy', 95))
    await clock.advance(5_000)
    expect(writtenAtStatus).toEqual([95])
    expect(written('greedy')).toBe(95)
    expect(cluster.requests.filter(({ verb }) => verb === 'patch')).toHaveLength(1)
    expect((await cluster.client.get(DNSEndpoint, 'a/greedy')).status?.observedGeneration).toBe(1)
  })

  it('is written in shares also when the whole zone is planned, and the owned names are counted as they are written', async () => {
    const { clock, cluster, memory, killSwitch, written, store } = await start({ passNames: 10 })
    killSwitch.set('test', true)
    cluster.put(DNSEndpoint, objectOf('a', 'greedy', 50))
    cluster.put(DNSEndpoint, objectOf('b', 'shop', 2))
    await clock.advance(5_000)
    const seen: number[] = []
    const apply = memory.apply.bind(memory)
    memory.apply = async (...given) => {
      await apply(...given)
      seen.push(written('greedy') + written('shop'))
    }
    killSwitch.set('test', false)
    await clock.advance(5_000)
    expect(seen).toEqual([10, 20, 30, 40, 50, 52])
    expect(
      [...(await store.list()).values()].map(({ ownedNames, ownedSources }) => [ownedNames, ownedSources]),
    ).toEqual([[52, expect.any(Number)]])
  })
})

describe('a namespace beyond its limit', () => {
  it('gets a code for the youngest objects; older ones and other namespaces are served', async () => {
    const { clock, cluster, held, written } = await start({ rules: limited(10, 20) })
    cluster.put(DNSEndpoint, objectOf('a', 'first', 10))
    cluster.put(DNSEndpoint, objectOf('a', 'huge', 11))
    await clock.advance(2_000)
    cluster.put(DNSEndpoint, objectOf('a', 'second', 10))
    await clock.advance(2_000)
    cluster.put(DNSEndpoint, objectOf('a', 'third', 3))
    cluster.put(DNSEndpoint, objectOf('b', 'shop', 10))
    await clock.advance(2_000)
    expect(['first', 'huge', 'second', 'third', 'shop'].map(written)).toEqual([10, 0, 10, 0, 10])
    expect(held.map(({ name, code }) => `${name} ${code}`)).toEqual([
      'a/huge EndpointLimitExceeded',
      'a/third EndpointLimitExceeded',
    ])
    // Reported once, also when whole zones are planned again.
    await clock.advance(25 * 3_600_000)
    expect(held).toHaveLength(2)
    // Room again.
    cluster.remove(DNSEndpoint, 'a/first')
    await clock.advance(5_000)
    expect(written('third')).toBe(3)
  })

  it('loses nothing that is published when an object grows beyond the limit, and is served again when it shrinks', async () => {
    const { clock, cluster, held, memory, written } = await start({ rules: limited(10, 20) })
    cluster.put(DNSEndpoint, objectOf('a', 'shop', 10))
    await clock.advance(2_000)
    const before = memory.dump(ZONE)
    cluster.put(DNSEndpoint, objectOf('a', 'shop', 15, '192.0.2.9'))
    await clock.advance(25 * 3_600_000)
    expect(memory.dump(ZONE)).toEqual(before)
    expect(held.map(({ code }) => code)).toEqual(['EndpointLimitExceeded'])
    cluster.put(DNSEndpoint, objectOf('a', 'shop', 9, '192.0.2.9'))
    await clock.advance(2_000)
    expect(written('shop')).toBe(9)
    expect(new Set(memory.dump(ZONE).flatMap(({ type, values }) => (type === 'A' ? values : [])))).toEqual(
      new Set(['192.0.2.9']),
    )
  })

  it('keeps its claims: another namespace does not get its published names', async () => {
    const { clock, cluster, memory } = await start({ rules: limited(10, 20) })
    cluster.put(DNSEndpoint, objectOf('a', 'shop', 10))
    await clock.advance(2_000)
    const before = memory.dump(ZONE)
    cluster.put(DNSEndpoint, objectOf('a', 'shop', 11))
    await clock.advance(2_000)
    cluster.put(DNSEndpoint, {
      ...objectOf('b', 'shop', 1, '203.0.113.66'),
      metadata: { namespace: 'b', name: 'rival' },
    })
    await clock.advance(3_600_000)
    expect(memory.dump(ZONE)).toEqual(before)
  })

  it('a plan deletes no record of a source beyond a limit', () => {
    const set = record('shop', 'A', ['192.0.2.1'])
    const fixture = {
      observed: owned(set, { source: 's' }),
      desired: [want(record('x', 'A', ['192.0.2.1']), source('t'))],
    }
    const present = new Set(['s', 't'])
    expect(plan({ ...fixture, sources: { present, gone: new Set() } }).changes).toHaveLength(2)
    const { changes } = plan({ ...fixture, sources: { present, gone: new Set(), overLimit: new Set(['s']) } })
    expect(changes.map(({ op }) => op)).toEqual(['create'])
  })
})

it('an object is read once for all of its names', () => {
  const index = new SourceIndex(() => true, 60, OPEN_RULES)
  let reads = 0
  const object = objectOf('a', 'shop', 300)
  const endpoints = object.spec.endpoints.map((item) => ({
    ...item,
    get recordType() {
      reads++
      return 'A' as const
    },
  }))
  index.note({ ...object, metadata: { ...object.metadata, uid: 'u' }, spec: { endpoints } }, false)
  const requested = index.desired(new Set(index.names()))
  expect(requested.desired).toHaveLength(300)
  for (const { set } of requested.desired) expect(requested.claimant(set.name)?.namespace).toBe('a')
  expect(reads).toBeLessThanOrEqual(300)
})
