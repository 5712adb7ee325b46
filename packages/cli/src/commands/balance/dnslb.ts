/**
 * `seamark dnslb`: a drop-in for dnslb-controller-manager (docs/balance.md, "Moving from dnslb-controller-manager"). Endpoints
 * from a source cluster, load balancers in a target cluster, records at DNS providers, with the original's ownership records.
 */
import {
  ApiError,
  configFromText,
  connect,
  LeadershipLost,
  type Logger,
  messageOf,
  poll,
  systemClock,
  TransportError,
} from '@seamark/kube'
import {
  createDnsMetrics,
  createMetricsRegistry,
  createProviderTypes,
  DnsConfig,
  findZoneFolder,
  type DnsService,
  Heartbeat,
  loadPlugins,
  openDnsService,
  runDnslb,
  runStandalone,
} from '@seamark/operator'
import { Command } from 'commander'
import { readFile } from 'node:fs/promises'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { openLog } from '../../command-log.ts'
import {
  addDnslbFlags,
  checkFlags,
  type DnslbFlags,
  readControllers,
  readList,
  readListen,
  readLogLevel,
  readNumber,
  readProviders,
  readRanges,
} from './dnslb-flags.ts'
import { startDnslbServer } from './dnslb-server.ts'
import { openCluster } from '../../flags/kube-flags.ts'

/** Field manager of everything that dnslb writes into clusters. */
const FIELD_MANAGER = 'seamark-dnslb'
/** Between two attempts to create the zones of our own DNS server. */
const ZONE_RETRY_MS = 5_000
/** Between two attempts to work again, while DNS is answered. */
const CONTROL_RETRY_MS = 1_000
/** Besides SIGINT and SIGTERM, which stop every command. */
const STOP_SIGNALS = ['SIGHUP', 'SIGQUIT'] as const

export function build(io: Io): Command {
  const command = new Command().description(
    'health-checked DNS load balancing; takes the flags of dnslb-controller-manager',
  )
  addDnslbFlags(command)
  return command.action(async (flags: DnslbFlags) => {
    checkFlags(flags)
    const log = openLog(io, readLogLevel(flags.logLevel))
    const limits = { min: 1, max: 86_400 }
    const settings = {
      controllers: readControllers(flags.controllers),
      intervalSeconds: readNumber('interval', flags.interval, limits),
      ttlSeconds: readNumber('ttl', flags.ttl, limits),
      durationSeconds: readNumber('duration', flags.duration, { min: 0, max: 2 ** 31 }),
      listen: readListen(flags.port),
    }
    const types = createProviderTypes()
    if (flags.pluginDir !== '')
      await loadPlugins(flags.pluginDir, types, log).catch((error: unknown) => {
        throw new CommandError(messageOf(error), EXIT.error)
      })
    const stop = new AbortController()
    const signal = AbortSignal.any([io.signal, stop.signal])
    const { durationSeconds } = settings
    const cancelStop = durationSeconds > 0 ? systemClock.after(durationSeconds * 1_000, () => stop.abort()) : undefined
    const onSignal = (): void => stop.abort()
    for (const name of STOP_SIGNALS) process.once(name, onSignal)
    const dns = await openDns(flags, io, log)
    const leading = dns === undefined ? undefined : leadZones(dns, signal)
    try {
      await run({ io, flags, log, types, dns, signal, ...settings })
    } finally {
      cancelStop?.()
      for (const name of STOP_SIGNALS) process.removeListener(name, onSignal)
      stop.abort()
      await leading
      await dns?.close()
    }
  })
}

/** Until every zone is read or created; a zone that cannot be read yet does not stop the others. */
async function leadZones(dns: DnsService, signal: AbortSignal): Promise<void> {
  const lead = async () => ((await dns.lead(signal)) ? true : undefined)
  await poll(lead, { clock: systemClock, intervalMs: ZONE_RETRY_MS, signal })
}

interface Run {
  readonly io: Io
  readonly flags: DnslbFlags
  readonly log: Logger
  readonly types: ReturnType<typeof createProviderTypes>
  readonly dns: DnsService | undefined
  readonly signal: AbortSignal
  readonly controllers: ReturnType<typeof readControllers>
  readonly intervalSeconds: number
  readonly ttlSeconds: number
  readonly listen: string | undefined
}

