/**
 * Notices that the configuration file changed while the manager runs, and logs it: settings are read once, at the start, so
 * that no guard changes in the middle of a pass. A mounted ConfigMap is replaced by renaming a link, which file system
 * notifications miss; so the content is read and compared.
 */
import { readFile } from 'node:fs/promises'
import { type Clock, type Logger, messageOf, poll } from '@seamark/kube'
import { type ConfigResult, listSettings, type LoadedConfig, valueAt } from '@seamark/operator'

/** The kubelet itself takes up to a minute to update a mounted ConfigMap. */
const POLL_MS = 10_000

export interface ConfigWatch {
  readonly path: string
  /** What the manager runs with. */
  readonly running: LoadedConfig['config']
  readonly parse: (text: string) => ConfigResult
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly clock: Clock
  readonly pollMs?: number
}

/** Resolves when `signal` is aborted. */
export async function watchConfig(
  { path, running, parse, log, clock, pollMs = POLL_MS }: ConfigWatch,
  signal: AbortSignal,
): Promise<void> {
  let last = JSON.stringify({ kind: 'same' })
  const compare = async (): Promise<undefined> => {
    const found = compareConfig(running, await readFile(path, 'utf8').then(parse, unreadable))
    const text = JSON.stringify(found)
    if (text !== last) report(found)
    last = text
  }
  await poll(compare, { clock, intervalMs: pollMs, signal })

  function report(found: ConfigComparison): void {
    if (found.kind === 'same') log.info({ path }, 'configuration file is again as the manager runs')
    else if (found.kind === 'changed')
      log.warn({ path, settings: found.settings }, 'configuration file changed; restart needed')
    else log.warn({ path, faults: found.faults }, 'configuration file is invalid; the manager would not start with it')
  }
}

type ConfigComparison =
  | { readonly kind: 'same' }
  | { readonly kind: 'changed'; readonly settings: readonly string[] }
  | { readonly kind: 'invalid'; readonly faults: readonly string[] }

/** Which settings a restart would change. */
function compareConfig(running: LoadedConfig['config'], found: ConfigResult): ConfigComparison {
  if (!found.ok) return { kind: 'invalid', faults: found.faults }
  const settings = listSettings()
    .map(({ path }) => path)
    .filter((path) => JSON.stringify(valueAt(running, path)) !== JSON.stringify(valueAt(found.config, path)))
  if (settings.length > 0) return { kind: 'changed', settings }
  // Parts that no flag can set, such as references to Secrets.
  return JSON.stringify(running) === JSON.stringify(found.config) ? { kind: 'same' } : { kind: 'changed', settings: [] }
}

function unreadable(error: unknown): ConfigResult {
  return { ok: false, faults: [messageOf(error)] }
}
