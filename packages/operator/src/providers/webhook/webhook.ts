/**
 * Client of any ExternalDNS webhook provider: GET / (negotiation), GET /records, POST /records.
 *
 * The protocol has no transactions and no comparison, and every read returns all records: a batch is one name, the marker
 * is written first and deleted last (INV-10), and the executor reads again before it writes. Zones come from the domain
 * filter of the negotiation, or from the configuration.
 */
import { z } from 'zod'
import { ProviderError } from '../../rrset/error.ts'
import { canonicalName, isInvalid, isWithin, type ObservedRRset } from '../../rrset/rrset.ts'
import type { SetChange } from '../../rrset/set-change.ts'
import { callHttp, failureOf, type HttpAnswer } from '../http-call.ts'
import type { Provider, ProviderZone } from '../provider.ts'
import { endpointsSchema, fromEndpoint, MEDIA_TYPE, toEndpoint } from './webhook-endpoint.ts'

export interface WebhookOptions {
  readonly name: string
  readonly url: string
  /** @default the domain filter of the webhook */
  readonly zones?: readonly string[]
  /** TTL of a record without one. @default 300 */
  readonly defaultTtl?: number
  readonly requestsPerSecond?: number
  readonly fetch?: typeof globalThis.fetch
}

const filterSchema = z.object({ include: z.array(z.string()).nullish() }).nullable()

export function webhookProvider(options: WebhookOptions): Provider {
  const { defaultTtl = 300, fetch = globalThis.fetch } = options
  const base = new URL(options.url)
  let known: readonly ProviderZone[] | undefined

  const call = async (
    method: 'GET' | 'POST',
    path: string,
    signal: AbortSignal,
    body?: unknown,
  ): Promise<HttpAnswer> => {
    const url = new URL(`${base.href.replace(/\/$/, '')}${path}`)
    const headers = method === 'GET' ? { accept: MEDIA_TYPE } : { 'content-type': MEDIA_TYPE, accept: MEDIA_TYPE }
    const answer = await callHttp({ method, url, headers, signal, fetch, ...(body !== undefined && { body }) })
    const failure = failureOf(answer, `${method} ${url.pathname}`, method !== 'GET', '')
    if (failure === undefined) return answer
    // The protocol has one status for every failed change: it is unknown which changes were applied.
    throw method === 'POST' && answer.status >= 500
      ? new ProviderError('OutcomeUnknown', 'unknown', failure.message)
      : failure
  }
  const negotiate = async (signal: AbortSignal): Promise<readonly ProviderZone[]> => {
    const answer = await call('GET', '/', signal)
    const isRightVersion = answer.contentType.replaceAll(' ', '') === MEDIA_TYPE
    if (!isRightVersion)
      throw new ProviderError(
        'ProviderMisconfigured',
        'later',
        `${base.origin} answers with media type '${answer.contentType.slice(0, 80)}', not '${MEDIA_TYPE}'; check that the URL is one of a webhook provider`,
      )
    const served = zonesOf(parse(filterSchema, answer)?.include ?? [])
    if (options.zones === undefined) return served
    // An empty filter means everything; another one must contain the configured zones.
    return zonesOf(options.zones).filter(
      ({ name }) => served.length === 0 || served.some((domain) => isWithin(name, domain.name)),
    )
  }
  const zones = async (signal: AbortSignal): Promise<readonly ProviderZone[]> => (known = await negotiate(signal))
  const check = (zone: ProviderZone, served: readonly ProviderZone[]): void => {
    if (!served.some(({ name }) => name === zone.name))
      throw new ProviderError('ZoneNotFound', 'later', `the webhook does not serve ${zone.name}`)
  }

  return {
    name: options.name,
    account: base.origin,
    capabilities: {
      isAtomic: false,
      comparesAndSwaps: false,
      readsByName: false,
      maxChanges: 1,
      requestsPerSecond: options.requestsPerSecond ?? 10,
    },
    zones,
    async read(zone, names, signal, turn) {
      // Negotiated each time: the records of a removed zone look like those of an empty one.
      check(zone, await zones(signal))
      await turn?.()
      const endpoints = parse(endpointsSchema, await call('GET', '/records', signal)) ?? []
      const sets: ObservedRRset[] = endpoints.map((endpoint) => fromEndpoint(endpoint, defaultTtl))
      return sets.filter(({ name }) => isWithin(name, zone.name) && (names === 'all' || names.has(name)))
    },
    async apply(zone, batch, signal) {
      check(zone, known ?? (await zones(signal)))
      for (const change of batch) await call('POST', '/records', signal, bodyOf(change))
    },
  }
}

function zonesOf(domains: readonly string[]): ProviderZone[] {
  return domains.flatMap((domain) => {
    const name = canonicalName(domain.replace(/^\./, ''))
    return isInvalid(name) ? [] : [{ id: name, name }]
  })
}

function bodyOf({ from, to }: SetChange): unknown {
  if (from === undefined) return { create: to === undefined ? [] : [toEndpoint(to)] }
  if (to === undefined) return { delete: [toEndpoint(from)] }
  return { updateOld: [toEndpoint(from)], updateNew: [toEndpoint(to)] }
}

function parse<T>(schema: z.ZodType<T>, answer: HttpAnswer): T {
  try {
    return schema.parse(JSON.parse(answer.text))
  } catch (cause) {
    throw new ProviderError('ProviderUnavailable', 'later', 'the answer is not what the webhook protocol gives', {
      cause,
    })
  }
}
