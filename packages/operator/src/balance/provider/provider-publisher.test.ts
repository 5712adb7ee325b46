/** The publisher of `seamark dnslb` on zones of our own DNS server: answer policies are written, read back and removed. */
import { createDnsServer, createRRset, createZone, type DnsServer, fqdn } from '@seamark/dns'
import { afterEach, describe, expect, it } from 'vitest'
import { dnsWriterFixture, loadBalancerFixture } from '../../../testing/dns-writer-fixture.ts'
import { embeddedProvider } from '../../providers/embedded.ts'
import { memoryProvider } from '../../providers/memory.ts'
import type { Provider } from '../../providers/provider.ts'
import { POLICY_SET_TYPE } from '../../rrset/answer-policy.ts'
import { AnswerShares, type BalancedSet } from '../decide/answer-shares.ts'

const ORIGIN = fqdn('example.test.')
const NAME = 'shop.example.test.'
const open: DnsServer[] = []
afterEach(async () => {
  for (const server of open.splice(0)) await server.close()
})

async function startServer(): Promise<DnsServer> {
  const zone = createZone(ORIGIN, [
    createRRset(ORIGIN, 'SOA', 60, [`ns.${ORIGIN} host.${ORIGIN} 1 3600 600 86400 30`]),
    createRRset(ORIGIN, 'NS', 60, [`ns.${ORIGIN}`]),
  ])
  const server = await createDnsServer({ zones: [zone], listen: [{ address: '127.0.0.1', port: 0 }] })
  open.push(server)
  return server
}

async function publisherOn(provider: Provider) {
  const { publisher, context } = await dnsWriterFixture(provider)
  const { loadBalancer, settings } = loadBalancerFixture('shop')
  return {
    observe: async () => publisher.observe(loadBalancer, settings, context),
    publish: async (sets: readonly BalancedSet[]) =>
      publisher.publish({ loadBalancer, settings, sets, cnames: [], reason: 'EndpointSelected' }, context),
    forget: async () => publisher.forget(settings.key, context),
  }
}

/** An A set with the addresses' weights. */
function weighted(weights: Readonly<Record<string, number>>): BalancedSet {
  const shares = new AnswerShares()
  for (const [address, weight] of Object.entries(weights)) shares.add({ weight, priority: 0 }, [address])
  return shares.withPolicy({ name: NAME, type: 'A', ttl: 30, values: Object.keys(weights) }, false)
}

describe('load balancers in a zone of our own DNS server', () => {
  it('have their policy beside the records, read it back, change it and lose it with the name', async () => {
    const server = await startServer()
    const the = await publisherOn(embeddedProvider({ server }))
    const policies = () => server.findZone(ORIGIN)?.find(fqdn(NAME), POLICY_SET_TYPE)?.values
    expect(await the.observe()).toMatchObject({ published: [], provider: { state: 'ready' }, answersByPolicy: true })
    for (const set of [
      weighted({ '192.0.2.1': 3, '192.0.2.2': 1 }),
      weighted({ '192.0.2.1': 1, '192.0.2.2': 1, '192.0.2.3': 5 }),
    ]) {
      expect(set.policy).toBeDefined()
      await the.publish([set])
      expect((await the.observe()).published).toEqual([set])
      expect(policies()).toEqual([set.policy])
    }
    await the.forget()
    expect(policies()).toBeUndefined()
    expect(server.findZone(ORIGIN)?.find(fqdn(NAME), 'A')).toBeUndefined()
  })

  it('are published anew when they return to a name that they had before', async () => {
    const server = await startServer()
    const { publisher, context } = await dnsWriterFixture(embeddedProvider({ server }))
    const { loadBalancer, settings } = loadBalancerFixture('shop')
    const renamed = { ...loadBalancerFixture('store').settings, key: settings.key }
    await publisher.observe(loadBalancer, settings, context)
    await publisher.publish(
      { loadBalancer, settings, sets: [weighted({ '192.0.2.1': 1 })], cnames: [], reason: 'EndpointSelected' },
      context,
    )
    expect((await publisher.observe(loadBalancer, settings, context)).published).toHaveLength(1)
    await publisher.observe(loadBalancer, renamed, context)
    expect(server.findZone(ORIGIN)?.find(fqdn(NAME), 'A')).toBeUndefined()
    expect((await publisher.observe(loadBalancer, settings, context)).published).toEqual([])
  })

  it('change from weights to one host name in one step', async () => {
    const server = await startServer()
    const the = await publisherOn(embeddedProvider({ server }))
    await the.observe()
    await the.publish([weighted({ '192.0.2.1': 3, '192.0.2.2': 1 })])
    await the.observe()
    await the.publish([{ name: NAME, type: 'CNAME', ttl: 30, values: ['lb.example.net.'] }])
    expect((await the.observe()).published).toMatchObject([{ type: 'CNAME', values: ['lb.example.net.'] }])
    expect(server.findZone(ORIGIN)?.find(fqdn(NAME), POLICY_SET_TYPE)).toBeUndefined()
  })
})

describe('load balancers at another provider', () => {
  it('have the plain set', async () => {
    const memory = memoryProvider({ name: 'memory', zones: [ORIGIN] })
    const the = await publisherOn(memory)
    expect(await the.observe()).toMatchObject({ answersByPolicy: false })
    await the.publish([weighted({ '192.0.2.1': 3, '192.0.2.2': 1 })])
    const sets = await memory.read({ id: ORIGIN, name: ORIGIN }, 'all', new AbortController().signal)
    expect(sets.filter(({ name }) => name === NAME).map(({ type }) => type)).toEqual(['A'])
  })
})

describe('records of load balancers that are deleted', () => {
  type More = Parameters<typeof dnsWriterFixture>[1]
  const zone = { id: ORIGIN, name: ORIGIN }
  const signal = AbortSignal.any([])

  /** A published name, and a publisher that starts with it. */
  async function published(more: More = {}) {
    const memory = memoryProvider({ name: 'memory', zones: [ORIGIN] })
    const first = await publisherOn(memory)
    await first.observe()
    await first.publish([{ name: NAME, type: 'A', ttl: 30, values: ['192.0.2.1'] }])
    const { publisher } = await dnsWriterFixture(memory, more)
    const isLeft = async () =>
      (await memory.read(zone, 'all', signal)).some(({ name, type }) => name === NAME && type === 'A')
    return { publisher, isLeft }
  }

  it('are removed by a sweep', async () => {
    const { publisher, isLeft } = await published()
    await publisher.sweep('all', signal)
    expect(await isLeft()).toBe(false)
  })

  it.each<[string, More]>([
    ['the load balancers cannot be read', { claimedNames: async () => undefined }],
    ['a load balancer has the name', { claimedNames: async () => new Set([NAME]) }],
    ['a load balancer is known to have the name', { knownNames: () => new Set([NAME]) }],
    ['another identity owns them', { identity: 'other' }],
    ['there is no identity', { identity: '' }],
    ['it is a dry run', { isDryRun: true }],
  ])('stay where %s', async (_why, more) => {
    const { publisher, isLeft } = await published(more)
    await publisher.sweep('all', signal)
    expect(await isLeft()).toBe(true)
  })
})
