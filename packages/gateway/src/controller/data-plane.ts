/** What serves the configuration: the built-in proxy of this process, or Envoy (envoy/data-plane.ts). */
import { untilAborted, type Logger } from '@seamark/kube'
import type { Ir } from '../ir/model.ts'
import { createProxy, type ProxyAddresses, type ProxyOptions } from '../proxy/proxy.ts'

export interface DataPlane {
  /** Puts a configuration into effect, with the endpoints of its clusters. */
  apply(ir: Ir): void
  /** @param names of endpoints that changed since, `namespace/service/portName` */
  updateEndpoints(names: readonly string[]): void
  /** Called after the first `apply`. Serves until the signal aborts; resolves when it has stopped. */
  run(context: DataPlaneContext): Promise<void>
}

interface DataPlaneContext {
  readonly signal: AbortSignal
  readonly log: Logger
  /** Called when requests are answered. */
  readonly onReady: (addresses: ProxyAddresses) => void
}

export function builtInDataPlane(options: ProxyOptions): DataPlane {
  const proxy = createProxy(options)
  return {
    apply: (ir) => proxy.apply(ir),
    // The proxy reads endpoints when a request arrives.
    updateEndpoints: () => undefined,
    async run({ signal, onReady }) {
      onReady(await proxy.listen())
      await untilAborted(signal)
      await proxy.close()
    },
  }
}
