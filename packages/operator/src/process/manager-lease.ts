/**
 * Whether a manager runs, as its Lease shows: for commands, which read what it stored.
 *
 * Guarantee: a Lease whose times cannot be compared with the clock of this machine is `unknown`, neither held nor expired.
 */
import { type Client, Forbidden, Lease, NotFound } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'

/** ADDRESS:PORT of the DNS server of the holder, separated by commas. */
export const DNS_SERVERS_ANNOTATION = 'seamark.io/dns-servers'

export interface ManagerLease {
  /** `seamark/contour-plus-leader` */
  readonly key: string
  readonly state: 'held' | 'expired' | 'unknown'
  /** RFC 3339, the last renewal; undefined: the Lease does not exist. */
  readonly renewedAt?: string
  /** Host name of the holder. */
  readonly host: string
  readonly dnsServers: readonly string[]
}

/** A renewal is on its way, and clocks of two machines differ by some seconds. */
const MARGIN_MS = 5_000
/** A holder whose clock is further ahead has not stopped because its times look old, nor runs because they look new. */
const AHEAD_MS = 60_000

/** Undefined: Leases may not be read. `isExact` false: where `key` does not exist, the newest Lease of that name counts. */
export async function findManagerLease(
  client: Pick<Client, 'find' | 'list'>,
  key: string,
  { isExact, nowMs, signal }: { readonly isExact: boolean; readonly nowMs: number; readonly signal: AbortSignal },
): Promise<ManagerLease | undefined> {
  const name = key.split('/').at(-1) ?? ''
  try {
    const found = await client.find(Lease, key, { signal })
    if (found !== undefined) return toManagerLease(found, nowMs)
    const absent = { key, state: 'expired', host: '', dnsServers: [] } as const
    if (isExact) return absent
    const { items } = await client.list(Lease, { fieldSelector: `metadata.name=${name}`, signal })
    const newest = items
      .filter(({ metadata }) => metadata.name === name)
      .toSorted((a, b) => ((a.spec?.renewTime ?? '') < (b.spec?.renewTime ?? '') ? 1 : -1))[0]
    return newest === undefined ? absent : toManagerLease(newest, nowMs)
  } catch (error) {
    if (error instanceof Forbidden || error instanceof NotFound) return undefined
    throw error
  }
}

function toManagerLease(lease: Lease, nowMs: number): ManagerLease {
  const { holderIdentity = '', leaseDurationSeconds = 15, renewTime } = lease.spec ?? {}
  const ageMs = nowMs - Date.parse(renewTime ?? '')
  const isHeld = holderIdentity !== '' && ageMs < leaseDurationSeconds * 1_000 + MARGIN_MS
  const servers = lease.metadata.annotations?.[DNS_SERVERS_ANNOTATION] ?? ''
  return {
    key: keyOf(lease),
    state: Number.isNaN(ageMs) || ageMs < -AHEAD_MS ? 'unknown' : isHeld ? 'held' : 'expired',
    ...(renewTime !== undefined && { renewedAt: renewTime }),
    // HOST_RANDOM
    host: holderIdentity.replace(/_[^_]*$/, ''),
    dnsServers: servers.split(',').filter((text) => text !== ''),
  }
}
