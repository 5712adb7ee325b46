import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Decoded, Frame } from '../decode/decode.ts'
import { apiError, DecodeError, TransportError } from '../errors.ts'
import type { Obj, Status } from '../object/object.ts'
import { CacheLimitExceeded } from './cache-limits.ts'
import { classify, Reflector, type Source } from './reflector.ts'
import { isNewer } from './resource-version.ts'
import { Store } from '../cache/store.ts'
import type { StoreChange } from '../cache/store-change.ts'
import { fakeClock, type FakeClock } from '../testing/clock.ts'

interface Thing extends Obj {
  spec: { value: number }
}

type Random = () => number

/** A small seeded generator, so that a seed reproduces a run. */
function randomFrom(seed: number): Random {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const refusal = (code: number, reason: string, message = reason): Error => {
  const status: Status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message }
  return apiError('test', code, status)
}

/** An in-memory API server with its whole history, and a connection to it that fails in every modelled way. */
class ModelServer implements Source<Thing> {
  version = 10
  compacted = 0
  readonly objects = new Map<string, Thing>()
  readonly events: { version: number; type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: Thing }[] = []
  readonly snapshots = new Map<number, Thing[]>()
  readonly waiting = new Set<() => void>()
  faultRate = 0
  canStream = true
  ignoresStream = false
  isServedNow = true
  lists = 0
  readonly #random: Random

  constructor(random: Random) {
    this.#random = random
  }

