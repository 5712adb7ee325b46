/** A provider with injectable faults, and an executor around it with a manual clock. */
import { createLimiter } from '@seamark/kube'
import type { SetChange } from '../src/rrset/set-change.ts'
import { type MemoryProvider, memoryProvider } from '../src/providers/memory.ts'
import type { Capabilities, Provider } from '../src/providers/provider.ts'
import { createExecutor, type Executor, type ExecutorOptions } from '../src/records/execute/executor.ts'
import { type GuardStore, memoryGuardStore } from '../src/records/state/guard-state.ts'
import { createKillSwitch } from '../src/process/kill-switch.ts'
import { ZONE } from './plan-fixture.ts'
import type { ObservedRRset } from '../src/rrset/rrset.ts'

interface Faults {
  /** Called before a batch is written; throws to refuse it. */
  before?: (batch: readonly SetChange[], call: number) => void | Promise<void>
  /** Called after a batch was written: an error reaches the caller although the batch is applied. */
  after?: (batch: readonly SetChange[], call: number) => void | Promise<void>
  onRead?: () => void | Promise<void>
}

export interface ExecutorFixture {
  readonly memory: MemoryProvider
  readonly provider: Provider
  readonly executor: Executor
  readonly store: GuardStore
  readonly killSwitch: ReturnType<typeof createKillSwitch>
  readonly faults: Faults
  readonly calls: SetChange[][]
}

export function executorFixture(
  observed: readonly ObservedRRset[] = [],
  more: Partial<ExecutorOptions> & { capabilities?: Partial<Capabilities>; memory?: MemoryProvider } = {},
): ExecutorFixture {
  const memory =
    more.memory ??
    memoryProvider({ zones: [ZONE], ...(more.capabilities !== undefined && { capabilities: more.capabilities }) })
  for (const set of observed) memory.put(ZONE, set)
  const faults: Faults = {}
  const calls: SetChange[][] = []
  const provider: Provider = {
    ...memory,
    async read(zone, names, signal) {
      await faults.onRead?.()
      return memory.read(zone, names, signal)
    },
    async apply(zone, batch, signal) {
      calls.push([...batch])
      await faults.before?.(batch, calls.length)
      if (memory.capabilities.isAtomic) await memory.apply(zone, batch, signal)
      else for (const write of batch) await memory.apply(zone, [write], signal)
      await faults.after?.(batch, calls.length)
    },
  }
  const store = more.store ?? memoryGuardStore()
  const killSwitch = createKillSwitch()
  const executor = createExecutor({
    provider,
    zone: { id: ZONE, name: ZONE },
    store,
    limiter: createLimiter({ perSecond: 10_000, ...(more.clock !== undefined && { clock: more.clock }) }),
    killSwitch,
    ...more,
  })
  return { memory, provider, executor, store, killSwitch, faults, calls }
}
