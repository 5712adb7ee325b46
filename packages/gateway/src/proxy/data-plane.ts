/** The built-in proxy as a data plane. */
import { untilAborted } from '@seamark/kube'
import type { DataPlane } from '../ir/data-plane.ts'
import { createProxy, type ProxyOptions } from './proxy.ts'

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
    counters: () => proxy.counters(),
  }
}
