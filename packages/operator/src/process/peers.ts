/**
 * Other managers that write the objects or records that this one writes, recognised by their Leases. Read once before the
 * first write, and again when a second writer was noticed, to name it.
 *
 * contour-plus and Seamark use the Lease `contour-plus-leader`, each in its own namespace: two of them in different
 * namespaces do not exclude each other. dnslb-controller-manager uses `dnslb-controller-manager-lease`, in its older
 * versions a ConfigMap in the namespace `garden`. ExternalDNS has no leader election and therefore no Lease; its records
 * carry ownership markers, which records respects.
 *
 * Guarantee: only reads. Leases that cannot be listed are a reported fault, and writing continues: a second writer is also
 * noticed by what it writes (second-writer.ts).
 */
import { type Client, ConfigMap, Forbidden, Lease, messageOf, NotFound } from '@seamark/kube'
import { type Immutable, keyOf } from '@seamark/kube/object'

export interface Peer {
  readonly program: string
  /** `Lease infra/contour-plus-leader` */
  readonly lease: string
  readonly holder: string
}

export interface PeerReport {
  readonly peers: readonly Peer[]
  /** Why not all Leases could be read: the message of the server. */
  readonly fault?: string
}

const PROGRAMS: Readonly<Record<string, string>> = {
  'contour-plus-leader': 'contour-plus or another Seamark manager',
  'dnslb-controller-manager-lease': 'dnslb-controller-manager',
}
/** The lock of client-go before Leases: an annotation of a ConfigMap. */
const LOCK_ANNOTATION = 'control-plane.alpha.kubernetes.io/leader'
const DNSLB_LOCK = 'garden/dnslb-controller-manager-lease'
/** Clocks of two machines differ by less. */
const CLOCK_SKEW_MS = 60_000
const DEADLINE_MS = 5_000

interface Claim {
  readonly holderIdentity?: string | undefined
  readonly leaseDurationSeconds?: number | undefined
  readonly renewTime?: string | undefined
}

/** True while the holder renews it. A claim without a time counts as held. */
export function isHeld({ holderIdentity = '', leaseDurationSeconds = 15, renewTime }: Claim, nowMs: number): boolean {
  if (holderIdentity === '') return false
  const renewedMs = Date.parse(renewTime ?? '')
  return Number.isNaN(renewedMs) || nowMs - renewedMs < leaseDurationSeconds * 1_000 + CLOCK_SKEW_MS
}

/** `own`: key of the Lease of this process, and its name where it is configured. */
export async function findPeers(
  client: Pick<Client, 'list' | 'find'>,
  { own, nowMs, signal }: { readonly own: string | undefined; readonly nowMs: number; readonly signal: AbortSignal },
): Promise<PeerReport> {
  const names = new Set([...Object.keys(PROGRAMS), ...(own === undefined ? [] : [own.split('/').at(-1) ?? ''])])
  const peers: Peer[] = []
  let fault: string | undefined
  for (const name of names) {
    try {
      const { items } = await client.list(Lease, {
        fieldSelector: `metadata.name=${name}`,
        deadlineMs: DEADLINE_MS,
        signal,
      })
      for (const lease of items) {
        if (lease.metadata.name !== name || keyOf(lease) === own) continue
        const peer = toPeer(lease, lease.spec ?? {}, nowMs)
        if (peer !== undefined) peers.push(peer)
      }
    } catch (error) {
      fault ??= messageOf(error)
    }
  }
  const lock = await findLock(client, nowMs, signal)
  return { peers: lock === undefined ? peers : [...peers, lock], ...(fault !== undefined && { fault }) }
}

export function describePeer({ program, lease, holder }: Peer): string {
  return `${lease} is held by ${holder} (${program})`
}

function toPeer(lease: Immutable<Lease | ConfigMap>, claim: Claim, nowMs: number): Peer | undefined {
  if (!isHeld(claim, nowMs)) return undefined
  const kind = lease.kind ?? 'Lease'
  const program = PROGRAMS[lease.metadata.name ?? ''] ?? 'another Seamark manager'
  return { program, lease: `${kind} ${keyOf(lease)}`, holder: claim.holderIdentity ?? '' }
}

/** Absent in most clusters, and rarely readable: neither is worth a message. */
async function findLock(client: Pick<Client, 'find'>, nowMs: number, signal: AbortSignal): Promise<Peer | undefined> {
  try {
    const found = await client.find(ConfigMap, DNSLB_LOCK, { signal })
    const text = found?.metadata.annotations?.[LOCK_ANNOTATION]
    if (found === undefined || text === undefined) return undefined
    return toPeer({ ...found, kind: 'ConfigMap' }, JSON.parse(text) as Claim, nowMs)
  } catch (error) {
    if (error instanceof Forbidden || error instanceof NotFound || error instanceof SyntaxError) return undefined
    throw error
  }
}
