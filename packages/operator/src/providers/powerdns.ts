/**
 * PowerDNS' HTTP API. A PATCH is one transaction; a read of some names requests only those names, so the cost of a change
 * is proportional to it. The API has no compare-and-swap: the executor's fresh read and the plan number in the marker
 * detect conflicts.
 */
import { z } from 'zod'
import { ProviderError } from '../rrset/error.ts'
import { canonicalName, canonicalValue, isInvalid, isName, type ObservedRRset, sortedUnique } from '../rrset/rrset.ts'
import type { SetChange } from '../rrset/set-change.ts'
import { callHttp, failureOf, type HttpAnswer } from './http-call.ts'
import { retryWhenThrottled } from './retry-when-throttled.ts'
import type { Provider, ProviderZone } from './provider.ts'

export interface PowerdnsOptions {
  readonly name: string
  /** `http://127.0.0.1:8081`; the path `/api/v1/servers/…` is added. */
  readonly url: string
  readonly apiKey: string
  /** @default 'localhost' */
  readonly serverId?: string
  /** Only these zones. @default all */
  readonly zones?: readonly string[]
  readonly requestsPerSecond?: number
  readonly fetch?: typeof globalThis.fetch
}

const rrsetSchema = z.object({
  name: z.string(),
  type: z.string(),
  ttl: z.number(),
  records: z.array(z.object({ content: z.string(), disabled: z.boolean().optional() })),
})
const zoneSchema = z.object({ rrsets: z.array(rrsetSchema) })
const zonesSchema = z.array(z.object({ id: z.string(), name: z.string() }))

export function powerdnsProvider(options: PowerdnsOptions): Provider {
  const { apiKey, serverId = 'localhost', fetch = globalThis.fetch } = options
  const base = new URL(`${options.url.replace(/\/$/, '')}/api/v1/servers/${encodeURIComponent(serverId)}`)
  const only = options.zones === undefined ? undefined : new Set(options.zones)

  const call = async (
    method: 'GET' | 'PATCH',
    path: string,
    signal: AbortSignal,
    body?: unknown,
  ): Promise<HttpAnswer> => {
    const url = new URL(`${base.href}${path}`)
    const answer = await callHttp({
      method,
      url,
      headers: { 'x-api-key': apiKey, accept: 'application/json' },
      signal,
      fetch,
      ...(body !== undefined && { body }),
    })
    const failure = failureOf(answer, `${method} ${url.pathname}`, method !== 'GET', errorText(answer))
    if (failure !== undefined) throw failure
    return answer
  }
  const readZone = async (zone: ProviderZone, query: string, signal: AbortSignal): Promise<ObservedRRset[]> => {
    const answer = await call('GET', `/zones/${encodeURIComponent(zone.id)}${query}`, signal)
    return parse(zoneSchema, answer).rrsets.map(toObserved)
  }
  /** Old servers ignore `rrset_name` and return the whole zone: detected with the first response. */
  let filtersByName: boolean | undefined

  return {
    name: options.name,
    account: base.origin,
    capabilities: {
      isAtomic: true,
      comparesAndSwaps: false,
      readsByName: true,
      maxChanges: 500,
      requestsPerSecond: options.requestsPerSecond ?? 100,
    },
    async zones(signal) {
      const found = parse(zonesSchema, await call('GET', '/zones', signal))
      return found
        .map(({ id, name }) => ({ id, name: name.toLowerCase() }))
        .filter(({ name }) => only?.has(name) ?? true)
    },
    async read(zone, names, signal, turn) {
      // One request per name; above this number reading the whole zone is cheaper.
      if (names === 'all' || names.size > 200 || filtersByName === false) {
        const all = await readZone(zone, '', signal)
        return names === 'all' ? all : all.filter(({ name }) => names.has(name))
      }
      const found: ObservedRRset[] = []
      let requests = 0
      // PowerDNS answers 500 when it is asked for what is no name.
      for (const name of [...names].filter(isName)) {
        if (requests++ > 0) await turn?.()
        const query = `?rrset_name=${encodeURIComponent(name)}`
        const sets = await retryWhenThrottled(async () => readZone(zone, query, signal), turn)
        if (sets.some((set) => set.name !== name)) {
          filtersByName = false
          return sets.filter((set) => names.has(set.name))
        }
        found.push(...sets)
      }
      return found
    },
    async apply(zone, batch, signal) {
      // PowerDNS checks conflicts in the order of the list: deletes first.
      const rrsets = batch
        .map(toPatch)
        .sort((a, b) => Number(a.changetype === 'REPLACE') - Number(b.changetype === 'REPLACE'))
      await call('PATCH', `/zones/${encodeURIComponent(zone.id)}`, signal, { rrsets })
    },
  }
}

function toPatch({ from, to }: SetChange): {
  name: string
  type: string
  changetype: 'REPLACE' | 'DELETE'
  ttl?: number
  records?: unknown[]
} {
  if (to !== undefined) {
    const records = to.values.map((content) => ({ content, disabled: false }))
    return { name: to.name, type: to.type, ttl: to.ttl, changetype: 'REPLACE', records }
  }
  return { name: from?.name ?? '', type: from?.type ?? '', changetype: 'DELETE' }
}

function toObserved({ name, type, ttl, records }: z.infer<typeof rrsetSchema>): ObservedRRset {
  const values = records.map(({ content }) => {
    const value = canonicalValue(type, content)
    return isInvalid(value) ? content : value
  })
  const canonical = canonicalName(name)
  const set = { name: isInvalid(canonical) ? name.toLowerCase() : canonical, type, ttl, values: sortedUnique(values) }
  // A disabled record is in the database and not in the answers: it is treated as opaque.
  return records.some(({ disabled }) => disabled === true) ? { ...set, opaque: 'disabled records' } : set
}

function parse<T>(schema: z.ZodType<T>, answer: HttpAnswer): T {
  try {
    return schema.parse(JSON.parse(answer.text))
  } catch (cause) {
    throw new ProviderError('ProviderUnavailable', 'later', 'the answer is not what the PowerDNS API gives', { cause })
  }
}

function errorText(answer: HttpAnswer): string {
  try {
    const { error } = JSON.parse(answer.text) as { error?: unknown }
    return typeof error === 'string' ? error : ''
  } catch {
    return ''
  }
}