async function run(settings: Run): Promise<void> {
  const { io, flags, log, types, dns, signal, controllers, intervalSeconds, ttlSeconds } = settings
  const isStandalone = flags.watches !== ''
  const providers = readProviders(flags.providers, types.names, { isStandalone })
  for (const type of providers.ignored) log.error({ type }, `ignoring invalid provider type '${type}'`)
  const healthTimeoutMs = (2 * intervalSeconds + 120) * 1_000
  const common = {
    identity: flags.identity,
    defaults: {
      ttlSeconds,
      onAllUnhealthy: flags.onAllUnhealthy,
      intervalMs: intervalSeconds * 1_000,
      ...(!flags.redirects && { maxRedirects: 0 }),
    },
    providers,
    types,
    env: io.env,
    isOnce: flags.once,
    isDryRun: flags.dryRun,
    guard: { allowLoopback: flags.allowLoopbackTargets, deny: readRanges(flags.denyAddresses) },
    resolver: flags.resolver,
    clock: systemClock,
    log,
    ...(dns !== undefined && {
      extraProviders: [dns.provider],
      onSettled: () => {
        for (const { zone } of dns.zones()) dns.complete(zone)
      },
    }),
  }
  if (isStandalone) {
    const registry = createMetricsRegistry()
    if (dns !== undefined) createDnsMetrics(registry, dns)
    const heartbeat = new Heartbeat(systemClock, healthTimeoutMs)
    await using _server = await serve(settings, () => ({ registry, heartbeat }))
    await runStandalone({ ...common, path: flags.watches, registry, heartbeat }, signal).catch(fail)
    return
  }
  let server: AsyncDisposable | undefined
  let reported: Reported
  const work = async (): Promise<void> => {
    const onStart: NonNullable<Parameters<typeof runDnslb>[0]['onStart']> = async ({ metrics, heartbeat }) => {
      if (dns !== undefined) createDnsMetrics(metrics.registry, dns)
      reported = { registry: metrics.registry, heartbeat }
      server ??= await serve(settings, () => reported)
    }
    const options = {
      controllers,
      fieldManager: FIELD_MANAGER,
      hasLeases: !flags.omitLease,
      providerNamespaces: readList(flags.providerNamespaces),
      secretNamespaces: readList(flags.secretNamespaces),
      healthTimeoutMs,
      onStart,
    }
    const clusters = await openClusters(io, flags, log)
    try {
      await runDnslb({ ...common, ...options, ...clusters }, signal)
    } finally {
      for (const cluster of [clusters.source?.cluster, clusters.source?.target, clusters.target]) await cluster?.close()
    }
  }
  try {
    await (dns === undefined ? work() : workAgain(work, log, signal)).catch(fail)
  } finally {
    await server?.[Symbol.asyncDispose]()
  }
}

/** A process that answers DNS goes on answering while the API server is away, and works again when it has its leases. */
async function workAgain(work: () => Promise<void>, log: Logger, signal: AbortSignal): Promise<void> {
  const attempt = async (): Promise<true | undefined> => {
    try {
      await work()
      return true
    } catch (error) {
      if (!isOutage(error)) throw error
      log.warn({ error: messageOf(error) }, 'control has ended; DNS is answered, and control starts again')
      return undefined
    }
  }
  await poll(attempt, { clock: systemClock, intervalMs: CONTROL_RETRY_MS, signal })
}

function isOutage(error: unknown): boolean {
  return (
    error instanceof LeadershipLost ||
    error instanceof TransportError ||
    (error instanceof ApiError && error.httpStatus >= 500)
  )
}

function fail(error: unknown): never {
  throw new CommandError(messageOf(error), EXIT.error, { cause: error })
}

interface Reported {
  readonly registry: { metrics(): Promise<string> }
  readonly heartbeat: Heartbeat
}

async function serve({ io, listen }: Run, reported: () => Reported): Promise<AsyncDisposable> {
  if (listen === undefined) return { [Symbol.asyncDispose]: async () => undefined }
  const server = await startDnslbServer({
    listen,
    health: () => reported().heartbeat.read(),
    metrics: async () => reported().registry.metrics(),
  })
  io.stdout.write(`ready ${server.address}\n`)
  return { [Symbol.asyncDispose]: async () => server.close() }
}

async function openClusters(
  io: Io,
  flags: DnslbFlags,
  log: Logger,
): Promise<Pick<Parameters<typeof runDnslb>[0], 'target' | 'source'>> {
  const own = flags.kubeconfig === undefined ? {} : { kubeconfig: flags.kubeconfig }
  const options = { fieldManager: FIELD_MANAGER, log }
  if (flags.targetkube === '') return { target: await openCluster(io, own, options) }
  const text = await readFile(flags.targetkube, 'utf8').catch((error: unknown) => fail(error))
  const source = await openCluster(io, own, { ...options, name: flags.cluster })
  const connectTarget = () => connect(configFromText(text), { ...options, name: 'target' })
  return { target: connectTarget(), source: { cluster: source, id: flags.cluster, target: connectTarget() } }
}

/**
 * The DNS server of this process. A zone that is stored is answered at once; a new one is refused until every load balancer
 * was decided.
 */
async function openDns(
  { dnsListen, dnsZones, dnsDataDir }: DnslbFlags,
  io: Io,
  log: Logger,
): Promise<DnsService | undefined> {
  if (dnsListen === undefined || dnsZones === undefined) return undefined
  const found = await findZoneFolder({ env: io.env, configured: dnsDataDir, setting: '--dns-data-dir' })
  if (found.folder === undefined)
    log.warn(
      { why: found.why },
      'zones are in memory only: after a restart their names are REFUSED until every load balancer was decided, for which the API servers are needed; set --dns-data-dir to a folder that outlives the process, in a Pod that of a mounted volume',
    )
  const dataDir = found.folder ?? ''
  const config = DnsConfig.safeParse({ listen: [dnsListen], zones: dnsZones.split(','), dataDir })
  if (!config.success) {
    const [issue] = config.error.issues
    throw new CommandError(
      `--dns-${issue?.path[0] === 'zones' ? 'zones' : 'listen'}: ${issue?.message ?? ''}`,
      EXIT.error,
    )
  }
  return openDnsService({
    config: config.data,
    env: io.env,
    isLeading: () => true,
    waitsForRecords: true,
    log,
    clock: systemClock,
  }).catch(fail)
}
