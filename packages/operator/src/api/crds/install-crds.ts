/**
 * Installs our own CRDs in a cluster: creates those that are absent, and replaces those whose revision is lower than ours or
 * whose conversion webhook is another one than ours.
 *
 * A CRD with an equal or higher revision is not written, so two versions of the program never alternate. A CRD without a
 * revision (made by dnslb-controller-manager, or by hand) counts as the oldest one.
 */
import { isDeepStrictEqual } from 'node:util'
import { type Client, CustomResourceDefinition, type Immutable } from '@seamark/kube'

/** Integer; increases with every change of a schema. A test fails when a schema changes and this does not. */
export const CRD_REVISION_ANNOTATION = 'seamark.io/crd-revision'

const FIELD_MANAGER = 'seamark-crds'

export type CrdAction = 'create' | 'update' | 'keep'

/** Pure. */
export function decideCrd(
  existing: Immutable<CustomResourceDefinition> | undefined,
  ours: Immutable<CustomResourceDefinition>,
): CrdAction {
  if (existing === undefined) return 'create'
  if (revisionOf(existing) < revisionOf(ours)) return 'update'
  const isSameWebhook = ours.spec.conversion === undefined || isDeepStrictEqual(addressOf(existing), addressOf(ours))
  return isSameWebhook || revisionOf(existing) > revisionOf(ours) ? 'keep' : 'update'
}

/** Where the conversion webhook is. The API server fills in the port of a Service. */
function addressOf({ spec }: Immutable<CustomResourceDefinition>): unknown {
  const { url, service } = spec.conversion?.webhook?.clientConfig ?? {}
  return { url, service: service === undefined ? undefined : { port: 443, ...service } }
}

function revisionOf({ metadata }: Immutable<CustomResourceDefinition>): number {
  const revision = Number(metadata.annotations?.[CRD_REVISION_ANNOTATION] ?? '0')
  return Number.isSafeInteger(revision) ? revision : 0
}

/** Returns the names of the CRDs that were written. */
export async function installCrds(
  client: Client,
  definitions: readonly CustomResourceDefinition[],
  signal: AbortSignal,
  /** Our definition for a cluster that has this one already. @default ours */
  adapt: (ours: CustomResourceDefinition, existing: Immutable<CustomResourceDefinition>) => CustomResourceDefinition = (
    ours,
  ) => ours,
): Promise<readonly { readonly name: string; readonly action: CrdAction }[]> {
  const written: { name: string; action: CrdAction }[] = []
  for (const ours of definitions) {
    const { name = '' } = ours.metadata
    const existing = await client.find(CustomResourceDefinition, name, { signal })
    const definition = existing === undefined ? ours : adapt(ours, existing)
    const action = decideCrd(existing, definition)
    if (action === 'keep') continue
    await client.apply(CustomResourceDefinition, definition, { fieldManager: FIELD_MANAGER, force: true, signal })
    written.push({ name, action })
  }
  return written
}
