/**
 * The CRD of DNSEndpoint: its objects are deleted with it, without a decision about their records. Whether it was installed
 * again after a record was written is read from its creation time, which has whole seconds only, or known exactly if this
 * process has read the same CRD before it wrote the record.
 */
import { type Client, type Clock, CustomResourceDefinition, Forbidden, type Immutable } from '@seamark/kube'
import { DNSEndpoint } from '../../../api/dns-endpoint.ts'

/** The CRD that this process has read. */
export interface InstalledKind {
  /** Undefined: this process may not read it. */
  readonly uid: string | undefined
  /** After the read, ms since the epoch. */
  readonly readMs: number
}

/** A creation time is truncated to seconds: the object was created up to this much later. */
const TIMESTAMP_MS = 1_000

/** Undefined: the kind is not installed. */
export async function readInstalledKind(
  client: Client,
  clock: Clock,
  signal: AbortSignal,
): Promise<InstalledKind | undefined> {
  const definition = await findDefinition(client, signal)
  if (definition === undefined) return undefined
  return { uid: definition === 'forbidden' ? undefined : definition.metadata.uid, readMs: clock.now() }
}

/**
 * Since when the CRD of this cluster has certainly existed, ms since the epoch: what was written later was written while it
 * existed. Undefined when it is absent, being removed, or not readable.
 */
export async function findInstalledSince(
  client: Client,
  read: InstalledKind | undefined,
  signal: AbortSignal,
): Promise<{ readonly createdMs: number; readonly readMs: number } | undefined> {
  const definition = await findDefinition(client, signal)
  if (definition === undefined || definition === 'forbidden') return undefined
  const { deletionTimestamp, creationTimestamp = '', uid } = definition.metadata
  const createdMs = Date.parse(creationTimestamp) + TIMESTAMP_MS
  if (deletionTimestamp !== undefined || Number.isNaN(createdMs)) return undefined
  return { createdMs, readMs: uid !== undefined && uid === read?.uid ? read.readMs : Infinity }
}

async function findDefinition(
  client: Client,
  signal: AbortSignal,
): Promise<Immutable<CustomResourceDefinition> | 'forbidden' | undefined> {
  try {
    return await client.find(CustomResourceDefinition, `${DNSEndpoint.plural}.${DNSEndpoint.group}`, { signal })
  } catch (error) {
    if (error instanceof Forbidden) return 'forbidden'
    throw error
  }
}
