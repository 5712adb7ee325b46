/**
 * Confirms that a source is gone before anything is deleted (INV-2): by a live, consistent, complete list, not by a cache.
 *
 * A list that lacks many sources at once is requested a second time, and only sources missing in both are gone (T6):
 * truncated or empty responses with status 200 have occurred. A kind that is not served, or is being removed, confirms
 * nothing: its objects are deleted with it, without a decision about their records. When the kind was installed again after the
 * record was written, its objects may still be restored: that they are gone counts only after a quarantine. Without permission
 * to list, nothing is confirmed.
 */
import { type Client, Forbidden, NotFound } from '@seamark/kube'
import { DNSEndpoint } from '../../../api/dns-endpoint.ts'
import { SOURCE_PREFIX } from './dns-endpoint-source.ts'
import { findInstalledSince } from './installed-kind.ts'
import { DEFAULT_MASS_LIMITS, isMassChange, type MassLimits } from '../../../safety/mass-limits.ts'
import { DEFAULT_LIMITS } from '../../plan/limits.ts'
import type { Sources, SourceView } from '../../plan/plan.ts'
import type { Endpoint } from './source-index.ts'

export interface SourceQuestion {
  /** Sources in our markers, with the number (ms since the epoch) of the plan that wrote last. */
  readonly owned: ReadonlyMap<string, number>
  /** Sources in the cache; their desired records are known. */
  readonly present: Sources
  /** The only namespace that may be read. @default all */
  readonly namespace?: string
  /** Sources that this process has ever had in its cache. */
  readonly known?: Sources
  /** Whether the filters would select the object. @default true for all */
  readonly isServed?: (object: Endpoint) => boolean
  /** ms since the epoch. */
  readonly now: number
  /** @default DEFAULT_MASS_LIMITS */
  readonly massLimits?: MassLimits
}

export async function checkSources(client: Client, question: SourceQuestion, signal: AbortSignal): Promise<SourceView> {
  const { owned, present, known, now, massLimits = DEFAULT_MASS_LIMITS } = question
  const unknown: SourceView = { present, gone: new Set() }
  const missing = [...owned.keys()].filter((uid) => uid.startsWith(SOURCE_PREFIX) && !present.has(uid))
  if (missing.length === 0) return unknown
  const first = await listSources(client, question, signal)
  if (first === undefined) return unknown
  // With access to one namespace only, a source can be confirmed gone only if this process has seen it there.
  const judged = first.isWhole ? missing : missing.filter((uid) => known?.has(uid) === true)
  let gone = judged.filter((uid) => !first.found.has(uid))
  if (isMassChange(gone.length, owned.size, massLimits)) {
    const second = await listSources(client, question, signal)
    gone = second === undefined ? [] : gone.filter((uid) => !second.found.has(uid))
  }
  const restorable = new Map<string, number>()
  if (gone.length > 0) {
    // After the lists: whatever emptied them is visible by now.
    const since = await findInstalledSince(client, signal)
    if (since === undefined) return unknown
    const until = since + DEFAULT_LIMITS.quarantineMs
    for (const uid of now < until ? gone : []) if ((owned.get(uid) ?? 0) < since) restorable.set(uid, until)
    gone = gone.filter((uid) => !restorable.has(uid))
  }
  // In the list and not in the cache: excluded by a filter, so it requests nothing of us; else the watch is behind.
  const excluded = new Set(missing.filter((uid) => first.found.get(uid) === false))
  return { present: { has: (uid) => present.has(uid) || excluded.has(uid) }, gone: new Set(gone), restorable }
}

interface SourceList {
  /** True when the object is selected by the filters. */
  readonly found: ReadonlyMap<string, boolean>
  /** False: the list covers one namespace only. */
  readonly isWhole: boolean
}

/** Undefined: the kind is not served. Throws when a page fails: an incomplete list is never used. */
async function listSources(
  client: Client,
  { namespace, isServed = () => true }: SourceQuestion,
  signal: AbortSignal,
): Promise<SourceList | undefined> {
  try {
    return { found: await listFound(client, undefined, isServed, signal), isWhole: true }
  } catch (error) {
    if (error instanceof NotFound) return undefined
    if (!(error instanceof Forbidden) || namespace === undefined) throw error
  }
  return { found: await listFound(client, namespace, isServed, signal), isWhole: false }
}

async function listFound(
  client: Client,
  namespace: string | undefined,
  isServed: (object: Endpoint) => boolean,
  signal: AbortSignal,
): Promise<Map<string, boolean>> {
  const found = new Map<string, boolean>()
  let next: string | undefined
  do {
    const page = await client.list(DNSEndpoint, {
      limit: 500,
      signal,
      ...(namespace !== undefined && { namespace }),
      ...(next !== undefined && { continue: next }),
    })
    for (const object of page.items) found.set(`${SOURCE_PREFIX}${object.metadata.uid ?? ''}`, isServed(object))
    next = page.metadata.continue === '' ? undefined : page.metadata.continue
  } while (next !== undefined)
  return found
}
