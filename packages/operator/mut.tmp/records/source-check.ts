/**
 * Is a source really gone? Asked before anything is deleted (INV-2): a live, consistent, complete list, not a cache.
 *
 * A list that lost many at once is asked for a second time, and only what is missing in both is gone (T6): a truncated or
 * empty answer with status 200 has happened. A kind that is not served any more says nothing about its objects.
 */
import { type Client, NotFound } from '@seamark/kube'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { SOURCE_PREFIX } from './dns-endpoint-source.ts'
import { DEFAULT_LIMITS, type Limits } from './limits.ts'
import type { SourceView } from './plan.ts'

export async function checkSources(
  client: Client,
  owned: ReadonlySet<string>,
  present: ReadonlySet<string>,
  signal: AbortSignal,
  limits: Limits = DEFAULT_LIMITS,
): Promise<SourceView> {
  const missing = [...owned].filter((uid) => uid.startsWith(SOURCE_PREFIX) && !present.has(uid))
  if (missing.length === 0) return { present, gone: new Set() }
  const first = await listSources(client, signal)
  if (first === undefined) return { present, gone: new Set() }
  let gone = missing.filter((uid) => !first.has(uid))
  if (gone.length > limits.breakerFloor && gone.length > owned.size * limits.breakerShare) {
    const second = await listSources(client, signal)
    gone = second === undefined ? [] : gone.filter((uid) => !second.has(uid))
  }
  // In the list but not served by us: a filter excludes it now. It was read, and wants nothing of us.
  const excluded = missing.filter((uid) => first.has(uid))
  return { present: new Set([...present, ...excluded]), gone: new Set(gone) }
}

/** Undefined: the kind is not served. Throws when a page fails: half a list is no list. */
async function listSources(client: Client, signal: AbortSignal): Promise<Set<string> | undefined> {
  const found = new Set<string>()
  let next: string | undefined
  do {
    try {
      const page = await client.list(DNSEndpoint, {
        limit: 500,
        signal,
        ...(next === undefined ? {} : { continue: next }),
      })
      for (const { metadata } of page.items) found.add(`${SOURCE_PREFIX}${metadata.uid ?? ''}`)
      next = page.metadata.continue === '' ? undefined : page.metadata.continue
    } catch (error) {
      if (error instanceof NotFound) return undefined
      throw error
    }
  } while (next !== undefined)
  return found
}
