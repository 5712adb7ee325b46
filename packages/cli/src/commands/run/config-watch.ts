/**
 * Follows the configuration file while the manager runs: settings that may change without a restart take effect, the others
 * are named, and a file that cannot be used changes nothing. Each change is logged, and is an Event on the ConfigMap of the
 * manager.
 *
 * A mounted ConfigMap is replaced by renaming a link, which file system notifications miss; so the content is read and compared.
 * A file that is written in place may be read half written, and half a file may be a valid one: a new content counts when two
 * reads in a row find it.
 */
import { readFile } from 'node:fs/promises'
import { type Clock, type Logger, messageOf, poll } from '@seamark/kube'
import {
  type AppOptions,
  changeConfig,
  type ConfigResult,
  configurationNotices,
  type FoundConfiguration,
  type LoadedConfig,
  type Notice,
  type OptionChanges,
} from '@seamark/operator'

/** Two reads and what follows from them take less than a second. The kubelet takes up to a minute to update a mounted ConfigMap. */
const POLL_MS = 250

type Config = LoadedConfig['config']

export interface ConfigWatch {
  readonly path: string
  /** What the manager was started with. */
  readonly running: Config
  readonly parse: (text: string) => ConfigResult
  /** The manager runs with `config` from now on, which differs in these settings. */
  readonly replace: (config: Config, settings: readonly string[]) => void
  readonly notify: (notice: Notice) => void
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly clock: Clock
  readonly pollMs?: number
}

/** Resolves when `signal` is aborted. */
export async function watchConfig(
  { path, running: first, parse, replace, notify, log, clock, pollMs = POLL_MS }: ConfigWatch,
  signal: AbortSignal,
): Promise<void> {
  let running = first
  let before: FoundConfiguration = { kind: 'valid', live: [], restart: [] }
  let read: string | undefined
  let judged: string | undefined
  const compare = async (): Promise<undefined> => {
    const file = await readFile(path, 'utf8').catch((error: unknown) => ({ error: messageOf(error) }))
    const content = JSON.stringify(file)
    const isStable = content === read
    read = content
    if (!isStable || content === judged) return
    judged = content
    take(typeof file === 'string' ? parseComplete(file, parse) : { ok: false, faults: [file.error] })
  }
  await poll(compare, { clock, intervalMs: pollMs, signal })

  function take(result: ConfigResult): void {
    const change = result.ok ? changeConfig(running, result.config) : undefined
    const found: FoundConfiguration =
      result.ok && change !== undefined
        ? { kind: 'valid', live: change.live, restart: change.restart }
        : { kind: 'invalid', faults: result.ok ? [] : result.faults }
    const at = `${new Date(clock.now()).toISOString().slice(0, 19)}Z`
    for (const notice of configurationNotices(found, { path, at, before })) {
      const { severity, reason, message, fields = {} } = notice
      log[severity === 'Warning' ? 'warn' : 'info']({ path, ...fields, reason }, message)
      notify(notice)
    }
    before = found
    if (change === undefined || change.live.length === 0) return
    running = change.config
    replace(running, change.live)
  }
}

/** A file that was just emptied would be one with every default, and the defaults allow more than most files do. */
function parseComplete(text: string, parse: ConfigWatch['parse']): ConfigResult {
  return text.trim() === '' ? { ok: false, faults: ['the file is empty'] } : parse(text)
}

/** Passes the changes of the file on to the manager. */
export class ConfigChanges implements OptionChanges {
  readonly #listeners = new Set<() => void>()
  #notices: Notice[] = []
  /** The manager is not set up yet. */
  #early: { readonly options: AppOptions; readonly settings: readonly string[] } | undefined
  #replace: ((options: AppOptions, settings: readonly string[]) => void) | undefined

  notify(notice: Notice): void {
    this.#notices.push(notice)
    for (const listener of this.#listeners) listener()
  }

  take(): Notice[] {
    const taken = this.#notices
    this.#notices = []
    return taken
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  onChange(replace: (options: AppOptions, settings: readonly string[]) => void): void {
    this.#replace = replace
    if (this.#early !== undefined) replace(this.#early.options, this.#early.settings)
    this.#early = undefined
  }

  replace(options: AppOptions, settings: readonly string[]): void {
    if (this.#replace !== undefined) this.#replace(options, settings)
    else this.#early = { options, settings: [...(this.#early?.settings ?? []), ...settings] }
  }
}
