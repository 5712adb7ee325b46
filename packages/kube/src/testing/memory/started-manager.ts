/** A manager that runs on a cluster in memory, for tests of the runtime. */
import { manager, type Manager, type ManagerOptions } from '../../manager/manager.ts'
import { memoryCluster, type MemoryCluster } from './memory-cluster.ts'

export interface StartedManager {
  readonly mgr: Manager
  readonly cluster: MemoryCluster
  readonly stop: AbortController
  /** `stopped`, or the error that ended it. */
  readonly outcome: Promise<unknown>
}

const started: StartedManager[] = []

export async function startManager(
  wire: (mgr: Manager, cluster: MemoryCluster) => void,
  options: ManagerOptions = {},
  cluster = memoryCluster(),
): Promise<StartedManager> {
  const mgr = await manager({ cluster, fieldManager: 'test', log: cluster.log, grace: '2s', ...options })
  wire(mgr, cluster)
  const stop = new AbortController()
  const outcome = mgr.run(stop.signal).then(
    () => 'stopped',
    (error: unknown) => error,
  )
  const result = { mgr, cluster, stop, outcome }
  started.push(result)
  return result
}

/** After each test. */
export async function stopManagers(): Promise<void> {
  for (const { stop, outcome } of started.splice(0)) {
    stop.abort()
    await outcome
  }
}