  change(): void {
    const name = `o${Math.floor(this.#random() * 8)}`
    const known = this.objects.get(name)
    this.version += 1 + Math.floor(this.#random() * 3)
    const metadata = { name, uid: known?.metadata.uid ?? `uid-${this.version}`, resourceVersion: String(this.version) }
    if (known !== undefined && this.#random() < 0.4) {
      this.objects.delete(name)
      this.events.push({ version: this.version, type: 'DELETED', object: { ...known, metadata } })
    } else {
      const object = { metadata, spec: { value: this.version } }
      this.objects.set(name, object)
      this.events.push({ version: this.version, type: known === undefined ? 'ADDED' : 'MODIFIED', object })
    }
    for (const wake of this.waiting) wake()
  }

  #fault(where: string): void {
    if (this.#random() >= this.faultRate) return
    const faults = [
      new TransportError('RESET', `${where}: reset`),
      new DecodeError(`${where}: torn frame`),
      refusal(429, 'TooManyRequests'),
      refusal(500, 'InternalError'),
      refusal(503, 'ServiceUnavailable'),
      refusal(403, 'Forbidden'),
      refusal(410, 'Expired'),
      refusal(504, 'Timeout', 'Too large resource version'),
    ]
    throw faults[Math.floor(this.#random() * faults.length)]
  }

  async list(
    { continueToken, limit }: { continueToken: string | undefined; limit: number | undefined },
    each: (decoded: Decoded<Thing>) => void,
  ) {
    await Promise.resolve()
    this.lists++
    if (!this.isServedNow) throw refusal(404, 'NotFound')
    this.#fault('list')
    const [at = this.version, from = 0] = continueToken?.split(':').map(Number) ?? []
    if (at < this.compacted) throw refusal(410, 'Expired')
    const items = this.snapshots.get(at) ?? [...this.objects.values()]
    this.snapshots.set(at, items)
    const to = limit === undefined ? items.length : Math.min(items.length, from + limit)
    for (const object of items.slice(from, to)) each({ object: structuredClone(object), own: undefined })
    this.#fault('list end')
    return { resourceVersion: String(at), continueToken: to < items.length ? `${at}:${to}` : undefined }
  }

  async watch(
    { version }: { version: string | undefined },
    each: (frame: Frame<Thing>) => void,
    onBytes: () => void,
    signal: AbortSignal,
  ): Promise<void> {
    await Promise.resolve()
    if (!this.isServedNow) throw refusal(404, 'NotFound')
    this.#fault('watch')
    let at = Number(version ?? this.version)
    if (version === undefined) {
      if (!this.canStream) throw refusal(422, 'Invalid', 'sendInitialEvents is forbidden')
      const present = [...this.objects.values()]
      for (const object of present) {
        onBytes()
        each({ type: 'ADDED', object: structuredClone(object), own: undefined })
        this.#fault('initial')
      }
      if (!this.ignoresStream) each({ type: 'BOOKMARK', resourceVersion: String(at), isInitialEnd: true })
    }
    if (at < this.compacted) throw refusal(410, 'Expired')
    while (!signal.aborted) {
      const next = this.events.find((event) => event.version > at)
      if (next === undefined) {
        await new Promise<void>((resolve) => {
          const wake = () => {
            this.waiting.delete(wake)
            signal.removeEventListener('abort', wake)
            resolve()
          }
          this.waiting.add(wake)
          signal.addEventListener('abort', wake)
        })
        if (this.#random() < this.faultRate) return
        continue
      }
      this.#fault('event')
      onBytes()
      each({ type: next.type, object: structuredClone(next.object), own: undefined })
      at = next.version
      if (this.#random() < 0.2) each({ type: 'BOOKMARK', resourceVersion: String(at), isInitialEnd: false })
    }
    throw new TransportError('ABORTED', 'aborted')
  }

  async isServed(): Promise<boolean> {
    await Promise.resolve()
    return this.isServedNow
  }
}

function reflect(server: ModelServer, random: Random, clock: FakeClock) {
  const replica = new Map<string, Thing>()
  const wrong: string[] = []
  const apply = (change: StoreChange<Thing>) => {
    const name = change.object.metadata.name ?? ''
    const known = replica.get(name)
    if (change.type === 'deleted') {
      if (known === undefined) wrong.push(`deleted ${name}, which was not there`)
      replica.delete(name)
      return
    }
    if (change.type === 'added' && known !== undefined) wrong.push(`added ${name} twice`)
    if (change.type === 'updated') {
      if (known === undefined) wrong.push(`updated ${name}, which was not there`)
      if (change.old !== known) wrong.push(`the old object of ${name} is not the one reported before`)
      if (!isNewer(change.object.metadata.resourceVersion, change.old.metadata.resourceVersion))
        wrong.push(`${name} went back`)
    }
    replica.set(name, change.object as Thing)
  }
  let version: string | undefined
  const store = new Store<Thing>(
    (changes) => {
      for (const change of changes) apply(change)
      if (isNewer(version, store.resourceVersion)) wrong.push(`the version went back from ${version}`)
      version = store.resourceVersion
    },
    { freeze: true },
  )
  const failures: string[] = []
  const reflector = new Reflector(server, store, {
    clock,
    random,
    pageSize: 3,
    onFailure: (failure) => failures.push(failure),
  })
  const stop = new AbortController()
  const running = reflector.run(stop.signal)
  return { store, replica, wrong, failures, reflector, stop: async () => (stop.abort(), await running) }
}

const contents = (objects: Iterable<{ metadata: { name?: string; resourceVersion?: string } }>) =>
  [...objects].map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`).toSorted()

describe('a reflector with connection failures', () => {
  it('loses no event: after any failures, subscribers and cache reach the state of the server', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), async (seed) => {
        const random = randomFrom(seed)
        const clock = fakeClock()
        const server = new ModelServer(random)
        server.canStream = random() < 0.7
        server.ignoresStream = random() < 0.2
        server.faultRate = random() * 0.5
        for (let index = 0; index < 5; index++) server.change()
        const { store, replica, wrong, stop } = reflect(server, random, clock)
        for (let round = 0; round < 15; round++) {
          for (let count = random() * 5; count > 0; count--) server.change()
          if (random() < 0.2) server.compacted = server.version - Math.floor(random() * 5)
          await clock.advance(random() * 3000)
        }
        server.faultRate = 0
        for (
          let round = 0;
          round < 60 && !(contents(store.list()).join() === contents(server.objects.values()).join());
          round++
        ) {
          await clock.advance(5000)
        }
        await stop()
        expect(wrong).toEqual([])
        expect(contents(store.list())).toEqual(contents(server.objects.values()))
        expect(contents(replica.values())).toEqual(contents(server.objects.values()))
      }),
      { numRuns: 60 },
    )
  })
})

describe('a reflector', () => {
  const setUp = (configure: (server: ModelServer) => void = () => undefined) => {
    const random = randomFrom(1)
    const clock = fakeClock()
    const server = new ModelServer(() => 0.9)
    server.change()
    configure(server)
    return { server, clock, ...reflect(server, random, clock) }
  }

  it('falls back to a list ten seconds after a server ignored sendInitialEvents', async () => {
    const { server, store, clock, stop } = setUp((model) => (model.ignoresStream = true))
    await clock.advance(9000)
    expect([store.hasSynced, server.lists]).toEqual([false, 0])
    await clock.advance(5000)
    expect([store.hasSynced, server.lists]).toEqual([true, 1])
    await stop()
  })

  it('aborts a watch without data for 90 s, and resumes', async () => {
    const { store, reflector, failures, clock, stop } = setUp()
    await clock.advance(1000)
    expect([store.hasSynced, reflector.state.at]).toEqual([true, 'watch'])
    await clock.advance(93_000)
    expect(failures).toEqual(['broken'])
    await clock.advance(2000)
    expect(reflector.state.at).toBe('watch')
    await stop()
  })

  it('empties the cache only for a kind that discovery does not know, and fills it when the kind is served', async () => {
    const { server, store, reflector, clock, replica, stop } = setUp()
    await clock.advance(1000)
    expect(store.size).toBe(1)
    server.isServedNow = false
    server.faultRate = 1
    server.change()
    server.faultRate = 0
    await clock.advance(2000)
    await clock.advance(120_000)
    expect([reflector.state.at, store.size, store.hasSynced, replica.size]).toEqual(['absent', 0, true, 0])
    server.isServedNow = true
    reflector.kick()
    await clock.advance(10)
    expect([reflector.state.at, store.size]).toEqual(['watch', server.objects.size])
    await stop()
  })

  it('leaves no timer behind when a watch ends: one operation, one timer', async () => {
    const { server, failures, clock, stop } = setUp()
    await clock.advance(1000)
    const before = clock.pending
    for (let round = 0; round < 5; round++) {
      server.faultRate = 1
      server.change()
      await clock.advance(0)
      server.faultRate = 0
      await clock.advance(60_000)
    }
    expect(failures.length).toBeGreaterThanOrEqual(5)
    expect(clock.pending).toBe(before)
    await stop()
  })

  it('returns only after the last operation has ended', async () => {
    let end: () => void = () => undefined
    const ended = new Promise<void>((resolve) => (end = resolve))
    const source: Source<Thing> = {
      list: () => new Promise(() => undefined),
      watch: () => ended,
      isServed: async () => true,
    }
    const controller = new AbortController()
    const clock = fakeClock()
    let hasReturned = false
    const store = new Store<Thing>(() => undefined)
    const running = new Reflector(source, store, { clock }).run(controller.signal).then(() => (hasReturned = true))
    await clock.advance(1)
    controller.abort()
    await clock.advance(1)
    expect(hasReturned).toBe(false)
    end()
    await running
  })

  it('stops when aborted, in any state', async () => {
    for (const advanceMs of [0, 1, 1000, 100_000]) {
      const { server, clock, stop } = setUp((model) => (model.faultRate = 0.95))
      await clock.advance(advanceMs)
      await stop()
      const { lists } = server
      await clock.advance(100_000)
      expect([clock.pending, server.lists - lists], `after ${advanceMs} ms`).toEqual([0, 0])
    }
  })
})

describe('failures', () => {
  it.each([
    [refusal(410, 'Expired'), 'expired'],
    [refusal(504, 'Timeout', 'Too large resource version: 9, current: 1'), 'too-large'],
    [refusal(422, 'Invalid'), 'unsupported'],
    [refusal(400, 'BadRequest'), 'unsupported'],
    [refusal(401, 'Unauthorized'), 'denied'],
    [refusal(403, 'Forbidden'), 'denied'],
    [refusal(404, 'NotFound'), 'absent'],
    [refusal(408, 'Timeout'), 'busy'],
    [refusal(429, 'TooManyRequests'), 'busy'],
    [refusal(500, 'InternalError'), 'internal'],
    [refusal(500, 'InternalError', 'the required storage feature RequestWatchProgress is disabled'), 'unsupported'],
    [refusal(503, 'ServiceUnavailable'), 'busy'],
    [new TransportError('RESET', 'reset'), 'broken'],
    [new DecodeError('torn'), 'broken'],
    [new Error('anything'), 'broken'],
  ] as const)('%s means %s', (error, failure) => {
    expect(classify(error).failure).toBe(failure)
  })

  it('of a limit are retried after a minute: each attempt costs as much as the limits allow', () => {
    const error = new CacheLimitExceeded('more than 20 objects')
    expect(classify(error)).toEqual({ failure: 'over-limit', retryAfterMs: 60_000 })
  })
})
