import { fakeClock, type FakeClock } from '@seamark/kube/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decode } from './protobuf.ts'
import { resourceOf, type Resource, type ResourceType } from './resource.ts'
import { Session, type SessionOptions, type SessionResponse } from './session.ts'

const EMPTY: Record<ResourceType, Resource[]> = { cluster: [], endpoints: [], secret: [], listener: [], route: [] }

const cluster = (name: string, altStatName = '') => resourceOf('cluster', name, { name, alt_stat_name: altStatName })
const endpoints = (name: string, port = 1) =>
  resourceOf('endpoints', name, {
    cluster_name: name,
    endpoints: [
      { lb_endpoints: [{ endpoint: { address: { socket_address: { address: '192.0.2.1', port_value: port } } } }] },
    ],
  })
const listener = (name: string, statPrefix = '') => resourceOf('listener', name, { name, stat_prefix: statPrefix })
const route = (name: string, host = '') =>
  resourceOf('route', name, { name, virtual_hosts: [{ name: host, domains: ['*'] }] })

/** The name of the virtual host of a route configuration. */
function hostOf(resource: Resource | undefined): string {
  return (
    decode('envoy.config.route.v3.RouteConfiguration', resource?.any.value ?? new Uint8Array()).virtual_hosts[0]
      ?.name ?? ''
  )
}

/** A session with a scripted client. */
class Fixture {
  readonly clock: FakeClock = fakeClock()
  readonly sent: SessionResponse[] = []
  readonly accepted: string[] = []
  readonly rejected: string[] = []
  readonly session: Session
  #resources = EMPTY
  readonly #last = new Map<ResourceType, SessionResponse>()
  readonly #isDelta: boolean

