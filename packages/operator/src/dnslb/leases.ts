/**
 * The leases of `seamark dnslb` in one cluster that it works in: the original's ConfigMap lease and a Lease of the same name. What
 * works in that cluster runs only while both are held; losing one ends the process.
 *
 * Flow: the ConfigMap lease is acquired first, and the Lease is observed meanwhile, so a standby waits for one lease duration and not
 * for two. The fixed order excludes that two processes hold one each.
 * Bounds: with the times below a standby holds both at most 1.7 s and two requests after the duration of the leases, which
 * begins with the last renewal of their holder.
 */
import { hostname } from 'node:os'
import { type Client, type Clock, createElection, type Logger, untilAborted } from '@seamark/kube'
import { configMapLeaseClient } from './config-map-lease.ts'

/** Of the original. */
export const LEASE_NAMESPACE = 'garden'
export const LEASE_NAME = 'dnslb-controller-manager-lease'
export const CONFIG_MAP_LEASE_PATH = `/api/v1/namespaces/${LEASE_NAMESPACE}/configmaps/${LEASE_NAME}`

/** Duration, renew deadline and retry period are the original's. */
const TIMES = { durationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000, candidatePeriodMs: 750 }

export interface Leases {
  readonly isLeading: boolean
  /** Resolves when both are held, or when the signal aborts; rejects when the first is lost before the second is held. */
  acquire(signal: AbortSignal): Promise<void>
  /** Rejects when one is lost; resolves when the signal aborts. */
  hold(signal: AbortSignal): Promise<void>
  release(): Promise<void>
}

export interface LeasesDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly onChange?: (isLeading: boolean) => void
  /** In [0, 1). @default Math.random */
  readonly random?: () => number
  /** @default host name and process id, as the original */
  readonly identity?: string
}

/** A process without leases always leads. */
export const NO_LEASES: Leases = {
  isLeading: true,
  acquire: async () => undefined,
  hold: async (signal) => untilAborted(signal),
  release: async () => undefined,
}

export function createLeases(client: Client, { onChange, log, ...deps }: LeasesDeps): Leases {
  const identity = deps.identity ?? `${hostname()}/${process.pid}`
  const options = { lease: LEASE_NAME, namespace: LEASE_NAMESPACE, ...TIMES }
  const elect = (kind: 'ConfigMap' | 'Lease') =>
    createElection(options, {
      client: kind === 'ConfigMap' ? configMapLeaseClient(client) : client,
      log: log.child({ kind }),
      ...deps,
      identity,
      onWait: (holder) =>
        log.info(
          { lease: `${kind} ${LEASE_NAMESPACE}/${LEASE_NAME}`, holder },
          `waiting for a lease that ${holder} holds; its controllers start when the lease is free`,
        ),
    })
  const [map, lease] = [elect('ConfigMap'), elect('Lease')]
  const stop = new AbortController()
  const holding: Promise<void>[] = []
  let wasLeading = false
  const isLeading = () => map.isLeading && lease.isLeading
  const report = (): void => {
    if (isLeading() === wasLeading) return
    wasLeading = !wasLeading
    onChange?.(wasLeading)
  }
  /** Renewed from when it is acquired. */
  const keep = (election: typeof lease): Promise<void> => {
    const held = election.hold(stop.signal)
    held.catch(() => undefined).finally(report)
    holding.push(held)
    return held
  }
  return {
    get isLeading() {
      return isLeading()
    },
    async acquire(signal) {
      if (signal.aborted) return stop.abort()
      signal.addEventListener('abort', () => stop.abort(), { once: true })
      const first = new AbortController()
      const following = lease.follow(AbortSignal.any([stop.signal, first.signal]))
      await map.acquire(stop.signal)
      first.abort()
      await following
      if (stop.signal.aborted) return
      const lost = keep(map)
      await Promise.race([lease.acquire(stop.signal), lost])
      if (stop.signal.aborted) return
      void keep(lease)
      report()
    },
    async hold(signal) {
      signal.addEventListener('abort', () => stop.abort(), { once: true })
      if (signal.aborted) stop.abort()
      await Promise.all(holding)
    },
    async release() {
      stop.abort()
      await Promise.allSettled(holding)
      for (const election of [lease, map]) await election.release()
      report()
    },
  }
}
