/** What serves the configuration: the built-in proxy of this process, or Envoy. */
import type { Logger } from '@seamark/kube'
import type { ProxyAddresses } from './listen-addresses.ts'
import type { Ir } from './model.ts'

export interface DataPlane {
  /** Puts a configuration into effect, with the endpoints of its clusters. */
  apply(ir: Ir): void
  /** @param names of endpoints that changed since, `namespace/service/portName` */
  updateEndpoints(names: readonly string[]): void
  /** Called after the first `apply`. Serves until the signal aborts; resolves when it has stopped. */
  run(context: DataPlaneContext): Promise<void>
  counters(): DataPlaneCounters
}

/** Undefined: not of this data plane. */
export interface DataPlaneCounters {
  /** Answered requests by class of their status, `2xx`. */
  readonly answers?: ReadonlyMap<string, number>
  /** Open connections of clients. */
  readonly connections?: number
  /** Envoys that get their configuration. */
  readonly streams?: number
}

interface DataPlaneContext {
  readonly signal: AbortSignal
  readonly log: Logger
  /** Called when requests are answered. */
  readonly onReady: (addresses: ProxyAddresses) => void
}
