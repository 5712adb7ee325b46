/**
 * One cluster: its client, its caches and its connections, closed together. `connect` opens nothing yet: the first
 * request or watch does.
 */
import { pino, type Logger } from 'pino'
import { createClient, type Client, type RequestObserver } from './client.ts'
import { systemClock, type Clock } from '../clock.ts'
import type { ClusterConfig } from '../config/cluster-config.ts'
import { replaceableCredentials } from '../config/credentials.ts'
import { messageOf } from '../errors.ts'
import type { Informers } from '../cache/informer.ts'
import { createInformers } from '../cache/informers.ts'
import { kindName } from '../object/object.ts'
import { createRest, type WriteGuard } from './rest.ts'
import type { Transport, TransportStats } from '../transport/transport.ts'

export interface Cluster {
  readonly name: string
  readonly client: Client
  readonly informers: Informers
  readonly log: Logger
  /** Closes every connection; resolves when they are gone. Stop what `informers.start` runs first. */
  close(): Promise<void>
  /**
   * `check` is asked before every sending of a write, also before one that a `Retry-After` repeats; when it throws,
   * nothing is sent and the call rejects with what was thrown. One check at a time: the last one counts.
   */
  guardWrites(check: WriteGuard): void
  /**
   * Goes on with the credentials of `config`, without interrupting watches. False when `config` names another server or
   * proxy, so that a new connection is needed; nothing has changed then.
   */
  reconfigure(config: ClusterConfig): boolean
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
  /** A complete, consistent sync of every cache is repeated after this long. @default 1 h */
  relistMs?: number
  /** Objects per page of a list. @default 500 */
  pageSize?: number
  /** Freeze cached objects. @default true under NODE_ENV=test */
  freeze?: boolean
  /** How requests travel: a server in this process needs no network. @default HTTP/2 or HTTP/1.1, as the server speaks */
  transport?: Transport
}

export function connect(config: ClusterConfig, options: ConnectOptions = {}): Cluster {
  const { name = config.name, clock = systemClock, observer, fieldManager = 'seamark' } = options
  const log = options.log ?? pino({ level: 'silent' })
  const credentials = replaceableCredentials(config.credentials)
  const rest = createRest(
    { ...config, credentials },
    {
      clock,
      ...(options.random === undefined ? {} : { random: options.random }),
      ...(observer === undefined ? {} : { observer }),
      ...(options.userAgent === undefined ? {} : { userAgent: options.userAgent }),
      ...(options.transport === undefined ? {} : { transport: options.transport }),
    },
  )
  const informers = createInformers(rest, {
    clock,
    manager: fieldManager,
    ...(options.random === undefined ? {} : { random: options.random }),
    ...(options.relistMs === undefined ? {} : { relistMs: options.relistMs }),
    ...(options.pageSize === undefined ? {} : { pageSize: options.pageSize }),
    ...(options.freeze === undefined ? {} : { freeze: options.freeze }),
    onFailure(kind, failure, error) {
      observer?.restart?.({ kind: kindName(kind), reason: failure })
      log.warn({ kind: kindName(kind), failure, error: messageOf(error) }, 'watch restarts')
    },
    onUserError: (what, error) => log.error({ what, error: messageOf(error) }, 'handler failed'),
  })
  const client = createClient(rest, { cache: informers, fieldManager })
  return {
    name,
    client,
    informers,
    log,
    close: async () => rest.close(),
    guardWrites: rest.guardWrites,
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
