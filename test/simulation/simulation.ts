/**
 * One run: a fresh API server in this process, a virtual clock, the controller under a scheduler that a seed decides,
 * and the faults of its plans.
 *
 * Flow: given objects → the scenario is played → the run ends with its history, its end state and every invariant that
 * was broken, with the write that broke it.
 * Guarantees: the same scenario, plans and seed give the same run, in milliseconds of real time; nothing outlives it.
 */
import { createApiServer, type ApiServer, type Cluster } from '@seamark/apiserver'
import { messageOf } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { isMasked, maskObject } from './mask.ts'
import type { Extent, Plan } from './plan.ts'
import { ProcessHost, type Meter } from './process-host.ts'
import type { Invariant, Scenario, Stage, TestEnvironment, Write } from './scenario.ts'
import { seededRandom } from './seeded-random.ts'
import { VirtualClock } from './virtual-clock.ts'

interface Violation {
  readonly invariant: string
  readonly write: number
  readonly message: string
}

export interface Run {
  readonly extent: Extent
  readonly history: readonly Write[]
  /** Masked objects by `Kind namespace/name`. */
  readonly endState: ReadonlyMap<string, string>
  readonly violations: readonly Violation[]
  /** Virtual milliseconds between the last write of a controller and the end. */
  readonly quietMs: number
  /** What the scenario itself found wrong. */
  readonly failure: string | undefined
}

export interface SimulatedRun extends Run {
  /** Every request of a controller: virtual milliseconds, method and path. */
  readonly requests: readonly string[]
}

/** Long enough for the server's own controllers to have made what they make. */
const bootMs = 1_000
const staleMs = 60_000
const stormMs = 5 * 60_000
const user = 'controller'

export async function simulate(scenario: Scenario, plans: readonly Plan[], seed: number): Promise<SimulatedRun> {
  const { mask = (text: string) => text } = scenario
  const clock = new VirtualClock()
  const random = seededRandom(seed)
  const server = createApiServer({ clock, random })
  const { cluster } = server
  const meter: Meter = { sentWrites: 0, lists: 0, writing: new Map(), ends: [], requests: [] }
  const recorder = recordWrites(server, clock, meter)
  const hosts = new Set<ProcessHost>()
  const events = { count: 0 }
  const outside: (() => ReadonlyMap<string, string>)[] = []
  const stage: Stage = {
    server,
    clock,
    isDisturbed: plans.length > 0,
    stored: () => environmentOf(cluster),
    addCluster: (name) => layWatchFaults(server.addCluster(name), plans, events),
    quietMs: () => clock.now() - recorder.lastWriteMs(),
    recordWrite: (write) => recorder.record({ ...write, isByController: true }),
    addEndState: (read) => outside.push(read),
    start(controller) {
      const host = new ProcessHost({
        server,
        clock,
        random,
        user,
        controller,
        plans,
        meter,
        hasWatchList: seed % 2 === 0,
      })
      hosts.add(host)
      host.start()
      return { stop: async () => host.stop().finally(() => hosts.delete(host)) }
    },
  }
  let failure: string | undefined
  try {
    await clock.advance(bootMs)
    await seedObjects(server, scenario.given)
    await scenario.prepare?.(stage)
    await clock.advance(bootMs)
    recorder.start(scenario.invariants?.(stage) ?? [], (write) =>
      afterWrite(write.index, plans, { server, clock, hosts }),
    )
    layWatchFaults(server, plans, events)
    await scenario
      .play(stage)
      .catch(
        (error: unknown) =>
          (failure = [messageOf(error), ...new Set(meter.ends)].join('; a process ended by itself: ')),
      )
    return {
      extent: {
        sentWrites: meter.sentWrites,
        lists: meter.lists,
        events: events.count,
        writes: recorder.history.length,
      },
      requests: meter.requests,
      history: recorder.history.map((write) => ({ ...write, key: mask(write.key) })),
      endState: new Map(
        [...endStateOf(cluster), ...outside.flatMap((read) => [...read()])].map(([name, value]) => [
          mask(name),
          mask(value),
        ]),
      ),
      violations: recorder.violations,
      quietMs: stage.quietMs(),
      failure,
    }
  } finally {
    for (const host of hosts) host.kill()
    await server.close()
  }
}

async function seedObjects(server: ApiServer, objects: readonly Obj[]): Promise<void> {
  for (const object of objects) {
    const path = await collectionOf(server, object)
    const response = await server.fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(object),
    })
    if (!response.ok) throw new Error(`cannot create ${object.kind} ${object.metadata.name}: ${await response.text()}`)
  }
}

interface ResourceList {
  resources: { name: string; kind: string; namespaced: boolean }[]
}

