/**
 * Is a source really gone? Asked before anything is deleted (INV-2): a live, consistent, complete list, not a cache.
 *
 * A list that lost many at once is asked for a second time, and only what is missing in both is gone (T6): a truncated or
 * empty answer with status 200 has happened. A kind that is not served, or is being removed, says nothing about its
 * objects: they go with it, and nobody decided about a record. The same, for as long as a quarantine, when it was
 * installed anew after the record was written: its objects may be on their way back. Who may not look says nothing.
 */
import { type Client, CustomResourceDefinition, Forbidden, NotFound } from '@seamark/kube'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { SOURCE_PREFIX } from './dns-endpoint-source.ts'
import { DEFAULT_LIMITS, type Limits } from '../plan/limits.ts'
import type { Sources, SourceView } from '../plan/plan.ts'
import type { Endpoint } from './source-index.ts'

export interface SourceQuestion {
  /** Sources behind our markers, with the number (ms since the epoch) of the plan that wrote last. */
  readonly owned: ReadonlyMap<string, number>
  /** In sight, and asked for what they want. */
  readonly present: Sources
  /** A name space that is all we may read. @default every one */
  readonly namespace?: string
  /** Sources that this process had in sight once. */
  readonly known?: ReadonlySet<string>
  /** Would it be asked for what it wants, if it were in sight? @default every one would */
  readonly isServed?: (object: Endpoint) => boolean
  /** ms since the epoch. */
  readonly now: number
  readonly limits?: Limits
}

export async function checkSources(client: Client, question: SourceQuestion, signal: AbortSignal): Promise<SourceView> {
  const { owned, present, known, now, limits = DEFAULT_LIMITS } = question
  const unknown: SourceView = { present, gone: new Set() }
  const missing = [...owned.keys()].filter((uid) => uid.startsWith(SOURCE_PREFIX) && !present.has(uid))
  if (missing.length === 0) return unknown
  const first = await listSources(client, question, signal)
  if (first === undefined) return unknown
  // In another namespace than the one that may be listed: only who was seen here can be missed here.
  const judged = first.isWhole ? missing : missing.filter((uid) => known?.has(uid) === true)
  let gone = judged.filter((uid) => !first.found.has(uid))
  if (gone.length > limits.breakerFloor && gone.length > owned.size * limits.breakerShare) {
    const second = await listSources(client, question, signal)
    gone = second === undefined ? [] : gone.filter((uid) => !second.found.has(uid))
  }
  if (gone.length > 0) {
    // After the lists: whatever emptied them is visible by now.
    const installedAt = await findInstalled(client, signal)
    const isSettled = installedAt !== undefined && now - installedAt >= limits.quarantineMs
    gone = gone.filter((uid) => isSettled || (installedAt !== undefined && (owned.get(uid) ?? 0) >= installedAt))
  }
  // In the list and not in sight: excluded by a filter it was read, and wants nothing of us; else the watch is behind.
  const excluded = new Set(missing.filter((uid) => first.found.get(uid) === false))
  return { present: { has: (uid) => present.has(uid) || excluded.has(uid) }, gone: new Set(gone) }
}

interface SourceList {
  /** True: it is one of those that are served. */
  readonly found: ReadonlyMap<string, boolean>
  /** False: only of one namespace. */
  readonly isWhole: boolean
}

/** Undefined: the kind is not served. Throws when a page fails: half a list is no list. */
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
      ...(namespace === undefined ? {} : { namespace }),
      ...(next === undefined ? {} : { continue: next }),
    })
    for (const object of page.items) found.set(`${SOURCE_PREFIX}${object.metadata.uid ?? ''}`, isServed(object))
    next = page.metadata.continue === '' ? undefined : page.metadata.continue
  } while (next !== undefined)
  return found
}

/** A creation time is cut to the second: it was then, or up to this much later. */
const TIMESTAMP_MS = 1_000

/** ms since the epoch, at the latest; undefined when the kind is absent, on its way out, or may not be looked at. */
async function findInstalled(client: Client, signal: AbortSignal): Promise<number | undefined> {
  const name = `${DNSEndpoint.plural}.${DNSEndpoint.group}`
  const definition = await client.find(CustomResourceDefinition, name, { signal }).catch((error: unknown) => {
    if (error instanceof Forbidden) return undefined
    throw error
  })
  if (definition === undefined || definition.metadata.deletionTimestamp !== undefined) return undefined
  const installedAt = Date.parse(definition.metadata.creationTimestamp ?? '')
  return Number.isNaN(installedAt) ? undefined : installedAt + TIMESTAMP_MS
}
