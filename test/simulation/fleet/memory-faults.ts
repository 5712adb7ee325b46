/**
 * Faults of a simulated fleet in memory: partitions of a cluster, the crash of the process at one of its writes, and namespaces
 * that are being deleted.
 *
 * Place in the flow: between a process and the in-memory clusters it is connected to (memory-fleet.ts).
 * Guarantees: a dead process writes nothing and gets no event or response.
 */
import { type Cluster as Connection, Forbidden, TransportError } from '@seamark/kube'
import { type Immutable, type Kind, keyOf, type Obj } from '@seamark/kube/object'
import type { MemoryCluster } from '@seamark/kube/testing'
import type { Partition } from './actions.ts'
import { answerAsMember } from './memory-member.ts'
import type { Plan } from '../plan.ts'
import type { VirtualClock } from '../virtual-clock.ts'

export type Crash = Extract<Plan, { kind: 'crash' }>

/** From the start of a process to its death. */
export interface Life {
  isDead: boolean
  readonly stop: AbortController
  /** Ends its subscriptions. */
  readonly ends: (() => void)[]
}

/** After this long a silent watch counts as broken. */
const SILENCE_MS = 90_000

export class MemoryFaults {
  /** Writes of all processes so far. */
  sentWrites = 0
  /** Numbers of the writes that no server got: to crash before one and after it is the same. */
  readonly undelivered = new Set<number>()
  /** Namespaces that are being deleted: nothing is created in them. */
  readonly endingNamespaces = new Set<string>()
  readonly #clock: VirtualClock
  readonly #crash: Crash | undefined
  readonly #onCrash: () => void
  readonly #partitions = new Map<string, Partition>()

  /** `onCrash`: ends the process that runs, and starts another one later. */
  constructor(clock: VirtualClock, crash: Crash | undefined, onCrash: () => void) {
    this.#clock = clock
    this.#crash = crash
    this.#onCrash = onCrash
  }

  /** Until the returned function is called. */
  partition(cluster: MemoryCluster, how: Partition): () => void {
    const kinds = cluster.informers.all().map(({ kind }) => kind)
    this.#partitions.set(cluster.name, how)
    const fail = (): void => {
      const failure = { reason: 'broken' as const, message: 'no response', sinceMs: this.#clock.now() }
      for (const kind of kinds) cluster.setFailure(kind, failure)
    }
    const cancel = how === 'both' ? fail() : this.#clock.after(SILENCE_MS, fail)
    return () => {
      cancel?.()
      this.#partitions.delete(cluster.name)
      for (const kind of kinds) cluster.setFailure(kind, undefined)
    }
  }

  /** A cluster as one process sees it. */
  connect(cluster: MemoryCluster, life: Life): Connection {
    const { client, informers } = cluster
    const read = async <T>(send: () => Promise<T>): Promise<T> => this.#exchange(cluster.name, life, send)
    const write = async <T>(kind: Kind, send: () => Promise<T>): Promise<T> =>
      kind.kind === 'Event' ? read(send) : this.#write(cluster.name, life, send)
    return {
      ...cluster,
      informers: {
        ...informers,
        informer: (kind, options) => {
          const informer = informers.informer(kind, options)
          const subscribe: typeof informer.subscribe = (handle, how) => {
            const end = informer.subscribe(handle, how)
            life.ends.push(end)
            return end
          }
          return Object.create(informer, { subscribe: { value: subscribe } }) as typeof informer
        },
        onHealthChange: (listener) => {
          const end = informers.onHealthChange(listener)
          life.ends.push(end)
          return end
        },
      },
      client: {
        ...client,
        get: async (kind, key, options) => read(async () => client.get(kind, key, options)),
        find: async (kind, key, options) => read(async () => client.find(kind, key, options)),
        list: async (kind, options) => read(async () => client.list(kind, options)),
        create: async (kind, object, options) =>
          write(kind, async () =>
            this.#orForbid(cluster, kind, object, async () => client.create(kind, object, options)),
          ),
        apply: async (kind, intent, options) =>
          write(kind, async () =>
            this.#orForbid(cluster, kind, intent, async () => client.apply(kind, intent, options)),
          ),
        update: async (kind, object, options) => write(kind, async () => client.update(kind, object, options)),
        updateStatus: async (kind, object, options) =>
          write(kind, async () => client.updateStatus(kind, object, options)),
        patch: async (kind, key, type, patch, options) =>
          write(kind, async () => client.patch(kind, key, type, patch, options)),
        delete: async (kind, key, options) => write(kind, async () => client.delete(kind, key, options)),
        request: async ({ path }) => read(async () => answerAsMember(path)),
      },
    }
  }

  async #exchange<T>(cluster: string, life: Life, send: () => Promise<T>): Promise<T> {
    this.#clock.activity += 1
    if (life.isDead) throw new TransportError('RESET', 'the process is dead')
    const partition = this.#partitions.get(cluster)
    if (partition === 'both') throw new TransportError('RESET', `${cluster} does not answer`)
    const response = await send()
    this.#clock.activity += 1
    if (life.isDead) throw new TransportError('RESET', 'the process is dead')
    if (partition !== undefined) throw new TransportError('RESET', `the response of ${cluster} is lost`)
    return response
  }

  async #write<T>(cluster: string, life: Life, send: () => Promise<T>): Promise<T> {
    if (life.isDead) throw new TransportError('RESET', 'the process is dead')
    this.sentWrites += 1
    const crash = this.#crash?.at === this.sentWrites ? this.#crash.point : undefined
    if (this.#partitions.get(cluster) === 'both') this.undelivered.add(this.sentWrites)
    if (crash === 'before') this.#die()
    const exchange = this.#exchange(cluster, life, send)
    if (crash === 'unanswered') {
      // Also when the response would have been lost: the write is carried out.
      await exchange.catch(() => undefined)
      this.#die()
    }
    const response = await exchange
    if (crash === 'after')
      this.#clock.after(0, () => {
        if (!life.isDead) this.#onCrash()
      })
    return response
  }

  #die(): never {
    this.#onCrash()
    throw new TransportError('RESET', 'the process is dead')
  }

  async #orForbid<T>(
    { informers }: MemoryCluster,
    kind: Kind,
    object: Immutable<Obj>,
    send: () => Promise<T>,
  ): Promise<T> {
    const { namespace = '' } = object.metadata
    if (this.endingNamespaces.has(namespace) && informers.get(kind, keyOf(object)) === undefined)
      throw new Forbidden('Forbidden', `namespace ${namespace} is being terminated`, 403, {
        kind: 'Status',
        apiVersion: 'v1',
      })
    return send()
  }
}
