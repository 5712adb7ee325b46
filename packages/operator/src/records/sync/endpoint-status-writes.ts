/**
 * Writes the status of the DNSEndpoints of a pass: observedGeneration and conditions (endpoint-status.ts decides them).
 *
 * Guarantees: a status that is right is not written; nothing is written while the kill switch is on; a write that fails is
 * logged, and repeated by the next pass over the object.
 */
import { type Clock, type Context, type Logger, messageOf } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import type { KillSwitch } from '../../process/kill-switch.ts'
import { sourceOf } from './sources/dns-endpoint-source.ts'
import { statusChange } from './endpoint-status.ts'
import type { HeldChanges } from './held-changes.ts'
import type { Endpoint } from './sources/source-index.ts'

/** Concurrent writes. */
const CONCURRENCY = 16

export interface StatusWrites {
  readonly client: Context['client']
  readonly signal: AbortSignal
  /** Whether the schema of DNSEndpoint has conditions. */
  readonly hasConditions: boolean
  readonly held: HeldChanges
  readonly killSwitch: KillSwitch
  readonly clock: Clock
  readonly log: Logger
}

export async function writeStatuses(of: Iterable<Endpoint>, writes: StatusWrites): Promise<void> {
  const objects = [...new Set(of)]
  const write = async (): Promise<void> => {
    for (let object = objects.pop(); object !== undefined && !writes.signal.aborted; object = objects.pop())
      await writeStatus(object, writes)
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, write))
}

async function writeStatus(object: Endpoint, writes: StatusWrites): Promise<void> {
  const { client, signal, hasConditions, held, killSwitch, clock, log } = writes
  const status = statusChange(object, held.of(sourceOf(object).uid), { hasConditions, nowMs: clock.now() })
  if (status === undefined || killSwitch.isPaused) return
  const { resourceVersion } = object.metadata
  // Conditions are a list: a condition that another controller wrote meanwhile must not be lost.
  const metadata = status.conditions === undefined ? {} : { metadata: { resourceVersion } }
  await client
    .patch(DNSEndpoint, keyOf(object), 'merge', { ...metadata, status }, { subresource: 'status', signal })
    .catch((error: unknown) => log.debug({ reason: messageOf(error) }, 'status not written'))
}
