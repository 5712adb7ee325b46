/**
 * `--plugin-dir`: loads ES modules that export `Name` (text) and `register(api)`. A file that cannot be loaded is reported and
 * skipped, so that a broken plug-in does not stop load balancing.
 */
import { readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Logger, messageOf } from '@seamark/kube'
import { ProviderError } from '../rrset/error.ts'
import type { ProviderFactory, ProviderTypes } from './provider-types.ts'

export interface PluginApi {
  /** Provider is the interface of providers/provider.ts; `values` are the keys of the DNSProvider's Secret. */
  registerProviderType(type: string, factory: ProviderFactory): void
  /** What a provider throws. The class is handed over: a plug-in cannot import the packages of a bundled program. */
  readonly ProviderError: typeof ProviderError
}

/** Rejects when the folder cannot be read. Returns the names of the loaded plug-ins. */
export async function loadPlugins(
  folder: string,
  types: ProviderTypes,
  log: Pick<Logger, 'info' | 'error'>,
): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
    throw new Error(`cannot read plugin dir '${folder}': ${messageOf(error)}`)
  })
  const files = entries.filter((entry) => entry.isFile() && /\.m?js$/.test(entry.name)).map(({ name }) => name)
  const api: PluginApi = {
    registerProviderType: (type, factory) => types.register(type, factory),
    ProviderError,
  }
  const loaded: string[] = []
  for (const file of files.sort()) {
    const path = join(folder, file)
    try {
      const module = (await import(pathToFileURL(resolve(path)).href)) as { Name?: unknown; register?: unknown }
      if (module.Name === undefined) throw new Error('it exports no Name')
      if (typeof module.Name !== 'string' || module.Name === '') throw new Error('its export Name is not a text')
      if (typeof module.register !== 'function') throw new Error('it exports no function register')
      await (module.register as (api: PluginApi) => unknown)(api)
      loaded.push(module.Name)
      log.info({ plugin: module.Name, file: path }, 'loaded plugin')
    } catch (error) {
      log.error({ file: path, error: messageOf(error) }, 'cannot load plugin')
    }
  }
  return loaded
}
