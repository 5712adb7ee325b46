/**
 * A provider that could not be created yet, for instance because its Secret is missing. Creation is retried whenever its
 * zones are listed; until then it is one failing provider, and the process continues (INV-13).
 */
import { ProviderError } from '../rrset/error.ts'
import type { Provider } from './provider.ts'

export function deferredProvider(name: string, create: () => Promise<Provider>): Provider {
  let made: Provider | undefined
  /** While it is being created: callers at the same time share one provider, so that each one made is closed. */
  let creation: Promise<Provider> | undefined
  const get = (): Provider => {
    if (made === undefined) throw new ProviderError('ProviderMisconfigured', 'later', `provider ${name} is not ready`)
    return made
  }
  return {
    name,
    get account() {
      return made?.account ?? name
    },
    get capabilities() {
      return made?.capabilities ?? NOTHING
    },
    async zones(signal, turn) {
      made ??= await (creation ??= create().finally(() => (creation = undefined)))
      return made.zones(signal, turn)
    },
    read: async (zone, names, signal, turn) => get().read(zone, names, signal, turn),
    apply: async (zone, batch, signal) => get().apply(zone, batch, signal),
    fits: (batch) => made?.fits?.(batch) ?? true,
    async close() {
      made ??= await creation?.catch(() => undefined)
      await made?.close?.()
    },
  }
}

const NOTHING = { isAtomic: false, comparesAndSwaps: false, readsByName: false, maxChanges: 1, requestsPerSecond: 1 }
