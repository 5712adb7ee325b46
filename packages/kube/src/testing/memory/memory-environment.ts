/**
 * The environment of a controller with an in-memory cluster and a fake clock; for tests of the runtime itself.
 */
import type { Environment } from '../../controller/context.ts'
import { createLearnedDefaults } from '../../apply/learned-defaults.ts'
import { createRecorder, type EventRecord } from '../../controller/events.ts'
import { openFence } from '../../apply/write-fence.ts'
import { createMetrics } from '../../metrics.ts'
import { fakeClock, type FakeClock } from '../clock.ts'
import { memoryCluster, type MemoryCluster } from './memory-cluster.ts'

export interface MemoryEnvironment extends Environment {
  readonly cluster: MemoryCluster
  readonly clock: FakeClock
  readonly events: EventRecord[]
}

export function memoryEnvironment(
  cluster: MemoryCluster = memoryCluster(),
  clock: FakeClock = fakeClock(),
): MemoryEnvironment {
  const events: EventRecord[] = []
  const by = { client: cluster.client, log: cluster.log, reportingController: 'test', reportingInstance: 'test', clock }
  return {
    cluster,
    clock,
    events,
    fieldManager: 'test',
    fence: openFence,
    defaults: createLearnedDefaults(),
    recorder: { ...createRecorder(by), record: (event) => events.push(event) },
    metrics: createMetrics(),
    log: cluster.log,
  }
}
