import { systemClock } from '@seamark/kube'
import { describe, expect, it } from 'vitest'
import { dnsWriterFixture, loadBalancerFixture } from '../../../testing/dns-writer-fixture.ts'
import { memoryProvider } from '../../providers/memory.ts'
import type { RecordNotice } from './record-notice.ts'

const ZONE = { id: 'example.test.', name: 'example.test.' }

/** Two installations with one identity on one zone; each has the load balancers with these labels. */
async function installations(...labels: readonly (readonly string[])[]) {
  // Time passes for decisions only: timers of the executor run as they are.
  let passedMs = 0
  const clock = {
    ...systemClock,
    monotonic: () => systemClock.monotonic() + passedMs,
    now: () => systemClock.now() + passedMs,
  }
  const advance = (ms: number): void => void (passedMs += ms)
  const provider = memoryProvider({ name: 'zone', zones: [ZONE], capabilities: { readsServer: true } })
  const all = await Promise.all(
    labels.map(async (own) => {
      const notices: RecordNotice[] = []
      const present = new Set(own)
      const names = () => new Set([...present].map((label) => loadBalancerFixture(label).settings.recordName))
      const { publisher, registry, context } = await dnsWriterFixture(provider, {
        clock,
        claimedNames: async () => names(),
        knownNames: names,
        onNotice: (notice) => void notices.push(notice),
      })
      return {
        notices,
        async deleteBalancer(label: string) {
          present.delete(label)
          await publisher.forget(`web/${label}`, context)
        },
        async publish(label: string, address: string) {
          present.add(label)
          const { loadBalancer, settings } = loadBalancerFixture(label)
          const fact = await publisher.observe(loadBalancer, settings, context)
          if (fact.published?.some(({ values }) => values.join() === address) === true) return 'unchanged'
          const sets = [{ name: settings.recordName, type: 'A', ttl: 30, values: [address] }]
          const request = { loadBalancer, settings, sets, cnames: [], reason: 'EndpointSelected' as const }
          return publisher.publish(request, context)
        },
        async remove(label: string) {
          const { loadBalancer, settings } = loadBalancerFixture(label)
          await publisher.observe(loadBalancer, settings, context)
          const request = { loadBalancer, settings, sets: [], cnames: [], reason: 'AllUnhealthy' as const }
          return publisher.publish(request, context)
        },
        sweep: async () => publisher.sweep('servers', context.signal),
        /** The DNSProvider is being deleted. */
        async deleteProvider() {
          const [registered] = registry.providers
          return registered !== undefined && (await publisher.removeAll(registered, context.signal))
        },
      }
    }),
  )
  const [one, two] = all
  if (one === undefined || two === undefined) throw new Error('two are needed')
  const addresses = () =>
    provider.dump(ZONE.id).flatMap(({ name, type, values }) => (type === 'A' ? [`${name} ${values.join()}`] : []))
  return { one, two, advance, addresses }
}

describe('two installations with one identity on one zone', () => {
  it('delete the records of the other at most once: those that are there again stay, and it is reported', async () => {
    const { one, two, advance, addresses } = await installations(['east'], ['west'])
    await one.publish('east', '192.0.2.1')
    await two.sweep()
    expect(addresses()).toEqual([])
    expect(two.notices.map(({ message }) => message)).toEqual([
      'record deleted: east.example.test A 192.0.2.1: LoadBalancerDeleted: ' +
        'no load balancer has the name any more; its records are removed',
    ])
    for (let pass = 0; pass < 12; pass++) {
      advance(30_000)
      await one.sweep()
      await one.publish('east', '192.0.2.1')
      await two.sweep()
      expect(addresses()).toEqual(['east.example.test. 192.0.2.1'])
    }
    expect(two.notices.map(({ type }) => type)).toEqual(['Normal', 'Warning'])
    expect(two.notices[1]?.message).toMatch(/another installation uses this identity at provider 'zone'.*--identity/i)
    expect(two.notices[1]?.message).toContain('east.example.test')
  })

  it('stop writing a name that the other writes, and say so', async () => {
    const { one, two, advance, addresses } = await installations(['shop'], ['shop'])
    const outcomes: unknown[] = []
    for (let pass = 0; pass < 12; pass++) {
      outcomes.push(await one.publish('shop', '192.0.2.1'), await two.publish('shop', '192.0.2.2'))
      advance(30_000)
      for (const each of [one, two]) await each.sweep()
    }
    const stopped = outcomes.filter((outcome) => typeof outcome === 'object')
    expect(stopped[0]).toMatchObject({
      finding: { reason: 'SecondWriter', message: expect.stringContaining("'ring'") },
    })
    expect(outcomes.filter((outcome) => outcome === 'published').length).toBeLessThanOrEqual(10)
    expect(addresses()).toHaveLength(1)
  })

  it('are not suspected when one process deletes a name, publishes it again and deletes it again', async () => {
    const { one, advance, addresses } = await installations([], [])
    for (let turn = 0; turn < 4; turn++) {
      await one.publish('shop', '192.0.2.1')
      expect(addresses()).toHaveLength(1)
      advance(1_000)
      await one.deleteBalancer('shop')
      expect(addresses()).toEqual([])
      advance(1_000)
      await one.sweep()
    }
    expect(one.notices.map(({ type }) => type)).toEqual(['Normal', 'Normal', 'Normal', 'Normal'])
  })

  it('report a record that is deleted for a load balancer on the load balancer, with the reason', async () => {
    const { one, addresses } = await installations(['shop'], [])
    await one.publish('shop', '192.0.2.1')
    expect(await one.remove('shop')).toBe('published')
    expect(addresses()).toEqual([])
    expect(one.notices).toEqual([
      {
        type: 'Normal',
        provider: 'zone',
        loadBalancer: 'web/shop',
        message: expect.stringMatching(/^record deleted: shop.example.test A 192.0.2.1: AllUnhealthy: /),
      },
    ])
  })

  it('report the records that go with a deleted DNSProvider, with the reason', async () => {
    const { one, addresses } = await installations(['shop'], [])
    await one.publish('shop', '192.0.2.1')
    expect(await one.deleteProvider()).toBe(true)
    expect(addresses()).toEqual([])
    expect(one.notices.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^record deleted: shop.example.test A 192.0.2.1: ProviderDeleted: /),
    ])
  })
})
