/**
 * The provider types of `seamark dnslb`: ours, configured by the keys of a Secret or of the environment, and those that
 * plug-ins register. Every provider gets the original's ownership records.
 */
import { createProvider } from '../providers/create-provider.ts'
import type { Provider } from '../providers/provider.ts'
import { providerSettings, SECRET_PROVIDER_TYPES } from '../providers/secret-settings.ts'

type Values = Readonly<Record<string, string>>

/** Rejects with what is wrong with the values. */
export type ProviderFactory = (name: string, values: Values) => Promise<Provider>

export interface ProviderTypes {
  readonly names: readonly string[]
  /** Of plug-ins; the last registration of a type counts. */
  register(type: string, factory: ProviderFactory): void
  /** Undefined: there is no such type. */
  create(type: string, name: string, values: Values): Promise<Provider> | undefined
}

export function createProviderTypes(): ProviderTypes {
  const registered = new Map<string, ProviderFactory>()
  return {
    get names() {
      return [...new Set([...SECRET_PROVIDER_TYPES, ...registered.keys()])]
    },
    register: (type, factory) => void registered.set(type, factory),
    create(type, name, values) {
      const factory = registered.get(type)
      if (factory !== undefined) return factory(name, values)
      const settings = providerSettings(type, name, values)
      if ('unknownType' in settings) return undefined
      if ('invalid' in settings) return Promise.reject(new Error(settings.invalid))
      return createProvider(settings.config, { env: values })
    },
  }
}
