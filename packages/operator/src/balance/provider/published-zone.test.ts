/** Many load balancers of one zone that change at the same time: what they cost, and that none affects another. */
import { describe, expect, it } from 'vitest'
import { dnsWriterFixture, loadBalancerFixture } from '../../../testing/dns-writer-fixture.ts'
import { type MemoryProvider, memoryProvider } from '../../providers/memory.ts'
import { type GuardStore, memoryGuardStore } from '../../records/state/guard-state.ts'

const ZONE = 'example.test.'
const labels = (count: number) => Array.from({ length: count }, (_, index) => `lb-${index}`)

/** A process of `seamark dnslb`; `provider` and `store` can be shared by two of them. */
async function startProcess(provider: MemoryProvider, store: GuardStore = memoryGuardStore()) {
  let lists = 0
  const known = new Set<string>()
  const { publisher, context } = await dnsWriterFixture(provider, {
    store,
    async claimedNames() {
      lists++
      return new Set()
    },
    knownNames: () => known,
  })
  return {
    lists: () => lists,
    known,
    sweep: async () => publisher.sweep('all', context.signal),
    async observe(label: string) {
      const { loadBalancer, settings } = loadBalancerFixture(label)
      return publisher.observe(loadBalancer, settings, context)
    },
    async publish(label: string, ...values: string[]) {
      const { loadBalancer, settings } = loadBalancerFixture(label)
      const sets = values.length === 0 ? [] : [{ name: settings.recordName, type: 'A', ttl: 30, values }]
      return publisher.publish({ loadBalancer, settings, sets, cnames: [], reason: 'EndpointSelected' }, context)
    },
    forget: async (label: string) => publisher.forget(`web/${label}`, context),
  }
}

const addressesIn = (provider: MemoryProvider) =>
  provider
    .dump(ZONE)
    .filter(({ type }) => type === 'A')
    .map(({ name, values }) => `${name} ${values.join(' ')}`)

describe('load balancers of one zone that are published at the same time', () => {
  it('share the requests to the DNS service and the writes of guard state', async () => {
    const provider = memoryProvider({ zones: [ZONE] })
    const store = memoryGuardStore()
    let updates = 0
    const counted: GuardStore = {
      ...store,
      async update(zone, change) {
        updates++
        return store.update(zone, change)
      },
    }
    const the = await startProcess(provider, counted)
    const names = labels(100)
    await Promise.all(names.map(async (label) => the.observe(label)))
    expect(provider.counts.reads).toBe(1)
    await Promise.all(names.map(async (label) => the.publish(label, '192.0.2.1')))
    expect(addressesIn(provider)).toHaveLength(100)
    expect(updates).toBe(1)
    expect(provider.counts.writes).toBe(1)

    await Promise.all(names.slice(0, 5).map(async (label) => the.forget(label)))
    expect(the.lists()).toBe(1)
    expect(addressesIn(provider)).toHaveLength(95)
  })

  it('are listed live only when a record has no load balancer in the cache', async () => {
    const provider = memoryProvider({ zones: [ZONE] })
    const the = await startProcess(provider)
    await Promise.all(labels(2).map(async (label) => the.publish(label, '192.0.2.1')))
    for (const label of labels(2)) the.known.add(`${label}.example.test.`)
    await the.sweep()
    expect([the.lists(), addressesIn(provider).length]).toEqual([0, 2])
    the.known.delete('lb-1.example.test.')
    await the.sweep()
    expect([the.lists(), addressesIn(provider).length]).toEqual([1, 1])
  })

  it('do not wait for one whose records are not ours', async () => {
    const provider = memoryProvider({ zones: [ZONE] })
    provider.put(ZONE, { name: 'lb-1.example.test.', type: 'A', ttl: 60, values: ['198.51.100.1'] })
    const the = await startProcess(provider)
    const outcomes = await Promise.allSettled(labels(3).map(async (label) => the.publish(label, '192.0.2.1')))
    expect(outcomes).toMatchObject([
      { value: 'published' },
      { reason: { message: expect.stringMatching(/^lb-1\.example\.test\. A: UnownedRecordExists: /) } },
      { value: 'published' },
    ])
    expect(addressesIn(provider)).toEqual([
      'lb-0.example.test. 192.0.2.1',
      'lb-1.example.test. 198.51.100.1',
      'lb-2.example.test. 192.0.2.1',
    ])
  })

  it('share one delete budget, also with another process', async () => {
    const provider = memoryProvider({ zones: [ZONE] })
    const store = memoryGuardStore()
    const [one, two] = [await startProcess(provider, store), await startProcess(provider, store)]
    const names = labels(20)
    await Promise.all(names.map(async (label) => one.publish(label, '192.0.2.1')))
    const remove = async (the: typeof one, some: readonly string[]) => {
      await Promise.all(some.map(async (label) => the.observe(label)))
      return Promise.allSettled(some.map(async (label) => the.publish(label)))
    }
    const first = await remove(one, names.slice(0, 4))
    expect(first.map(({ status }) => status)).toEqual(Array.from({ length: 4 }, () => 'fulfilled'))
    // Five of twenty names may go within ten minutes: one is left.
    const second = await remove(two, names.slice(4, 8))
    expect(second.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(second.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { message: expect.stringContaining('Quarantined') },
    })
    expect(addressesIn(provider)).toHaveLength(15)
  })
})
