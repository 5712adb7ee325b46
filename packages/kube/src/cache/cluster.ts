/**
 * One cluster: its client, caches and connections, closed together. `connect` does not open a connection: the first
 * request or watch does.
 */
import { pino, type Logger } from 'pino'
import { createClient, type Client, type RequestObserver } from '../client/client.ts'
import { systemClock, type Clock } from '../clock.ts'
import type { ClusterConfig } from '../config/cluster-config.ts'
import { replaceableCredentials } from '../config/credentials.ts'
import { turnBudgetOf } from '../decode/decode-budget.ts'
import { messageOf } from '../errors.ts'
import type { Informers } from './informer.ts'
import { createInformers } from './informers.ts'
import type { MassLimits } from '../mass-limits.ts'
import { type Kind, kindName } from '../object/object.ts'
import { createRest, NO_RESPONSE, type WriteGuard } from '../client/rest.ts'
import { Outage } from '../client/outage.ts'
import type { Transport, TransportStats } from '../transport/transport.ts'

export interface Cluster {
  readonly name: string
  readonly client: Client
  readonly informers: Informers
  readonly log: Logger
  /** Closes every connection; resolves when they are closed. Stop `informers.start` first. */
  close(): Promise<void>
  /**
   * `check` is called before every attempt of a write, including those repeated after `Retry-After`; if it throws,
   * nothing is sent and the call rejects with that error. There is one check: the last one set is used.
   */
  guardWrites(check: WriteGuard): void
  /**
   * Switches to the credentials of `config` without interrupting watches. False, without any change, if `config` names
   * another server or proxy, which needs a new connection.
   */
  reconfigure(config: ClusterConfig): boolean
  /** Adds an observer of requests and watch restarts, in addition to that of `connect`. */
  observe?(observer: RequestObserver): void
  /** Open connections and streams, for metrics. */
  readonly stats?: TransportStats
}

export interface ConnectOptions {
  /** @default the config's name */
  name?: string
  /** @default seamark */
  fieldManager?: string
  userAgent?: string
  log?: Logger
  observer?: RequestObserver
  clock?: Clock
  random?: () => number
  /** Interval of complete, consistent syncs of every cache. @default 1 h */
  relistMs?: number
  /** Removals by one complete sync that a second one has to confirm. @default more than 5 and more than 30 % of a cache */
  removalLimits?: MassLimits
  /** Objects per page of a list. @default 500 */
  pageSize?: number
  /** Freeze cached objects. @default true under NODE_ENV=test */
  freeze?: boolean
  /** Replaces the network, for example for an API server in this process. @default HTTP/2 or HTTP/1.1, as negotiated */
  transport?: Transport
}

/** Requests of a start are answered within it. */
const ABSENT_NOTE_MS = 1_000

export function connect(config: ClusterConfig, options: ConnectOptions = {}): Cluster {
  const { name = config.name, clock = systemClock, fieldManager = 'seamark' } = options
  const observers = options.observer === undefined ? [] : [options.observer]
  const outage = new Outage(clock)
  const observer: RequestObserver = {
    request: (exchange) => {
      if (outage.note(exchange.code === NO_RESPONSE ? undefined : Number(exchange.code))) informers.retry()
      for (const each of observers) each.request(exchange)
    },
    restart: (restart) => {
      for (const each of observers) each.restart?.(restart)
    },
  }
  const log = options.log ?? pino({ level: 'silent' })
  // Of several clusters in one log.
  const own = log.child({ cluster: name })
  const credentials = replaceableCredentials(config.credentials)
  const rest = createRest(
    { ...config, credentials },
    {
      clock,
      ...(options.random !== undefined && { random: options.random }),
      observer,
      ...(options.userAgent !== undefined && { userAgent: options.userAgent }),
      ...(options.transport !== undefined && { transport: options.transport }),
    },
  )
  const absent = new Set<string>()
  let cancelNote: (() => void) | undefined
  /** Many kinds are optional, and all are read at the start: they are one line. */
  function noteAbsent(kind: Kind): void {
    absent.add(kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`)
    cancelNote ??= clock.after(ABSENT_NOTE_MS, () => {
      own.info({ kinds: [...absent].sort() }, 'kinds are not installed; each is watched once its CRD is')
      absent.clear()
      cancelNote = undefined
    })
  }
  const informers = createInformers(rest, {
    clock,
    budget: turnBudgetOf(clock),
    manager: fieldManager,
    ...(options.random !== undefined && { random: options.random }),
    ...(options.relistMs !== undefined && { relistMs: options.relistMs }),
    ...(options.removalLimits !== undefined && { removalLimits: options.removalLimits }),
    ...(options.pageSize !== undefined && { pageSize: options.pageSize }),
    ...(options.freeze !== undefined && { freeze: options.freeze }),
    onFailure(kind, failure, error) {
      observer.restart?.({ kind: kindName(kind), reason: failure })
      if (failure === 'absent') return noteAbsent(kind)
      own.warn({ kind: kindName(kind), failure, error: messageOf(error) }, 'watch restarts')
    },
    onUserError: (what, error) => own.error({ what, error: messageOf(error) }, 'handler failed'),
  })
  const client = createClient(rest, { cache: informers, fieldManager })
  return {
    name,
    client,
    informers,
    log,
    close: async () => {
      cancelNote?.()
      await rest.close()
    },
    guardWrites: rest.guardWrites,
    observe: (added) => void observers.push(added),
    reconfigure(next) {
      if (next.server !== config.server || next.proxyUrl !== config.proxyUrl) return false
      credentials.replace(next.credentials)
      return true
    },
    get stats() {
      return rest.transport.stats
    },
  }
}
