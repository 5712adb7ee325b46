/**
 * The page as a part of the manager: it listens before anything is read, on every replica, and shows what this process reads.
 *
 * Flow: listen (503 until the caches have synced) → watch → a pass over what changed, at once while somebody looks and once a
 * second else → differences to the readers, at most 5 a second.
 * Guarantees: it writes nothing. An address that is taken does not end the manager: it is tried again.
 */
import { readFile } from 'node:fs/promises'
import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { serverText } from '@seamark/dns'
import { Event, messageOf, parseListen, poll, sleep, startListener, systemClock } from '@seamark/kube'
import type { Listener, Logger, RunnableContext } from '@seamark/kube'
import {
  CachedHosts,
  type DashboardConfig,
  findServersBy,
  type OpenPage,
  ownServers,
  type PageSource,
  PlanReader,
} from '@seamark/operator'
import type { DataAge, ManagerView, TrafficView } from '../api/state.ts'
import { EventLog, trimEvent } from '../view/event-log.ts'
import { HealthHistory } from '../view/health-history.ts'
import { Overview } from '../view/overview.ts'
import { OwnZones } from '../view/own-zones.ts'
import { type AnswerCounts, TrafficRates } from '../view/traffic.ts'
import { reachOf } from './address.ts'
import { AskedServers } from './asked-servers.ts'
import { type Assets, findPageFolder, readAssets } from './assets.ts'
import { dataAge } from './data-age.ts'
import { pageHandler } from './handler.ts'
import { followHeld } from './held-source.ts'
import { Model } from './model.ts'
import { Pace } from './pace.ts'
import { Pages, type PagesDeps } from './pages.ts'
import { mayThisProcess, Sessions } from './rights.ts'

export interface DashboardOptions {
  readonly config: DashboardConfig
  /** Of the program. */
  readonly version: string
  readonly log: Logger
  /** Names that the manager shows as its capabilities. */
  readonly capabilities: readonly string[]
  /** Plans, as the manager makes them. */
  readonly plans: (source: PageSource) => PlanReader
  readonly route?: PagesDeps['route']
  /** Servers of names that are not in our own zones: `fleet.dnsServers`, `balance.resolver`. */
  readonly dnsServers: readonly string[]
  readonly resolver: string
  /** Of the gateways in this process, by cluster; that of the manager has the empty name. */
  readonly traffic?: () => ReadonlyMap<string, AnswerCounts | undefined>
  /** @default those of the build */
  readonly assets?: Assets
}

const TICK_MS = 25
/** From one pass to the next. */
const PASS_MS = 75
/** From the first change to the pass: a verdict is several objects, and one difference. What is answered is shown at once. */
const SETTLE_MS = 60
/** A verdict is at once on the page, and so is the answer that follows it; never more than 5 differences in a second. */
const DIFFERENCES = { burst: 2, periodMs: 260 } as const
/** While nobody looks: only the history is kept. */
const UNSEEN_PASS_MS = 1_000
/** Of judging hosts at a stretch. */
const SLICE_MS = 10
const RETRY_LISTEN_MS = 5_000
const CLOSE_MS = 1_000

export function dashboardPart(options: DashboardOptions): (source: PageSource) => Promise<OpenPage> {
  return async (source) => openPage(options, source)
}

async function openPage(options: DashboardOptions, source: PageSource): Promise<OpenPage> {
  const { config, log } = options
  const { host = '' } = parseListen(config.address)
  const reach = reachOf(host, config.hosts)
  const closing = new AbortController()
  const tls = config.certFile === '' ? undefined : await readPair(config)
  const shown: { current: { readonly model: Model; readonly pages: Pages } | undefined } = { current: undefined }
  const handler = pageHandler({
    reach,
    needsToken: config.requireToken || !reach.isLoopback,
    scheme: tls === undefined ? 'http' : 'https',
    assets: options.assets ?? (await findAssets(log)),
    model: () => shown.current,
    sessions: new Sessions(source.manager.client),
    signal: closing.signal,
    onError: (error) => log.warn({ error: messageOf(error) }, 'a request of the page failed'),
  })
  const open = async (): Promise<Listener> =>
    startListener({ listen: config.address, handler, ...(tls !== undefined && { tls }) })
  let listener = await open().catch((error: unknown) => {
    log.error(
      { address: config.address, error: messageOf(error) },
      'the page is not served; the address is tried again',
    )
    return undefined
  })
  source.manager.add('page', async (context) => {
    const running = [
      show(options, source, shown, context),
      listener === undefined
        ? listenLater(open, context.signal).then((late) => (listener = late))
        : Promise.resolve(undefined),
      tls === undefined
        ? Promise.resolve()
        : followPair(config, tls.cert, (pair) => listener?.secure(pair), log, context.signal),
    ]
    await Promise.all(running)
  })
  return {
    url: listener === undefined ? undefined : `${tls === undefined ? 'http' : 'https'}://${listener.address}/`,
    async close() {
      closing.abort()
      await listener?.close(CLOSE_MS)
    },
  }
}

async function findAssets(log: Logger): Promise<Assets | undefined> {
  const folder = findPageFolder()
  if (folder === undefined) {
    log.warn('the page is not built, only its API is served; run npm run build')
    return undefined
  }
  return readAssets(folder)
}

async function listenLater(open: () => Promise<Listener>, signal: AbortSignal): Promise<Listener | undefined> {
  while (!signal.aborted) {
    await sleep(systemClock, RETRY_LISTEN_MS, signal)
    if (signal.aborted) return undefined
    try {
      return await open()
    } catch {
      // Still taken; it was reported.
    }
  }
  return undefined
}

