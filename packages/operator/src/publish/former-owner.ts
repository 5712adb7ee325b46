/**
 * A source that wins the claim of a host while a child of another owner with that host is published, and no cache contains the
 * owner: it was deleted, or a list omitted it. A live read decides which; decide/source-decision.ts names the owners to read.
 *
 * Used by the reconciler, `--dry-run` and `explain`, so that all three report the same.
 */
import type { Client } from '@seamark/kube'
import { type Finding, warning } from '../finding.ts'
import { ownerKey } from './decide/child.ts'
import { keepsHost, type SourceDecision } from './decide/source-decision.ts'
import type { PublishOptions } from './options.ts'
import { type SourceReader, sourceKindToken } from './sources/source-reader.ts'

export interface FormerOwnerDeps {
  readonly client: Pick<Client, 'find'>
  readonly sources: Pick<SourceReader, 'read'>
  readonly options: PublishOptions
  readonly signal: AbortSignal
}

/**
 * Why nothing of the decision may be written: the host stays with its owner until a list contains the owner again or a read
 * finds that it is gone. Without owners to confirm there is no read.
 */
export async function findFormerOwner(
  { source, unconfirmed }: Pick<SourceDecision, 'source' | 'unconfirmed'>,
  { client, sources, options, signal }: FormerOwnerDeps,
): Promise<Finding | undefined> {
  for (const { kind, key, host } of unconfirmed) {
    const live = await client.find(sourceKindToken(kind), key, { signal })
    if (live === undefined) continue
    const owner = sources.read(kind, live)
    if (keepsHost(owner, source, host, options))
      return warning(
        'SourceUnconfirmed',
        `host ${host} stays with ${ownerKey(owner)}: a list omitted that object, and the API server still has it`,
      )
  }
  return undefined
}