async function collectionOf(server: ApiServer, object: Obj): Promise<string> {
  const { apiVersion = 'v1', kind, metadata } = object
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  const { resources } = (await (await server.fetch(root)).json()) as ResourceList
  const resource = resources.find((candidate) => candidate.kind === kind && !candidate.name.includes('/'))
  if (resource === undefined) throw new Error(`${apiVersion} has no kind ${kind}`)
  const scope = resource.namespaced ? `/namespaces/${metadata.namespace ?? 'default'}` : ''
  return `${root}${scope}/${resource.name}`
}

function recordWrites({ cluster }: ApiServer, clock: VirtualClock, meter: Meter) {
  const history: Write[] = []
  const violations: Violation[] = []
  const environment = environmentOf(cluster)
  let lastWriteMs = clock.now()
  let invariants: readonly Invariant[] = []
  let onWrite: ((write: Write) => void) | undefined
  const record = (made: Omit<Write, 'index'>): void => {
    if (onWrite === undefined) return
    const write: Write = { ...made, index: history.length + 1 }
    history.push(write)
    if (write.isByController) lastWriteMs = clock.now()
    for (const invariant of invariants) {
      const message = invariant.check(environment, write)
      if (message !== undefined) violations.push({ invariant: invariant.name, write: write.index, message })
    }
    onWrite(write)
  }
  return {
    history,
    violations,
    lastWriteMs: () => lastWriteMs,
    record,
    start(checked: readonly Invariant[], afterEach: (write: Write) => void) {
      invariants = checked
      onWrite = afterEach
      cluster.store.subscribe(({ type, key, previous, current }) => {
        clock.activity += 1
        if (isMasked(current.object)) return
        record({
          type,
          kind: current.kind,
          key,
          before: previous?.object,
          after: type === 'delete' ? undefined : current.object,
          isByController: isWriting(meter, current.kind, key),
        })
      })
    },
  }
}

/** A path names plurals, which begin as the kind does but for its last letter (`httpproxies`). */
function isWriting({ writing }: Meter, kind: string, key: string): boolean {
  const stem = kind.toLowerCase().slice(0, -1)
  const wanted = key.split('/')
  for (const [path, count] of writing) {
    if (count === 0) continue
    const parts = path.split('/')
    if (parts.some((part) => part.startsWith(stem)) && wanted.every((part) => parts.includes(part))) return true
  }
  return false
}

function environmentOf(cluster: Cluster): TestEnvironment {
  const list = (kind: string): Obj[] =>
    [...cluster.store.collections()].flatMap((collection) =>
      [...collection.values()].filter((stored) => stored.kind === kind).map((stored) => stored.object as Obj),
    )
  return {
    list,
    find: (kind, key) => {
      for (const collection of cluster.store.collections()) {
        const stored = collection.get(key)
        if (stored?.kind === kind) return stored.object
      }
      return undefined
    },
  }
}

/** Faults that begin with a write to the store. */
function afterWrite(
  index: number,
  plans: readonly Plan[],
  { server, clock, hosts }: { server: ApiServer; clock: VirtualClock; hosts: ReadonlySet<ProcessHost> },
): void {
  for (const plan of plans) {
    if (!('at' in plan) || plan.at !== index) continue
    switch (plan.kind) {
      case 'freeze': {
        clock.after(stormMs, server.faults.freeze({ user }))
        break
      }
      case 'stale': {
        const revision = server.cluster.store.revision - 1
        const thaw = server.faults.freeze({ user })
        for (const host of hosts) host.restart(revision)
        clock.after(staleMs, () => {
          for (const host of hosts) host.freshen()
          thaw()
        })
        break
      }
      case 'gone': {
        // In a turn of its own: the write that triggers it is not finished yet.
        clock.after(0, () => {
          server.faults.compact()
          server.faults.cut({ user }, 'break')
        })
        break
      }
      case 'crash':
      case 'drop':
      case 'duplicate':
      case 'emptyList':
      case 'shortList':
      case 'emptyLists':
      case 'refuse':
    }
  }
}

/** Faults of single events; counts the events that the controller was sent. */
function layWatchFaults({ faults }: Pick<Cluster, 'faults'>, plans: readonly Plan[], events: { count: number }): void {
  const isPlanned = (kind: 'drop' | 'duplicate') => plans.some((plan) => plan.kind === kind && plan.at === events.count)
  faults.drop({ user }, () => {
    events.count += 1
    return isPlanned('drop')
  })
  faults.duplicate({ user }, () => isPlanned('duplicate'))
  if (plans.some((plan) => plan.kind === 'reorder')) faults.reorder({ user })
}

function endStateOf(cluster: Cluster): ReadonlyMap<string, string> {
  const state = new Map<string, string>()
  for (const collection of cluster.store.collections()) {
    for (const stored of collection.values()) {
      const object = stored.object as Obj
      if (!isMasked(object)) state.set(`${stored.kind} ${stored.key}`, maskObject(object))
    }
  }
  return state
}
