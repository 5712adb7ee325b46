/**
 * The CRD of DNSEndpoint: its objects are deleted with it, without a decision about their records. Whether it was installed
 * again after a record was written is read from its creation time, which has whole seconds only: no record is written in the
 * second in which it was installed, so that every process can tell.
 */
import { type Client, type Clock, CustomResourceDefinition, Forbidden, type Immutable, poll } from '@seamark/kube'
import { DNSEndpoint } from '../../../api/dns-endpoint.ts'

/** A creation time is truncated to seconds: the object was created up to this much later. */
const TIMESTAMP_MS = 1_000
const POLL_MS = 50

/**
 * Since when the CRD of this cluster has certainly existed, ms since the epoch: what was written later was written while it
 * existed. Undefined when it is absent, being removed, or not readable.
 */
export async function findInstalledSince(client: Client, signal: AbortSignal): Promise<number | undefined> {
  const definition = await findDefinition(client, signal)
  return definition === undefined || definition === 'forbidden' ? undefined : installedSince(definition)
}

/** Until that time has passed, a second at most. False: there is no CRD yet. */
export async function untilInstalled(client: Client, clock: Clock, signal: AbortSignal): Promise<boolean> {
  const definition = await findDefinition(client, signal)
  if (definition === undefined) return false
  const since = definition === 'forbidden' ? undefined : installedSince(definition)
  const isOver = () => (since === undefined || clock.now() >= since ? true : undefined)
  await poll(isOver, { clock, intervalMs: POLL_MS, timeoutMs: TIMESTAMP_MS, signal })
  return true
}

function installedSince({ metadata }: Immutable<CustomResourceDefinition>): number | undefined {
  const createdMs = Date.parse(metadata.creationTimestamp ?? '') + TIMESTAMP_MS
  return metadata.deletionTimestamp !== undefined || Number.isNaN(createdMs) ? undefined : createdMs
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
