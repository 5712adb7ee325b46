/**
 * A DNS service outside the cluster: one zone in memory that outlives the processes that write to it.
 *
 * Every call passes the simulation's faults, every RRset that a batch changed is one write of the history (kind `RRset`, key
 * `name TYPE`), and the zone is part of the end state.
 * Guarantees: a batch is applied whole or not at all, and only while the zone holds what the batch expects.
 */
import type { Obj } from '@seamark/kube/object'
import { memoryProvider, type ObservedRRset, type Provider, ProviderError } from '@seamark/operator'
import type { ExternalCall, Stage } from '../scenario.ts'

/** An RRset in the form in which invariants read objects. */
export interface RRsetObject extends Obj {
  readonly rrset: ObservedRRset
}

export interface SimulatedZone {
  /** The service as one process reaches it. */
  providerFor(call: ExternalCall): Provider
  /** Values of an RRset, or undefined when it is absent. */
  find(name: string, type?: string): readonly string[] | undefined
  /** RRsets other than ownership markers, as `name TYPE values`. */
  lines(): string[]
  /** A change by another program, without any guard. */
  put(set: ObservedRRset): void
  remove(name: string, type: string): void
  /** Lets every call fail until the function that it returns is called. */
  fail(): () => void
}

const MARKER_PREFIX = '_seamark-'

export const isMarker = (name: string): boolean => name.startsWith(MARKER_PREFIX)
export const rrsetKey = ({ name, type }: Pick<ObservedRRset, 'name' | 'type'>): string => `${name} ${type}`

function toObject(rrset: ObservedRRset): RRsetObject {
  return { apiVersion: 'dns/v1', kind: 'RRset', metadata: { name: rrsetKey(rrset) }, rrset }
}

/** Facts of a marker that differ between two runs: random UIDs, versions, and plan numbers, which are times. */
const maskMarker = (value: string): string => value.replaceAll(/(source|cluster|plan|revision)=[^,"]*/g, '$1=<masked>')

export function simulatedZone(stage: Stage, zone: string): SimulatedZone {
  const memory = memoryProvider({ zones: [zone] })
  let isDown = false
  stage.addEndState(
    () =>
      new Map(
        memory.dump(zone).map((set) => [`RRset ${rrsetKey(set)}`, maskMarker(`${set.ttl} ${set.values.join(' ')}`)]),
      ),
  )
  const reach = async <T>(call: ExternalCall, isWrite: boolean, send: () => Promise<T>): Promise<T> =>
    call({
      isWrite,
      send: async () => {
        if (isDown) throw new ProviderError('ProviderUnavailable', 'later', 'connect ECONNREFUSED')
        return send()
      },
    })
  return {
    providerFor: (call) => ({
      ...memory,
      zones: async (...given) => reach(call, false, async () => memory.zones(...given)),
      read: async (...given) => reach(call, false, async () => memory.read(...given)),
      apply: async (to, batch, signal) =>
        reach(call, true, async () => {
          await memory.apply(to, batch, signal)
          for (const { from, to: set } of batch) {
            const subject = set ?? from
            if (subject === undefined) continue
            stage.recordWrite({
              type: from === undefined ? 'create' : set === undefined ? 'delete' : 'update',
              kind: 'RRset',
              key: rrsetKey(subject),
              before: from && toObject(from),
              after: set && toObject(set),
            })
          }
        }),
    }),
    find: (name, type = 'A') => memory.dump(zone).find((set) => set.name === name && set.type === type)?.values,
    lines: () =>
      memory
        .dump(zone)
        .filter(({ name }) => !isMarker(name))
        .map((set) => `${rrsetKey(set)} ${set.values.join(' ')}`),
    put: (set) => memory.put(zone, set),
    remove: (name, type) => memory.remove(zone, name, type),
    fail() {
      isDown = true
      return () => (isDown = false)
    },
  }
}
