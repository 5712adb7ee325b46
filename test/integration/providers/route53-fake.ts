/**
 * A strict Route 53 on loopback, written from the API reference: what it refuses, the real one refuses. It has the rules
 * that an emulator usually lacks: atomic batches, CREATE conflicts, exact DELETE, sizes of batches, throttling per
 * account, pages of 300, quotas, octal escapes, errors with a list of messages.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isIPv4, isIPv6 } from 'node:net'

interface FakeSet {
  readonly name: string
  readonly type: string
  readonly ttl?: number
  readonly values?: readonly string[]
  readonly alias?: string
  readonly setIdentifier?: string
  readonly weight?: number
}

interface FakeZone {
  readonly id: string
  readonly name: string
  readonly isPrivate?: boolean
  readonly sets: Map<string, FakeSet>
}

export interface Route53Fake {
  readonly endpoint: string
  readonly zones: Map<string, FakeZone>
  readonly counts: {
    lists: number
    changes: number
    throttled: number
    /** Requests that were answered, by access key. */
    readonly served: Map<string, number>
  }
  /** Requests a second for the whole account; burst of the same size. Undefined: no limit. */
  limitPerSecond: number | undefined
  recordQuota: number
  /** So many changes are throttled, however slow they come. */
  throttleNext: number
  close(): Promise<void>
}