  constructor(variant: 'delta' | 'state-of-the-world' = 'delta', options: SessionOptions = {}) {
    this.#isDelta = variant === 'delta'
    this.session = new Session(
      variant,
      {
        clock: this.clock,
        resources: (type) => new Map(this.#resources[type].map((each) => [each.name, each])),
        send: (response) => {
          this.sent.push(response)
          this.#last.set(response.type, response)
        },
        onAccepted: (type, names) => this.accepted.push(...names.map((name) => `${type} ${name}`)),
        onRejected: (type, names, message) => this.rejected.push(...names.map((name) => `${type} ${name}: ${message}`)),
      },
      options,
    )
  }

  publish(resources: Partial<typeof EMPTY>): void {
    this.#resources = { ...EMPTY, ...resources }
    this.session.pump()
  }

  subscribe(type: ResourceType, names: string[] = [], versions: Record<string, string> = {}, nonce = ''): void {
    this.session.receive({
      type,
      nonce,
      subscription: this.#isDelta
        ? { kind: 'delta', subscribe: names, unsubscribe: [], initial: versions }
        : { kind: 'replace', names, version: versions['*'] ?? '' },
    })
  }

  /** Answers the last response of a type. */
  answer(type: ResourceType, error?: string, names: string[] = []): void {
    const response = this.#last.get(type)
    this.session.receive({
      type,
      nonce: response?.nonce ?? '',
      ...(error !== undefined && { error }),
      subscription: this.#isDelta
        ? { kind: 'delta', subscribe: [], unsubscribe: [], initial: {} }
        : { kind: 'replace', names, version: response?.version ?? '' },
    })
  }

  /** `type +sent -removed` of the responses since the last call. */
  take(): string[] {
    return this.sent
      .splice(0)
      .map(({ type, resources, removed }) =>
        [
          type,
          ...resources.map(({ name }) => `+${name}`),
          ...(this.#isDelta ? removed.map((name) => `-${name}`) : []),
        ].join(' '),
      )
  }
}

const BASE = {
  cluster: [cluster('a')],
  endpoints: [endpoints('a')],
  listener: [listener('http')],
  route: [route('r', 'one')],
}

/** A client that has the base configuration and acknowledged it. */
function connected(variant: 'delta' | 'state-of-the-world' = 'delta', options: SessionOptions = {}): Fixture {
  const fixture = new Fixture(variant, options)
  fixture.publish(BASE)
  for (const [type, names] of [
    ['cluster', []],
    ['endpoints', ['a']],
    ['listener', []],
    ['route', ['r']],
  ] as const) {
    fixture.subscribe(type, [...names])
    fixture.answer(type, undefined, [...names])
  }
  expect(fixture.take()).toEqual(['cluster +a', 'endpoints +a', 'listener +http', 'route +r'])
  return fixture
}

describe.each(['delta', 'state-of-the-world'] as const)('a session, %s', (variant) => {
  it('sends nothing while nothing changes', () => {
    const fixture = connected(variant)
    fixture.publish({ ...BASE, cluster: [cluster('a')] })
    expect(fixture.take()).toEqual([])
  })

  it('sends a changed route only after the cluster and the endpoints that it may refer to were acknowledged', () => {
    const fixture = connected(variant)
    fixture.publish({
      cluster: [cluster('a'), cluster('b')],
      endpoints: [endpoints('a'), endpoints('b')],
      listener: [listener('http', 'changed')],
      route: [route('r', 'two')],
    })
    expect(fixture.take()).toEqual([variant === 'delta' ? 'cluster +b' : 'cluster +a +b'])
    fixture.answer('cluster')
    expect(fixture.take()).toEqual([])
    fixture.subscribe('endpoints', variant === 'delta' ? ['b'] : ['a', 'b'], {}, '2')
    expect(fixture.take()).toEqual(['endpoints +b'])
    fixture.answer('endpoints', undefined, ['a', 'b'])
    expect(fixture.take()).toEqual(['listener +http'])
    fixture.answer('listener')
    expect(fixture.take()).toEqual(['route +r'])
  })

  it('does not wait forever for a client that never asks for the endpoints', async () => {
    const fixture = connected(variant, { gateMs: 1_000 })
    fixture.publish({
      ...BASE,
      cluster: [cluster('a'), cluster('b')],
      endpoints: [endpoints('a'), endpoints('b')],
      route: [route('r', 'two')],
    })
    fixture.answer('cluster')
    fixture.take()
    await fixture.clock.advance(999)
    expect(fixture.take()).toEqual([])
    await fixture.clock.advance(1)
    expect(fixture.take()).toEqual(['route +r'])
    fixture.answer('route', undefined, ['r'])
    fixture.publish({
      ...BASE,
      cluster: [cluster('a'), cluster('b')],
      endpoints: [endpoints('a'), endpoints('b')],
      route: [route('r', 'three')],
    })
    expect(fixture.take(), 'the next change waits again').toEqual([])
    await fixture.clock.advance(1_000)
    expect(fixture.take()).toEqual(['route +r'])
  })

  it('removes a cluster only when the routes without it were acknowledged and the delay is over', async () => {
    const fixture = connected(variant, { removalDelayMs: 5_000 })
    fixture.publish({
      cluster: [cluster('b')],
      endpoints: [endpoints('b')],
      listener: [listener('http')],
      route: [route('r', 'two')],
    })
    // State of the world: the old cluster stays part of the response.
    expect(fixture.take()).toEqual([variant === 'delta' ? 'cluster +b' : 'cluster +b +a'])
    fixture.answer('cluster')
    fixture.subscribe('endpoints', variant === 'delta' ? ['b'] : ['a', 'b'], {}, '2')
    fixture.answer('endpoints', undefined, ['a', 'b'])
    expect(fixture.take()).toEqual(['endpoints +b', 'route +r'])
    await fixture.clock.advance(60_000)
    expect(fixture.take(), 'the route is not acknowledged').toEqual([])
    fixture.answer('route', undefined, ['r'])
    await fixture.clock.advance(4_999)
    expect(fixture.take()).toEqual([])
    await fixture.clock.advance(1)
    expect(fixture.take()).toEqual([variant === 'delta' ? 'cluster -a' : 'cluster +b'])
  })

  it('keeps a cluster that comes back within the delay, and delays its next removal again', async () => {
    const fixture = connected(variant, { removalDelayMs: 5_000 })
    const without = { ...BASE, cluster: [], endpoints: [] }
    fixture.publish(without)
    await fixture.clock.advance(4_000)
    fixture.publish(BASE)
    await fixture.clock.advance(10_000)
    expect(fixture.take()).toEqual([])
    fixture.publish(without)
    await fixture.clock.advance(4_000)
    expect(fixture.take()).toEqual([])
    await fixture.clock.advance(1_000)
    expect(fixture.take()).toEqual([variant === 'delta' ? 'cluster -a' : 'cluster'])
  })

  it('delays the removal of a cluster from the last time that it went, also when it came back meanwhile', async () => {
    const fixture = connected(variant, { removalDelayMs: 5_000 })
    const without = { ...BASE, cluster: [], endpoints: [] }
    fixture.publish(without)
    await fixture.clock.advance(2_000)
    fixture.publish(BASE)
    await fixture.clock.advance(2_000)
    fixture.publish(without)
    await fixture.clock.advance(4_999)
    expect(fixture.take()).toEqual([])
    await fixture.clock.advance(5_000)
    expect(fixture.take()).toEqual([variant === 'delta' ? 'cluster -a' : 'cluster'])
  })

  it('reports a rejection by the names in its message, and sends the next version only', () => {
    const fixture = connected(variant)
    fixture.publish({ ...BASE, cluster: [cluster('a'), cluster('bad'), cluster('good')] })
    fixture.take()
    fixture.answer('cluster', 'Error adding/updating cluster(s) bad: no')
    expect(fixture.rejected).toEqual(['cluster bad: Error adding/updating cluster(s) bad: no'])
    fixture.session.pump()
    expect(fixture.take()).toEqual([])
    fixture.publish({ ...BASE, cluster: [cluster('a'), cluster('bad', 'fixed'), cluster('good')] })
    expect(fixture.take()).toEqual([variant === 'delta' ? 'cluster +bad' : 'cluster +a +bad +good'])
    fixture.accepted.length = 0
    fixture.answer('cluster')
    expect(fixture.accepted).toContain('cluster bad')
  })

  it('does not hold routes back for the endpoints of a cluster that was rejected', () => {
    const fixture = connected(variant)
    fixture.publish({
      ...BASE,
      cluster: [cluster('a'), cluster('bad')],
      endpoints: [endpoints('a'), endpoints('bad')],
      route: [route('r', 'two')],
    })
    fixture.take()
    fixture.answer('cluster', 'cluster bad is wrong')
    expect(fixture.take()).toEqual(['route +r'])
  })

  it('has one response of a type outstanding, and then sends the newest state at once', () => {
    const fixture = connected(variant)
    for (let port = 2; port < 500; port++) fixture.publish({ ...BASE, endpoints: [endpoints('a', port)] })
    expect(fixture.take()).toEqual(['endpoints +a'])
    fixture.publish({ ...BASE, endpoints: [endpoints('a', 600)] })
    fixture.answer('endpoints', undefined, ['a'])
    const [response] = fixture.sent
    expect(response?.resources[0]?.version).toBe(endpoints('a', 600).version)
  })

  it('answers a first request also when there is nothing', () => {
    const fixture = new Fixture(variant)
    fixture.publish({})
    fixture.subscribe('cluster')
    fixture.subscribe('listener')
    expect(fixture.take()).toEqual(['cluster', 'listener'])
  })

  it('stops its timers with the stream', () => {
    const fixture = connected(variant)
    fixture.publish({ ...BASE, cluster: [], endpoints: [] })
    fixture.session.close()
    expect(fixture.clock.pending).toBe(0)
  })
})

describe('a delta session', () => {
  it('sends nothing to a client that has everything from an earlier stream', () => {
    const fixture = new Fixture('delta')
    fixture.publish(BASE)
    for (const type of ['cluster', 'endpoints', 'listener', 'route'] as const) {
      const versions = Object.fromEntries(BASE[type].map(({ name, version }) => [name, version]))
      fixture.subscribe(type, type === 'cluster' || type === 'listener' ? [] : Object.keys(versions), versions)
    }
    expect(fixture.take()).toEqual([])
  })

  it('removes, after the delay, a cluster that only an earlier stream had', async () => {
    const fixture = new Fixture('delta')
    fixture.publish(BASE)
    fixture.subscribe('cluster', [], { a: cluster('a').version, old: 'x' })
    expect(fixture.take()).toEqual([])
    await fixture.clock.advance(5_000)
    expect(fixture.take()).toEqual(['cluster -old'])
  })

  it('says which subscribed names do not exist, once, and sends them when they do', () => {
    const fixture = new Fixture('delta')
    fixture.publish({})
    fixture.subscribe('route', ['r'])
    expect(fixture.take()).toEqual(['route -r'])
    fixture.answer('route')
    fixture.session.pump()
    expect(fixture.take()).toEqual([])
    fixture.publish({ route: [route('r')] })
    expect(fixture.take()).toEqual(['route +r'])
  })

  it('keeps a subscribed name that vanishes: routes may still use it', () => {
    const fixture = connected()
    fixture.publish({ ...BASE, endpoints: [] })
    expect(fixture.take()).toEqual([])
  })

  it('answers a name that is subscribed to again', () => {
    const fixture = connected()
    fixture.subscribe('endpoints', ['a'])
    expect(fixture.take()).toEqual(['endpoints +a'])
  })
})

describe('a state-of-the-world session', () => {
  it('ignores a request that answers an older response', () => {
    const fixture = connected('state-of-the-world')
    fixture.publish({ ...BASE, endpoints: [endpoints('a', 2), endpoints('b')] })
    expect(fixture.take()).toEqual(['endpoints +a'])
    fixture.subscribe('endpoints', ['a', 'b'], {}, '2')
    expect(fixture.take()).toEqual([])
  })

  it('sends nothing to a client that has this version from an earlier stream, and everything to another', () => {
    const first = new Fixture('state-of-the-world')
    first.publish(BASE)
    first.subscribe('endpoints', ['a'])
    const version = first.sent[0]?.version ?? ''
    for (const [known, expected] of [
      [version, []],
      ['another', ['endpoints +a']],
    ] as const) {
      const second = new Fixture('state-of-the-world')
      second.publish(BASE)
      second.subscribe('endpoints', ['a'], { '*': known })
      expect(second.take()).toEqual(expected)
    }
  })
})

describe('any sequence of configurations', () => {
  it('ends with a client that has exactly the last one, and never has a route without its cluster', async () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd')
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uniqueArray(name, { minLength: 1 }), { minLength: 1, maxLength: 8 }),
        fc.boolean(),
        async (steps, isSlow) => {
          const fixture = new Fixture('delta')
          const has = { cluster: new Set<string>(), endpoints: new Set<string>() }
          let routed: string[] = []
          /** The client: takes every response, acknowledges it, and asks for the endpoints of new clusters. */
          const drain = () => {
            for (let response = fixture.sent.shift(); response !== undefined; response = fixture.sent.shift()) {
              const { type, resources, removed, nonce } = response
              const names = resources.map((each) => each.name)
              if (type === 'cluster' || type === 'endpoints') {
                for (const each of names) has[type].add(each)
                for (const each of removed) has[type].delete(each)
              }
              if (type === 'route' && names.length > 0) routed = hostOf(resources[0]).split(',')
              for (const each of routed) expect([...has.cluster]).toContain(each)
              fixture.session.receive({
                type,
                nonce,
                subscription: { kind: 'delta', subscribe: [], unsubscribe: [], initial: {} },
              })
              if (type === 'cluster' && names.length > 0) fixture.subscribe('endpoints', names)
            }
          }
          let last: string[] | undefined
          fixture.publish({})
          fixture.subscribe('cluster')
          fixture.subscribe('listener')
          fixture.subscribe('route', ['r'])
          for (const step of steps) {
            last = step
            fixture.publish({
              cluster: step.map((each) => cluster(each)),
              endpoints: step.map((each) => endpoints(each)),
              route: [route('r', step.join())],
            })
            if (!isSlow) drain()
          }
          drain()
          await fixture.clock.advance(60_000)
          drain()
          expect([...has.cluster].toSorted()).toEqual((last ?? []).toSorted())
          expect(routed).toEqual(last)
        },
      ),
      { numRuns: 200 },
    )
  })
})
