/**
 * Sources that a list omitted: a child of theirs is published, no cache contains them, and the API server has them.
 *
 * Place in the flow: a configuration counts as the one that published last once every source has its targets (baseline-store.ts).
 * With caches that omit sources it would count at once, and the omitted ones would be retargeted without the guard later.
 * Guarantees: only owners of children that the caches lack are read, a few at a time, each until it is found to be deleted.
 */
import type { Client } from '@seamark/kube'
import { ownerKey } from '../decide/child.ts'
import type { SourceDecider } from '../decide/source-decision.ts'
import { sourceKindToken } from '../sources/source-reader.ts'

/** Live reads per call; children of many deleted sources are there until they are garbage-collected. */
const READ_LIMIT = 20

export class OmittedSources {
  /** Owner keys of sources that a live read did not find. */
  readonly #deleted = new Set<string>()

  /** False only when every owner that the caches lack is known to be deleted. */
  async mayExist(
    decider: Pick<SourceDecider, 'absentOwners'>,
    client: Pick<Client, 'find'>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const unread = decider.absentOwners().filter((owner) => !this.#deleted.has(ownerKey(owner)))
    for (const owner of unread.slice(0, READ_LIMIT)) {
      const key = `${owner.namespace}/${owner.name}`
      if ((await client.find(sourceKindToken(owner.kind), key, { signal })) !== undefined) return true
      this.#deleted.add(ownerKey(owner))
    }
    return unread.length > READ_LIMIT
  }
}
