/**
 * Shared by the commands about records: configuration, providers, an engine, and the guard state of `seamark run`.
 * A connection to a cluster is opened only when it is needed.
 */
import { homedir } from 'node:os'
import { join } from 'node:path'
import { printable } from '@seamark/dns'
import { type Cluster, ConfigMap, messageOf } from '@seamark/kube'
import {
  canonicalName,
  CONFIGURATION_OBJECT,
  createKillSwitch,
  type Engine,
  type HeldStore,
  isInvalid,
  isObjectScope,
  joinStores,
  type KillSwitchControl,
  type LoadedConfig,
  massLimits,
  openEngine,
  type OpenedEngine,
  openObjectStore,
  openRecordsStores,
  openStoreFolder,
  type Plan,
  printPlanJson,
  printPlanMarkdown,
  printPlanText,
  processGrants,
  ProviderError,
  recordsInUse,
  RecordsError,
  type RecordsStores,
  storedZonesProvider,
  type Target,
  type TenantRules,
  tenantRules,
  watchSwitches,
} from '@seamark/operator'
import type { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { addSettingFlags, configPath, readConfig } from '../../flags/setting-flags.ts'
import { addKubeFlags, DEFAULT_NAMESPACE, type KubeFlags, openCluster } from '../../flags/kube-flags.ts'
import { printTable, printValue } from '../../output-form.ts'

export interface RecordsFlags extends KubeFlags {
  config?: string
  owner?: string
  namespace?: string
}

export interface Session extends OpenedEngine, RecordsStores {
  readonly config: LoadedConfig['config']['records']
  /** False: the zones are those of others, and only their servers can be asked. */
  readonly hasProviders: boolean
  /** The whole configuration, as the manager reads it. */
  readonly manager: LoadedConfig['config']
  /** The manager's namespace. */
  readonly namespace: string
  readonly cluster: Cluster | undefined
  /** The mode of the manager; commands write in any mode. */
  readonly mode: LoadedConfig['config']['mode']
  readonly rules: TenantRules
}

export function addRecordsFlags(command: Command): Command {
  addKubeFlags(command)
    .option('--config <file>', 'ManagerConfiguration file [SEAMARK_CONFIG]')
    .option('--owner <id>', 'owner id, as --records-owner')
    .option(
      '-n, --namespace <name>',
      `namespace of the manager, where the guard state is; else that of the configuration, else ${DEFAULT_NAMESPACE}`,
    )
  addSettingFlags(command, { isListed: false })
  return command
}

/** Opens the session, runs the body, and closes the session. Known failures become one line without a stack trace. */
export async function withSession(
  io: Io,
  flags: RecordsFlags & Record<string, unknown>,
  body: (session: Session) => Promise<void>,
): Promise<void> {
  const given = flags.owner === undefined ? flags : { ...flags, recordsOwner: flags.owner }
  const { config } = await readConfig(io, given)
  const records = recordsInUse(config)
  const cluster = isClusterNeeded(records, flags) ? await openCluster(io, flags) : undefined
  const client = cluster === undefined ? {} : { client: cluster.client }
  const namespace = config.namespace || DEFAULT_NAMESPACE
  const stores = storesOf(io, records.stateFolder, cluster, namespace)
  const killSwitch = createKillSwitch(...(config.pause ? ['configuration'] : []))
  const watching = cluster === undefined ? undefined : applySwitches(cluster, namespace, killSwitch)
  let engine: Engine | undefined
  try {
    await watching?.ready(io.signal)
    // The zones of the manager's own DNS server are where it stores them.
    const hasOwnZones = config.dns.listen.length > 0 && cluster !== undefined
    const providers = hasOwnZones
      ? [storedZonesProvider({ config: config.dns, client: cluster.client, namespace })]
      : []
    const opened = await openEngine({
      config: records,
      // A command is run by a person; the mode applies to the manager only.
      mode: 'enforce',
      env: io.env,
      killSwitch,
      massLimits: massLimits(config.safety),
      providers,
      ...stores,
      ...client,
    })
    engine = opened.engine
    await body({
      ...opened,
      ...stores,
      config: records,
      hasProviders: records.providers.length + providers.length > 0,
      manager: config,
      namespace,
      cluster,
      mode: config.mode,
      rules: tenantRules(records, processGrants(config.grants, namespace), namespace),
    })
  } catch (error) {
    if (error instanceof RecordsError) {
      if (error.code !== 'CONFIG_INVALID') throw new CommandError(error.message)
      const advice = '; name the configuration of the manager with --config FILE or $SEAMARK_CONFIG'
      throw new CommandError(`${error.message}${configPath(io, flags) === undefined ? advice : ''}`, EXIT.usage)
    }
    if (error instanceof ProviderError) throw new CommandError(`${error.code}: ${error.message}`)
    throw error
  } finally {
    await engine?.close()
    await watching?.stop()
    await cluster?.close()
  }
}

/** Everything that is held: records where they have their state, objects in the cluster. */
function heldStoreOf({ store }: RecordsStores, cluster: Cluster | undefined, namespace: string): HeldStore {
  const objects = cluster === undefined ? undefined : openObjectStore(cluster.client, namespace)
  return joinStores(store, objects, isObjectScope)
}

export interface OpenedStores extends RecordsStores {
  readonly held: HeldStore
  readonly cluster: Cluster | undefined
  readonly namespace: string
}

/** Only the guard state and the applied plans, for commands that need no provider. */
export async function withStores(
  io: Io,
  flags: RecordsFlags & Record<string, unknown>,
  body: (stores: OpenedStores) => Promise<void>,
  { needsCluster = false }: { needsCluster?: boolean } = {},
): Promise<void> {
  const { config } = await readConfig(io, flags.owner === undefined ? flags : { ...flags, recordsOwner: flags.owner })
  const records = recordsInUse(config)
  const cluster = needsCluster || isClusterNeeded(records, flags) ? await openCluster(io, flags) : undefined
  const namespace = config.namespace || DEFAULT_NAMESPACE
  try {
    const stores = storesOf(io, records.stateFolder, cluster, namespace)
    await body({ ...stores, held: heldStoreOf(stores, cluster, namespace), cluster, namespace })
  } catch (error) {
    if (error instanceof RecordsError) throw new CommandError(error.message)
    throw error
  } finally {
    await cluster?.close()
  }
}

/** The kill switch of the cluster applies to commands too, also when it is turned on during a long one. */
export function applySwitches(
  cluster: Cluster,
  namespace: string,
  killSwitch: KillSwitchControl,
): { ready(signal: AbortSignal): Promise<void>; stop(): Promise<void> } {
  const stopping = new AbortController()
  const switches = watchSwitches(cluster, namespace, killSwitch)
  const running = cluster.informers.start(stopping.signal)
  return {
    async ready(signal) {
      // A watch retries without end; a plain read reports an error at once.
      await cluster.client.find(ConfigMap, `${namespace}/${CONFIGURATION_OBJECT}`, { signal })
      await switches.ready(signal)
    },
    async stop() {
      stopping.abort()
      await running
    },
  }
}

function isClusterNeeded(records: Session['config'], flags: KubeFlags): boolean {
  if (flags.kubeconfig !== undefined || flags.context !== undefined || records.cluster === '') return true
  return records.providers.some((provider) => provider.type === 'dnsendpoint')
}

function storesOf(io: Io, folder: string, cluster: Cluster | undefined, namespace: string): RecordsStores {
  if (cluster !== undefined) return openRecordsStores(cluster.client, namespace, folder)
  if (folder !== '') return openStoreFolder(folder)
  const home = io.env['XDG_STATE_HOME'] ?? join(io.env['HOME'] ?? homedir(), '.local', 'state')
  return openStoreFolder(join(home, 'seamark'))
}

/** Names as given on the command line. */
export function readNames(names: readonly string[]): ReadonlySet<string> | undefined {
  if (names.length === 0) return undefined
  return new Set(
    names.map((text) => {
      const name = canonicalName(text)
      if (isInvalid(name)) throw new CommandError(`'${text}': ${name.invalid}`, EXIT.usage)
      return name
    }),
  )
}

/** Every target with its whole zone; throws when one cannot be read, because a hand-over needs complete zones. */
export async function eachTarget<T>(
  { engine }: Session,
  signal: AbortSignal,
  zone: string | undefined,
  visit: (target: Target) => Promise<T>,
): Promise<T[]> {
  const { targets, unread } = await engine.targets(signal)
  const problem = unread[0]
  if (problem !== undefined) throw new CommandError(`${problem.provider}: ${problem.code}: ${problem.why}`)
  const names = zone === undefined ? undefined : readNames([zone])
  const chosen = targets.filter((target) => names?.has(target.zone.name) ?? true)
  if (chosen.length === 0)
    throw new CommandError(
      zone === undefined
        ? 'no provider serves a zone; check records.providers'
        : `no provider serves ${zone}; seamark provider list shows the zones`,
    )
  const results: T[] = []
  for (const target of chosen) results.push(await visit(target))
  return results
}

export const PLAN_FORMS = ['text', 'wide', 'json', 'yaml', 'md'] as const
export type PlanForm = (typeof PLAN_FORMS)[number]

export function printPlans(plans: readonly Plan[], form: PlanForm): string {
  switch (form) {
    case 'text':
      return printPlanText(plans)
    case 'wide':
      return printPlansWide(plans)
    case 'json':
      return printPlanJson(plans)
    case 'yaml':
      return printValue('yaml', JSON.parse(printPlanJson(plans)))
    case 'md':
      return printPlanMarkdown(plans)
  }
}

/** One line per change, with the source and the content of both lines of `text`. */
function printPlansWide(plans: readonly Plan[]): string {
  const rows = plans.flatMap(({ provider, zone, changes, refused }) => [
    ...changes.map((change) => [
      zone,
      provider,
      change.op,
      ...cellsOf(change),
      change.reason,
      change.risk,
      change.source,
    ]),
    ...refused.map((refusal) => [
      zone,
      provider,
      'held',
      ...cellsOf(refusal),
      refusal.code,
      refusal.risk,
      refusal.source,
    ]),
  ])
  const heading = ['ZONE', 'PROVIDER', 'CHANGE', 'NAME', 'TYPE', 'FROM', 'TO', 'TTL', 'REASON', 'RISK', 'SOURCE']
  return rows.length === 0
    ? 'no changes\n'
    : printTable(
        heading,
        rows.map((row) => row.map((text) => printable(text))),
      )
}

function cellsOf({ name, type, from, to }: Pick<Plan['changes'][number], 'name' | 'type' | 'from' | 'to'>): string[] {
  const values = (set: typeof from): string => set?.values.join(',') ?? '-'
  return [name, type, values(from), values(to), String(to?.ttl ?? from?.ttl ?? '')]
}

/** Applies plans one after the other, prints the result of each change, and sets the exit code. */
export async function applyPlans(
  io: Io,
  engine: Engine,
  plans: readonly Plan[],
  options: { requiresBase?: boolean } = {},
): Promise<void> {
  let refused = 0
  for (const plan of plans) {
    const outcome = await engine.apply(plan, io.signal, options).catch((error: unknown) => {
      throw new CommandError(messageOf(error))
    })
    for (const { change, result, code, why } of outcome.results) {
      if (result === 'refused') refused++
      const reason = code === undefined ? '' : ` ${code}: ${why ?? ''}`
      // Names come from the plan file: untrusted text.
      io.stdout.write(`${printable(`${result.padEnd(8)} ${change.op} ${change.name} ${change.type}${reason}`)}\n`)
    }
  }
  const total = plans.reduce((sum, plan) => sum + plan.changes.length, 0)
  io.stdout.write(`${total - refused} of ${total} changes are in place\n`)
  if (refused > 0) io.exit(EXIT.refused)
}

/**
 * Applies plans that no guard evaluated (hand-over, undo), and counts afterwards how much is owned: limits are shares of
 * that number, and these plans change it by markers that no guard counted.
 */
export async function applyMarkerPlans(io: Io, { engine }: Session, plans: readonly Plan[]): Promise<void> {
  try {
    await applyPlans(io, engine, plans)
  } finally {
    const { targets } = await engine.targets(io.signal)
    for (const target of targets) {
      const isTouched = plans.some(
        ({ provider, zone, changes }) => provider === target.label && zone === target.zone.name && changes.length > 0,
      )
      if (isTouched) await engine.recount(target, io.signal)
    }
  }
}
