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
class World {
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
function connected(variant: 'delta' | 'state-of-the-world' = 'delta', options: SessionOptions = {}): World {
  const world = new World(variant, options)
  world.publish(BASE)
  for (const [type, names] of [
    ['cluster', []],
    ['endpoints', ['a']],
    ['listener', []],
    ['route', ['r']],
  ] as const) {
    world.subscribe(type, [...names])
    world.answer(type, undefined, [...names])
  }
  expect(world.take()).toEqual(['cluster +a', 'endpoints +a', 'listener +http', 'route +r'])
  return world
}

describe.each(['delta', 'state-of-the-world'] as const)('a session, %s', (variant) => {
  it('sends nothing while nothing changes', () => {
    const world = connected(variant)
    world.publish({ ...BASE, cluster: [cluster('a')] })
    expect(world.take()).toEqual([])
  })

  it('sends a changed route only after the cluster and the endpoints that it may refer to were acknowledged', () => {
    const world = connected(variant)
    world.publish({
      cluster: [cluster('a'), cluster('b')],
      endpoints: [endpoints('a'), endpoints('b')],
      listener: [listener('http', 'changed')],
      route: [route('r', 'two')],
    })
    expect(world.take()).toEqual([variant === 'delta' ? 'cluster +b' : 'cluster +a +b'])
    world.answer('cluster')
    expect(world.take()).toEqual([])
    world.subscribe('endpoints', variant === 'delta' ? ['b'] : ['a', 'b'], {}, '2')
    expect(world.take()).toEqual(['endpoints +b'])
    world.answer('endpoints', undefined, ['a', 'b'])
    expect(world.take()).toEqual(['listener +http'])
    world.answer('listener')
    expect(world.take()).toEqual(['route +r'])
  })

  it('does not wait forever for a client that never asks for the endpoints', async () => {
    const world = connected(variant, { gateMs: 1_000 })
    world.publish({
      ...BASE,
      cluster: [cluster('a'), cluster('b')],
      endpoints: [endpoints('a'), endpoints('b')],
      route: [route('r', 'two')],
    })
    world.answer('cluster')
    world.take()
    await world.clock.advance(999)
    expect(world.take()).toEqual([])
    await world.clock.advance(1)
    expect(world.take()).toEqual(['route +r'])
  })

  it('removes a cluster only when the routes without it were acknowledged and the delay is over', async () => {
    const world = connected(variant, { removalDelayMs: 5_000 })
    world.publish({
      cluster: [cluster('b')],
      endpoints: [endpoints('b')],
      listener: [listener('http')],
      route: [route('r', 'two')],
    })
    // State of the world: the old cluster stays part of the response.
    expect(world.take()).toEqual([variant === 'delta' ? 'cluster +b' : 'cluster +b +a'])
    world.answer('cluster')
    world.subscribe('endpoints', variant === 'delta' ? ['b'] : ['a', 'b'], {}, '2')
    world.answer('endpoints', undefined, ['a', 'b'])
    expect(world.take()).toEqual(['endpoints +b', 'route +r'])
    await world.clock.advance(60_000)
    expect(world.take(), 'the route is not acknowledged').toEqual([])
    world.answer('route', undefined, ['r'])
    await world.clock.advance(4_999)
    expect(world.take()).toEqual([])
    await world.clock.advance(1)
    expect(world.take()).toEqual([variant === 'delta' ? 'cluster -a' : 'cluster +b'])
  })

  it('keeps a cluster that comes back within the delay, and delays its next removal again', async () => {
    const world = connected(variant, { removalDelayMs: 5_000 })
    const without = { ...BASE, cluster: [], endpoints: [] }
    world.publish(without)
    await world.clock.advance(4_000)
    world.publish(BASE)
    await world.clock.advance(10_000)
    expect(world.take()).toEqual([])
    world.publish(without)
    await world.clock.advance(4_000)
    expect(world.take()).toEqual([])
    await world.clock.advance(1_000)
    expect(world.take()).toEqual([variant === 'delta' ? 'cluster -a' : 'cluster'])
  })

  it('reports a rejection by the names in its message, and sends the next version only', () => {
    const world = connected(variant)
    world.publish({ ...BASE, cluster: [cluster('a'), cluster('bad'), cluster('good')] })
    world.take()
    world.answer('cluster', 'Error adding/updating cluster(s) bad: no')
    expect(world.rejected).toEqual(['cluster bad: Error adding/updating cluster(s) bad: no'])
    world.session.pump()
    expect(world.take()).toEqual([])
    world.publish({ ...BASE, cluster: [cluster('a'), cluster('bad', 'fixed'), cluster('good')] })
    expect(world.take()).toEqual([variant === 'delta' ? 'cluster +bad' : 'cluster +a +bad +good'])
    world.accepted.length = 0
    world.answer('cluster')
    expect(world.accepted).toContain('cluster bad')
  })

  it('does not hold routes back for the endpoints of a cluster that was rejected', () => {
    const world = connected(variant)
    world.publish({
      ...BASE,
      cluster: [cluster('a'), cluster('bad')],
      endpoints: [endpoints('a'), endpoints('bad')],
      route: [route('r', 'two')],
    })
    world.take()
    world.answer('cluster', 'cluster bad is wrong')
    expect(world.take()).toEqual(['route +r'])
  })

  it('has one response of a type outstanding, and then sends the newest state at once', () => {
    const world = connected(variant)
    for (let port = 2; port < 500; port++) world.publish({ ...BASE, endpoints: [endpoints('a', port)] })
    expect(world.take()).toEqual(['endpoints +a'])
    world.publish({ ...BASE, endpoints: [endpoints('a', 600)] })
    world.answer('endpoints', undefined, ['a'])
    const [response] = world.sent
    expect(response?.resources[0]?.version).toBe(endpoints('a', 600).version)
  })

  it('answers a first request also when there is nothing', () => {
    const world = new World(variant)
    world.publish({})
    world.subscribe('cluster')
    world.subscribe('listener')
    expect(world.take()).toEqual(['cluster', 'listener'])
  })

  it('stops its timers with the stream', () => {
    const world = connected(variant)
    world.publish({ ...BASE, cluster: [], endpoints: [] })
    world.session.close()
    expect(world.clock.pending).toBe(0)
  })
})

describe('a delta session', () => {
  it('sends nothing to a client that has everything from an earlier stream', () => {
    const world = new World('delta')
    world.publish(BASE)
    for (const type of ['cluster', 'endpoints', 'listener', 'route'] as const) {
      const versions = Object.fromEntries(BASE[type].map(({ name, version }) => [name, version]))
      world.subscribe(type, type === 'cluster' || type === 'listener' ? [] : Object.keys(versions), versions)
    }
    expect(world.take()).toEqual([])
  })

  it('removes, after the delay, a cluster that only an earlier stream had', async () => {
    const world = new World('delta')
    world.publish(BASE)
    world.subscribe('cluster', [], { a: cluster('a').version, old: 'x' })
    expect(world.take()).toEqual([])
    await world.clock.advance(5_000)
    expect(world.take()).toEqual(['cluster -old'])
  })

  it('says which subscribed names do not exist, once, and sends them when they do', () => {
    const world = new World('delta')
    world.publish({})
    world.subscribe('route', ['r'])
    expect(world.take()).toEqual(['route -r'])
    world.answer('route')
    world.session.pump()
    expect(world.take()).toEqual([])
    world.publish({ route: [route('r')] })
    expect(world.take()).toEqual(['route +r'])
  })

  it('keeps a subscribed name that vanishes: routes may still use it', () => {
    const world = connected()
    world.publish({ ...BASE, endpoints: [] })
    expect(world.take()).toEqual([])
  })

  it('answers a name that is subscribed to again', () => {
    const world = connected()
    world.subscribe('endpoints', ['a'])
    expect(world.take()).toEqual(['endpoints +a'])
  })
})

describe('a state-of-the-world session', () => {
  it('ignores a request that answers an older response', () => {
    const world = connected('state-of-the-world')
    world.publish({ ...BASE, endpoints: [endpoints('a', 2), endpoints('b')] })
    expect(world.take()).toEqual(['endpoints +a'])
    world.subscribe('endpoints', ['a', 'b'], {}, '2')
    expect(world.take()).toEqual([])
  })

  it('sends nothing to a client that has this version from an earlier stream, and everything to another', () => {
    const first = new World('state-of-the-world')
    first.publish(BASE)
    first.subscribe('endpoints', ['a'])
    const version = first.sent[0]?.version ?? ''
    for (const [known, expected] of [
      [version, []],
      ['another', ['endpoints +a']],
    ] as const) {
      const second = new World('state-of-the-world')
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
          const world = new World('delta')
          const has = { cluster: new Set<string>(), endpoints: new Set<string>() }
          let routed: string[] = []
          /** The client: takes every response, acknowledges it, and asks for the endpoints of new clusters. */
          const drain = () => {
            for (let response = world.sent.shift(); response !== undefined; response = world.sent.shift()) {
              const { type, resources, removed, nonce } = response
              const names = resources.map((each) => each.name)
              if (type === 'cluster' || type === 'endpoints') {
                for (const each of names) has[type].add(each)
                for (const each of removed) has[type].delete(each)
              }
              if (type === 'route' && names.length > 0) routed = hostOf(resources[0]).split(',')
              for (const each of routed) expect([...has.cluster]).toContain(each)
              world.session.receive({
                type,
                nonce,
                subscription: { kind: 'delta', subscribe: [], unsubscribe: [], initial: {} },
              })
              if (type === 'cluster' && names.length > 0) world.subscribe('endpoints', names)
            }
          }
          let last: string[] | undefined
          world.publish({})
          world.subscribe('cluster')
          world.subscribe('listener')
          world.subscribe('route', ['r'])
          for (const step of steps) {
            last = step
            world.publish({
              cluster: step.map((each) => cluster(each)),
              endpoints: step.map((each) => endpoints(each)),
              route: [route('r', step.join())],
            })
            if (!isSlow) drain()
          }
          drain()
          await world.clock.advance(60_000)
          drain()
          expect([...has.cluster].toSorted()).toEqual((last ?? []).toSorted())
          expect(routed).toEqual(last)
        },
      ),
      { numRuns: 200 },
    )
  })
})
