/**
 * A manager that may not write yet, as one that has not read its switches: on an in-memory cluster, with a clock that does
 * not advance. What is written after `grant` is therefore no retry after a time.
 */
import { type Manager, manager } from '@seamark/kube'
import { fakeClock, type MemoryCluster } from '@seamark/kube/testing'

interface WritePermission {
  readonly isWriting: () => boolean
  readonly untilMayWrite: () => Promise<void>
}

interface WithoutPermission extends AsyncDisposable {
  /** Resolves when a reconcile asked whether it may write. */
  readonly asked: Promise<void>
  grant(): void
}

export async function startWithoutPermission(
  cluster: MemoryCluster,
  setUp: (mgr: Manager, permission: WritePermission) => void,
): Promise<WithoutPermission> {
  let isGranted = false
  let grant: () => void = () => undefined
  const granted = new Promise<void>((resolve) => (grant = resolve))
  let ask: () => void = () => undefined
  const asked = new Promise<void>((resolve) => (ask = resolve))
  const mgr = await manager({ cluster, fieldManager: 'test', log: cluster.log, clock: fakeClock() })
  setUp(mgr, {
    isWriting() {
      ask()
      return isGranted
    },
    untilMayWrite() {
      ask()
      return granted
    },
  })
  const stopping = new AbortController()
  const running = mgr.run(stopping.signal)
  return {
    asked,
    grant() {
      isGranted = true
      grant()
    },
    async [Symbol.asyncDispose]() {
      stopping.abort()
      await running
    },
  }
}