/** Watches and serves until the manager stops. */
async function show(
  options: DashboardOptions,
  source: PageSource,
  shown: { current: { readonly model: Model; readonly pages: Pages } | undefined },
  { signal }: RunnableContext,
): Promise<void> {
  const { manager, dns, onHeldChange } = source
  const { informers } = manager.cluster
  const current = source.options()
  const hosts = new CachedHosts({
    informers,
    hasFleet: current.fleet !== undefined,
    hasBalance: current.balance !== undefined,
    publish:
      current.publish === undefined
        ? undefined
        : {
            ...current.publish,
            grants: current.grants ?? [],
            parts: { fleet: current.fleet, balance: current.balance !== undefined },
          },
    endpointScope: source.endpointScope,
  })
  const log = new EventLog()
  const history = new HealthHistory()
  const age = dataAge(informers)
  const traffic = options.traffic === undefined ? undefined : new TrafficRates(options.traffic)
  const [address] = dns?.addresses ?? []
  const overview = new Overview({
    hosts,
    zones:
      dns === undefined ? undefined : new OwnZones(dns, address === undefined ? 'the DNS server' : serverText(address)),
    log,
    manager: () => managerView(options, source, age(), traffic?.of('')),
    ...(traffic !== undefined && { traffic }),
    hasOnlyOwnZones: dns !== undefined && (current.records?.config.providers.length ?? 0) === 0,
    epoch: randomUUID().slice(0, 8),
    now: () => Date.now(),
  })
  const model = new Model(overview, age)
  const servers = new AskedServers({
    findServers: findServersBy(
      {
        configured: options.dnsServers,
        ownServers: (name) =>
          dns === undefined ? [] : ownServers({ addresses: dns.addresses, zones: () => dns.zones() }, name),
        resolver: options.resolver,
      },
      () => performance.now(),
    ),
    resolvers: options.config.resolvers,
  })
  const pages = new Pages({
    client: manager.client,
    overview,
    history,
    plans: options.plans(source),
    servers,
    ...(options.route !== undefined && { route: options.route }),
  })
  let dirtyAt: number | undefined
  const stops = [hosts.start(() => (dirtyAt ??= performance.now()))]
  if (current.fleet !== undefined || current.balance !== undefined) stops.push(history.start(informers, Date.now))
  const following = [
    followHeld({ source, options: current, onHeldChange, isSeen: () => model.readers > 0 }, overview, signal),
    followEvents(source, log, signal),
  ]
  try {
    // The first replay of what is cached.
    await hosts.synced(signal)
    await prepared(overview, signal)
    model.update()
    shown.current = { model, pages }
    const pace = new Pace(DIFFERENCES.burst, DIFFERENCES.periodMs)
    let passedAt = performance.now()
    await poll(
      async () => {
        const now = performance.now()
        const isSeen = model.readers > 0
        if (now - passedAt < (isSeen ? PASS_MS : UNSEEN_PASS_MS) || !pace.isOpen(now)) return undefined
        const isSettled = dirtyAt !== undefined && now - dirtyAt >= SETTLE_MS
        // What changes by time alone, and in zones, tells nobody.
        if (!isSettled && now - passedAt < UNSEEN_PASS_MS && !overview.isDue()) return undefined
        passedAt = now
        await prepared(overview, signal)
        if (model.update()) pace.note(performance.now())
        // Also what the pass itself touched.
        dirtyAt = undefined
        return undefined
      },
      { clock: systemClock, intervalMs: TICK_MS, signal },
    )
  } finally {
    shown.current = undefined
    for (const stop of stops) stop()
    await Promise.all(following)
    await servers.close()
  }
}

/** Thousands of hosts at once, when a cluster is lost, do not hold up what else the process does. */
async function prepared(overview: Overview, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && overview.prepare(SLICE_MS)) await setImmediate()
}

/** The Events of the API server, where they may be read. */
async function followEvents({ manager }: PageSource, log: EventLog, signal: AbortSignal): Promise<void> {
  const { client } = manager
  const rights = ['list', 'watch'].map(async (verb) =>
    mayThisProcess(client, { verb, group: Event.group, resource: Event.plural }),
  )
  // What this process sees itself is history enough.
  if ((await Promise.all(rights)).includes(false) || signal.aborted) return
  const stop = manager.cluster.informers.informer(Event, { projection: trimEvent }).subscribe((change) => {
    if (change.type !== 'deleted') log.note(change.object)
  })
  signal.addEventListener('abort', stop, { once: true })
}

function managerView(
  { version, capabilities }: DashboardOptions,
  { manager, options, killSwitch }: PageSource,
  data: DataAge,
  traffic: TrafficView | undefined,
): ManagerView {
  const { namespace, mode } = options()
  return {
    version,
    namespace,
    mode,
    pausedBy: killSwitch.by.filter((each) => each !== 'unread'),
    isLeading: manager.isLeading,
    capabilities,
    ...(traffic !== undefined && { traffic }),
    data,
  }
}

async function readPair({ certFile, keyFile }: DashboardConfig): Promise<{ cert: string; key: string }> {
  const [cert, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')])
  return { cert, key }
}

/** As mounted by cert-manager and others: read again when it changes. What cannot be used leaves the one in use. */
async function followPair(
  config: DashboardConfig,
  first: string,
  secure: (pair: { cert: string; key: string }) => void,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  let used = first
  while (!signal.aborted) {
    await sleep(systemClock, 10_000, signal)
    if (signal.aborted) return
    try {
      const pair = await readPair(config)
      if (pair.cert === used) continue
      secure(pair)
      used = pair.cert
      log.info({ certFile: config.certFile }, 'certificate of the page loaded')
    } catch (error) {
      log.warn({ error: messageOf(error) }, 'certificate of the page not read; the one in use stays')
    }
  }
}
