/**
 * The leases of `seamark dnslb`: in each cluster that it works in, the original's ConfigMap lease and a Lease of the same
 * name. It works only while it holds all of them; losing one ends the process.
 */
import { hostname } from 'node:os'
import { type Client, type Clock, createElection, type Election, type Logger } from '@seamark/kube'
import { configMapLeaseClient } from './config-map-lease.ts'

/** Of the original. */
export const LEASE_NAMESPACE = 'garden'
const LEASE_NAME = 'dnslb-controller-manager-lease'
export const CONFIG_MAP_LEASE_PATH = `/api/v1/namespaces/${LEASE_NAMESPACE}/configmaps/${LEASE_NAME}`

export interface Leases {
  readonly isLeading: boolean
  /** Resolves when all are held, or when the signal aborts. */
  acquire(signal: AbortSignal): Promise<void>
  /** Rejects when one is lost; resolves when the signal aborts. */
  hold(signal: AbortSignal): Promise<void>
  release(): Promise<void>
}

/** Without clients there is nothing to hold, and the process always leads. */
export function createLeases(
  clients: readonly Client[],
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Leases {
  const identity = `${hostname()}/${process.pid}`
  const options = { lease: LEASE_NAME, namespace: LEASE_NAMESPACE }
  const elections: Election[] = clients.flatMap((client) => [
    createElection(options, { client: configMapLeaseClient(client), log, identity, clock }),
    createElection(options, { client, log, identity, clock }),
  ])
  const stop = new AbortController()
  /** A lease that was acquired is renewed while the next one is waited for. */
  const holding: Promise<void>[] = []
  return {
    get isLeading() {
      return elections.every((election) => election.isLeading)
    },
    async acquire(signal) {
      signal.addEventListener('abort', () => stop.abort(), { once: true })
      for (const election of elections) {
        await election.acquire(signal)
        if (signal.aborted) return
        const held = election.hold(stop.signal)
        held.catch(() => undefined)
        holding.push(held)
      }
    },
    async hold(signal) {
      signal.addEventListener('abort', () => stop.abort(), { once: true })
      if (signal.aborted) stop.abort()
      await Promise.all(holding)
    },
    async release() {
      stop.abort()
      await Promise.allSettled(holding)
      for (const election of elections.toReversed()) await election.release()
    },
  }
}