const NS = 'xmlns="https://route53.amazonaws.com/doc/2013-04-01/"'
const escapeXml = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
const unescapeXml = (text: string) =>
  text
    .replaceAll(/&#x([0-9a-f]+);/gi, (_all, code: string) => String.fromCodePoint(Number.parseInt(code, 16)))
    .replaceAll(/&#(\d+);/g, (_all, code: string) => String.fromCodePoint(Number(code)))
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&apos;', "'")
    .replaceAll('&amp;', '&')
const tag = (xml: string, name: string): string | undefined => {
  const found = new RegExp(`<${name}>([^]*?)</${name}>`).exec(xml)?.[1]
  return found === undefined ? undefined : unescapeXml(found)
}
const tags = (xml: string, name: string): string[] =>
  [...xml.matchAll(new RegExp(`<${name}>([^]*?)</${name}>`, 'g'))].map((match) => match[1] ?? '')

/** Names as the service stores them: lower case, final dot, anything unusual in octal. */
const stored = (name: string): string =>
  `${name.replace(/\.$/, '').toLowerCase()}.`.replaceAll(
    /[^a-z0-9\-_.\\]/g,
    (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`,
  )
/** As documented: reversed labels with a final dot, so `web-2` precedes `web`. */
const order = (name: string) => `${name.replace(/\.$/, '').split('.').toReversed().join('.')}.`
const keyOf = (set: FakeSet) => `${set.name}|${set.type}|${set.setIdentifier ?? ''}`
const compare = (a: FakeSet, b: FakeSet) => {
  const [x, y] = [
    `${order(a.name)}\0${a.type}\0${a.setIdentifier ?? ''}`,
    `${order(b.name)}\0${b.type}\0${b.setIdentifier ?? ''}`,
  ]
  return x < y ? -1 : x > y ? 1 : 0
}

class ApiError extends Error {
  readonly code: string
  readonly status: number
  readonly messages: readonly string[]
  constructor(code: string, messages: readonly string[], status = 400) {
    super(messages.join('; '))
    this.code = code
    this.status = status
    this.messages = messages
  }
}

export async function startRoute53Fake(
  zones: readonly { id: string; name: string; isPrivate?: boolean }[],
): Promise<Route53Fake> {
  const table = new Map(zones.map((zone): [string, FakeZone] => [zone.id, { ...zone, sets: new Map() }]))
  const counts = { lists: 0, changes: 0, throttled: 0, served: new Map<string, number>() }
  const state = { limitPerSecond: undefined as number | undefined, recordQuota: 10_000, throttleNext: 0 }
  let tokens = 0
  let filledAt = Date.now()

  const throttle = (): void => {
    const limit = state.limitPerSecond
    if (limit === undefined) return
    tokens = Math.min(limit, tokens + ((Date.now() - filledAt) / 1000) * limit)
    filledAt = Date.now()
    if (tokens < 1) {
      counts.throttled++
      throw new ApiError('Throttling', ['Rate exceeded'])
    }
    tokens--
  }
  const getZone = (id: string): FakeZone => {
    const zone = table.get(id)
    if (zone === undefined) throw new ApiError('NoSuchHostedZone', [`No hosted zone found with ID: ${id}`], 404)
    return zone
  }

  const server = createServer((request, response) => {
    void handle(request, response)
  })
  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://fake')
    let body = ''
    for await (const chunk of request) body += String(chunk)
    try {
      const accessKey = /^AWS4-HMAC-SHA256 Credential=([^/]+)\//.exec(request.headers.authorization ?? '')?.[1]
      if (accessKey === undefined) {
        throw new ApiError('MissingAuthenticationToken', ['Request is missing Authentication Token'], 403)
      }
      throttle()
      counts.served.set(accessKey, (counts.served.get(accessKey) ?? 0) + 1)
      response.setHeader('content-type', 'text/xml')
      response.end(answer(request.method ?? '', url, body))
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      response.statusCode = error.status
      response.setHeader('content-type', 'text/xml')
      response.end(errorXml(error))
    }
  }

  function answer(method: string, url: URL, body: string): string {
    const path = url.pathname.replace(/\/$/, '')
    if (path === '/2013-04-01/hostedzone' && method === 'GET') return listZones(url)
    const id = /^\/2013-04-01\/hostedzone\/([^/]+)\/rrset$/.exec(path)?.[1]
    if (id === undefined) throw new ApiError('InvalidInput', [`unknown path ${path}`], 404)
    return method === 'GET' ? listSets(getZone(id), url) : changeSets(getZone(id), body)
  }

  function listZones(url: URL): string {
    counts.lists++
    const all = [...table.values()]
    const size = Number(url.searchParams.get('maxitems') ?? 100)
    const begin = Math.max(
      0,
      all.findIndex((zone) => zone.id === url.searchParams.get('marker')),
    )
    const page = all.slice(begin, begin + size)
    const next = all[begin + size]
    const items = page.map(
      (zone) =>
        `<HostedZone><Id>/hostedzone/${zone.id}</Id><Name>${escapeXml(stored(zone.name))}</Name><CallerReference>x</CallerReference><Config><PrivateZone>${zone.isPrivate === true}</PrivateZone></Config></HostedZone>`,
    )
    return `<?xml version="1.0"?><ListHostedZonesResponse ${NS}><HostedZones>${items.join('')}</HostedZones><IsTruncated>${next !== undefined}</IsTruncated>${next === undefined ? '' : `<NextMarker>${next.id}</NextMarker>`}<MaxItems>${size}</MaxItems></ListHostedZonesResponse>`
  }

  function listSets(zone: FakeZone, url: URL): string {
    counts.lists++
    const size = Math.min(300, Number(url.searchParams.get('maxitems') ?? 300))
    const all = [...zone.sets.values()].sort(compare)
    const name = url.searchParams.get('name')
    const from =
      name === null
        ? undefined
        : {
            name: stored(name),
            type: url.searchParams.get('type') ?? '',
            setIdentifier: url.searchParams.get('identifier') ?? '',
          }
    const begin = from === undefined ? 0 : all.findIndex((set) => compare(set, from) >= 0)
    const rest = begin < 0 ? [] : all.slice(begin)
    const next = rest[size]
    const items = rest.slice(0, size).map(setXml)
    const more =
      next === undefined
        ? ''
        : `<NextRecordName>${escapeXml(next.name)}</NextRecordName><NextRecordType>${next.type}</NextRecordType>${next.setIdentifier === undefined ? '' : `<NextRecordIdentifier>${next.setIdentifier}</NextRecordIdentifier>`}`
    return `<?xml version="1.0"?><ListResourceRecordSetsResponse ${NS}><ResourceRecordSets>${items.join('')}</ResourceRecordSets><IsTruncated>${next !== undefined}</IsTruncated>${more}<MaxItems>${size}</MaxItems></ListResourceRecordSetsResponse>`
  }

  function changeSets(zone: FakeZone, body: string): string {
    if (state.throttleNext > 0) {
      state.throttleNext--
      counts.throttled++
      throw new ApiError('PriorRequestNotComplete', ['The request was rejected because another one is in progress'])
    }
    counts.changes++
    const changes = tags(body, 'Change').map((xml) => ({ action: tag(xml, 'Action') ?? '', set: parseSet(xml) }))
    checkSize(changes)
    const draft = new Map(zone.sets)
    const messages = changes.flatMap(({ action, set }) => applyOne(zone, draft, action, set))
    for (const set of draft.values()) {
      const isAlone =
        set.type !== 'CNAME' || ![...draft.values()].some((other) => other.name === set.name && other.type !== 'CNAME')
      if (!isAlone)
        messages.push(
          `RRSet of type CNAME with DNS name ${set.name} is not permitted as it conflicts with other records with the same DNS name in zone ${zone.name}`,
        )
    }
    if (draft.size > state.recordQuota) messages.push(`Number of records limit of ${state.recordQuota} exceeded.`)
    // Atomic: nothing is kept of a batch with one message.
    if (messages.length > 0) throw new ApiError('InvalidChangeBatch', messages)
    zone.sets.clear()
    for (const [key, set] of draft) zone.sets.set(key, set)
    return `<?xml version="1.0"?><ChangeResourceRecordSetsResponse ${NS}><ChangeInfo><Id>/change/C1</Id><Status>PENDING</Status><SubmittedAt>2030-01-01T00:00:00Z</SubmittedAt></ChangeInfo></ChangeResourceRecordSetsResponse>`
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    zones: table,
    counts,
    get limitPerSecond() {
      return state.limitPerSecond
    },
    set limitPerSecond(value) {
      state.limitPerSecond = value
      tokens = value ?? 0
      filledAt = Date.now()
    },
    get recordQuota() {
      return state.recordQuota
    },
    set recordQuota(value) {
      state.recordQuota = value
    },
    get throttleNext() {
      return state.throttleNext
    },
    set throttleNext(value) {
      state.throttleNext = value
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function checkSize(changes: readonly { action: string; set: FakeSet }[]): void {
  // UPSERT counts twice.
  const weight = (action: string) => (action === 'UPSERT' ? 2 : 1)
  let records = 0
  let characters = 0
  for (const { action, set } of changes) {
    records += weight(action) * (set.values?.length ?? 0)
    for (const value of set.values ?? []) characters += weight(action) * value.length
  }
  if (records > 1000 || changes.length > 1000)
    throw new ApiError('InvalidChangeBatch', [
      `Number of records ${records} exceeds limit 1000`.replace('exceeds limit', 'is above'),
    ])
  if (characters > 32_000)
    throw new ApiError('InvalidChangeBatch', [`Number of characters ${characters} is above 32000`])
}

function applyOne(zone: FakeZone, draft: Map<string, FakeSet>, action: string, set: FakeSet): string[] {
  const label = `[name='${set.name}', type='${set.type}']`
  const origin = stored(zone.name)
  if (set.name !== origin && !set.name.endsWith(`.${origin}`))
    return [`RRSet with DNS name ${set.name} is not permitted in zone ${origin}`]
  const bad = badValue(set)
  if (bad !== undefined) return [`Invalid Resource Record: '${bad}' (${label})`]
  const present = draft.get(keyOf(set))
  if (action === 'CREATE') {
    if (present !== undefined) return [`Tried to create resource record set ${label} but it already exists`]
    draft.set(keyOf(set), set)
    return []
  }
  if (action === 'UPSERT') {
    draft.set(keyOf(set), set)
    return []
  }
  if (present === undefined) return [`Tried to delete resource record set ${label} but it was not found`]
  const isSame =
    present.ttl === set.ttl &&
    JSON.stringify([...(present.values ?? [])].sort()) === JSON.stringify([...(set.values ?? [])].sort())
  if (!isSame)
    return [`Tried to delete resource record set ${label} but the values provided do not match the current values`]
  draft.delete(keyOf(set))
  return []
}

function badValue(set: FakeSet): string | undefined {
  if (set.alias !== undefined) return undefined
  if ((set.values ?? []).length === 0) return 'no resource records'
  if (new Set(set.values).size !== (set.values ?? []).length) return 'duplicate Resource Record'
  for (const value of set.values ?? []) {
    if (set.type === 'A' && !isIPv4(value)) return value
    if (set.type === 'AAAA' && !isIPv6(value)) return value
    if (set.type === 'TXT' && !/^("([^"\\]|\\.){0,}"\s*)+$/.test(value)) return value
    if (
      set.type === 'TXT' &&
      [...value.matchAll(/"((?:[^"\\]|\\.)*)"/g)].some(
        (match) => (match[1] ?? '').replaceAll(/\\([0-7]{3}|.)/g, 'x').length > 255,
      )
    )
      return value
  }
  return set.type === 'CNAME' && (set.values ?? []).length > 1 ? 'several CNAME values' : undefined
}

function parseSet(xml: string): FakeSet {
  const ttl = tag(xml, 'TTL')
  return {
    name: stored(tag(xml, 'Name') ?? ''),
    type: tag(xml, 'Type') ?? '',
    ...(ttl !== undefined && { ttl: Number(ttl) }),
    values: tags(xml, 'Value').map(unescapeXml),
  }
}

function setXml(set: FakeSet): string {
  const values = (set.values ?? []).map(
    (value) => `<ResourceRecord><Value>${escapeXml(value)}</Value></ResourceRecord>`,
  )
  const alias =
    set.alias === undefined
      ? ''
      : `<AliasTarget><HostedZoneId>Z2</HostedZoneId><DNSName>${set.alias}</DNSName><EvaluateTargetHealth>false</EvaluateTargetHealth></AliasTarget>`
  const routing =
    set.setIdentifier === undefined
      ? ''
      : `<SetIdentifier>${set.setIdentifier}</SetIdentifier><Weight>${set.weight ?? 1}</Weight>`
  const ttl = set.ttl === undefined ? '' : `<TTL>${set.ttl}</TTL>`
  const records = values.length === 0 ? '' : `<ResourceRecords>${values.join('')}</ResourceRecords>`
  return `<ResourceRecordSet><Name>${escapeXml(set.name)}</Name><Type>${set.type}</Type>${routing}${ttl}${records}${alias}</ResourceRecordSet>`
}

function errorXml(error: ApiError): string {
  // A refused batch lists what is wrong with each change in one bracketed text.
  const text = error.code === 'InvalidChangeBatch' ? `[${error.messages.join(', ')}]` : error.messages.join('; ')
  return `<?xml version="1.0"?><ErrorResponse ${NS}><Error><Type>Sender</Type><Code>${error.code}</Code><Message>${escapeXml(text)}</Message></Error><RequestId>r</RequestId></ErrorResponse>`
}
