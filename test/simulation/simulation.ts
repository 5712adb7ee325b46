/**
 * One run: a fresh API server in this process, a virtual clock, the controller under a scheduler that a seed decides,
 * and the faults of its plans.
 *
 * Flow: given objects → controller starts → after each step (and once before the first) virtual time passes → the run
 * ends with its history, its end state and every invariant that was broken, with the write that broke it.
 * Guarantees: the same scenario, plans and seed give the same run. Everything happens between `now` and `now + steps ×
 * convergeMs` of virtual time and in milliseconds of real time; nothing outlives the run.
 */
import { createApiServer, type ApiServer, type Cluster } from '@seamark/apiserver'
import type { Obj } from '@seamark/kube/object'
import { isMasked, maskObject } from './mask.ts'
import type { Extent, Plan } from './plan.ts'
import { ProcessHost } from './process-host.ts'
import type { Scenario, World, Write } from './scenario.ts'
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
  /** Virtual milliseconds between the last write and the end. */
  readonly quietMs: number
}

const defaultConvergeMs = 12 * 60_000
/** Long enough for the server's own controllers to have made what they make. */
const bootMs = 1_000
const staleMs = 60_000
const stormMs = 5 * 60_000
const user = 'controller'

export async function simulate(scenario: Scenario, plans: readonly Plan[], seed: number): Promise<Run> {
  const clock = new VirtualClock()
  const random = seededRandom(seed)
  const server = createApiServer({ clock, random })
  const { cluster } = server
  const recorder = recordWrites(server, clock, scenario)
  const host = new ProcessHost({ server, clock, random, user, controller: scenario.controller, plans })
  try {
    await clock.advance(bootMs)
    await seedObjects(server, scenario.given)
    await clock.advance(bootMs)
    recorder.start((write) => afterWrite(write.index, plans, { server, clock, host }))
    const events = layWatchFaults(server, plans)
    const { steps, convergeMs = defaultConvergeMs } = scenario
    host.start()
    await clock.advance(convergeMs)
    for (const step of steps) {
      await step.act(server.fetch, cluster)
      await clock.advance(convergeMs)
    }
    await clock.advance(convergeMs)
    return {
      extent: { sentWrites: host.sentWrites, lists: host.lists, events: events(), writes: recorder.history.length },
      history: recorder.history,
      endState: endStateOf(cluster),
      violations: recorder.violations,
      quietMs: clock.now() - recorder.lastWriteMs(),
    }
  } finally {
    host.stop()
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

function recordWrites({ cluster }: ApiServer, clock: VirtualClock, { invariants = [] }: Scenario) {
  const history: Write[] = []
  const violations: Violation[] = []
  const world = worldOf(cluster)
  let lastWriteMs = clock.now()
  return {
    history,
    violations,
    lastWriteMs: () => lastWriteMs,
    start(onWrite: (write: Write) => void) {
      cluster.store.subscribe(({ type, key, previous, current }) => {
        clock.activity += 1
        if (isMasked(current.object)) return
        const write: Write = {
          index: history.length + 1,
          type,
          kind: current.kind,
          key,
          before: previous?.object,
          after: type === 'delete' ? undefined : current.object,
        }
        history.push(write)
        lastWriteMs = clock.now()
        for (const invariant of invariants) {
          const message = invariant.check(world, write)
          if (message !== undefined) violations.push({ invariant: invariant.name, write: write.index, message })
        }
        onWrite(write)
      })
    },
  }
}

function worldOf(cluster: Cluster): World {
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
  { server, clock, host }: { server: ApiServer; clock: VirtualClock; host: ProcessHost },
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
        host.restart(revision)
        clock.after(staleMs, () => {
          host.freshen()
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
      case 'refuse':
    }
  }
}

/** Faults of single events; the answer counts the events that the controller was sent. */
function layWatchFaults({ faults }: ApiServer, plans: readonly Plan[]): () => number {
  let count = 0
  const isPlanned = (kind: 'drop' | 'duplicate') => plans.some((plan) => plan.kind === kind && plan.at === count)
  faults.drop({ user }, () => {
    count += 1
    return isPlanned('drop')
  })
  faults.duplicate({ user }, () => isPlanned('duplicate'))
  if (plans.some((plan) => plan.kind === 'reorder')) faults.reorder({ user })
  return () => count
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
