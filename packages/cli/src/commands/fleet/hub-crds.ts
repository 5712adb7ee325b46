/** CRDs that commands need on a hub before a manager ran there. They are served when `installServed` resolves. */
import { type Client, CustomResourceDefinition, poll, systemClock } from '@seamark/kube'
import { type CrdAction, installCrds, keepStoredVersions } from '@seamark/operator'
import { CommandError, EXIT } from '../../command.ts'

const SERVED_WITHIN_MS = 30_000
const POLL_MS = 100

/** Ours, created or replaced by a newer revision; never by an older one. Returns what was written. */
export async function installServed(
  client: Client,
  definitions: readonly CustomResourceDefinition[],
  signal: AbortSignal,
): Promise<readonly { readonly name: string; readonly action: CrdAction }[]> {
  const written = await installCrds(client, definitions, signal, keepStoredVersions)
  for (const { name } of written) await untilServed(client, name, signal)
  return written
}

/** Only where it is absent: another project's definition is never changed. True: it was created. */
export async function installAbsent(
  client: Client,
  definition: CustomResourceDefinition,
  signal: AbortSignal,
): Promise<boolean> {
  const { name = '' } = definition.metadata
  if ((await client.find(CustomResourceDefinition, name, { signal })) !== undefined) return false
  await client.create(CustomResourceDefinition, definition)
  await untilServed(client, name, signal)
  return true
}

const isEstablished = ({ type, status }: { readonly type: string; readonly status: string }): boolean =>
  type === 'Established' && status === 'True'

async function untilServed(client: Client, name: string, signal: AbortSignal): Promise<void> {
  const isServed = async () => {
    const found = await client.find(CustomResourceDefinition, name, { signal })
    return found?.status?.conditions?.some(isEstablished) === true ? true : undefined
  }
  const options = { clock: systemClock, intervalMs: POLL_MS, timeoutMs: SERVED_WITHIN_MS, signal }
  if ((await poll(isServed, options)) === undefined)
    throw new CommandError(`CRD ${name} was created and is not served; run the command again`, EXIT.timeout)
}
