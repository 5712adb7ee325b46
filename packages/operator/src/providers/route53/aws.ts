/**
 * Amazon Route 53. The SDK is loaded at the first call, so that other providers do not pay for loading it.
 *
 * A batch is one ChangeResourceRecordSets call, which is atomic. An update is a DELETE of the exact old set and a CREATE
 * of the new one in the same batch: Route 53 refuses both when the zone contains something else, so every write is a
 * compare-and-swap. Alias, weighted and other routed sets are read as opaque and never changed.
 * Limits of the API: 1000 records and 32000 characters of values per batch, 300 sets per page, five requests per second
 * per account, of which we use two and leave the rest to users and other programs.
 */
import type { Change, ResourceRecordSet, Route53Client, Route53ClientConfig } from '@aws-sdk/client-route-53'
import { checkBatch } from '../../rrset/dns-limits.ts'
import { ProviderError } from '../../rrset/error.ts'
import { compareText, isWildcard, type ObservedRRset, type RRset } from '../../rrset/rrset.ts'
import type { SetChange } from '../../rrset/set-change.ts'
import { retryWhenThrottled } from '../retry-when-throttled.ts'
import type { Provider, ProviderZone, Turn } from '../provider.ts'
import { fromRoute53Name, fromRoute53Values, route53Order, toRoute53Value } from './route53-text.ts'

export interface AwsOptions {
  readonly name: string
  /** Without them the SDK's credential chain is used: environment, shared files, web identity, instance role. */
  readonly credentials?: {
    readonly accessKeyId: string
    readonly secretAccessKey: string
    readonly sessionToken?: string
  }
  /** For logs, and for sharing one rate limit between providers. @default the access key id, else 'default' */
  readonly account?: string
  readonly region?: string
  /** For tests and VPC endpoints. */
  readonly endpoint?: string
  /** Only these zones, by name or id. @default all */
  readonly zones?: readonly string[]
  /** Only public or only private zones: a public and a private zone may have the same name. @default both */
  readonly visibility?: 'public' | 'private'
  /** @default 2 */
  readonly requestsPerSecond?: number
}

const MAX_RECORDS = 1000
const MAX_CHARACTERS = 32_000
const PAGE = 300
/** Sorts after every name. */
const END_OF_ZONE = '\uffff'

type Sdk = typeof import('./route53-sdk.ts')

export function awsProvider(options: AwsOptions): Provider {
  let loading: Promise<{ sdk: Sdk; client: Route53Client }> | undefined
  const load = async () => {
    loading ??= importSdk().then((sdk) => ({ sdk, client: new sdk.Route53Client(configOf(options)) }))
    return loading
  }
  const only = options.zones === undefined ? undefined : new Set(options.zones)

  async function* pages(
    zone: ProviderZone,
    startAt: string | undefined,
    signal: AbortSignal,
    turn: Turn | undefined,
  ): AsyncGenerator<{ sets: ObservedRRset[]; isLast: boolean }> {
    const { sdk, client } = await load()
    let start: {
      StartRecordName?: string
      StartRecordType?: ResourceRecordSet['Type']
      StartRecordIdentifier?: string
    } = startAt === undefined ? {} : { StartRecordName: startAt }
    for (;;) {
      const command = new sdk.ListResourceRecordSetsCommand({
        HostedZoneId: zone.id,
        MaxItems: PAGE,
        ...start,
      })
      const ask = async () =>
        client.send(command, { abortSignal: signal }).catch((cause: unknown) => {
          throw failureOf(cause, zone.name, false)
        })
      const page = await retryWhenThrottled(ask, turn)
      const isLast = page.IsTruncated !== true
      yield { sets: (page.ResourceRecordSets ?? []).map(toObserved), isLast }
      if (isLast) return
      await turn?.()
      start = {
        ...(page.NextRecordName !== undefined && { StartRecordName: page.NextRecordName }),
        ...(page.NextRecordType !== undefined && { StartRecordType: page.NextRecordType }),
        ...(page.NextRecordIdentifier !== undefined && { StartRecordIdentifier: page.NextRecordIdentifier }),
      }
    }
  }

  return {
    name: options.name,
    account: `aws/${options.account ?? options.credentials?.accessKeyId ?? 'default'}`,
    capabilities: {
      isAtomic: true,
      comparesAndSwaps: true,
      readsByName: true,
      maxChanges: MAX_RECORDS,
      requestsPerSecond: options.requestsPerSecond ?? 2,
    },
    fits(batch) {
      const { records, characters } = sizeOf(batch)
      return records <= MAX_RECORDS && characters <= MAX_CHARACTERS
    },
    async zones(signal, turn) {
      const { sdk, client } = await load()
      const found: ProviderZone[] = []
      let marker: string | undefined
      do {
        if (marker !== undefined) await turn?.()
        const command = new sdk.ListHostedZonesCommand({
          MaxItems: 100,
          ...(marker !== undefined && { Marker: marker }),
        })
        const page = await client.send(command, { abortSignal: signal }).catch((cause: unknown) => {
          throw failureOf(cause, 'the account', false)
        })
        for (const zone of page.HostedZones ?? []) {
          const id = (zone.Id ?? '').replace(/^\/hostedzone\//, '')
          const visibility = zone.Config?.PrivateZone === true ? 'private' : 'public'
          found.push({ id, name: fromRoute53Name(zone.Name ?? ''), visibility })
        }
        marker = page.IsTruncated === true ? page.NextMarker : undefined
      } while (marker !== undefined)
      return found.filter(
        ({ id, name, visibility }) =>
          (only === undefined || only.has(id) || only.has(name)) && (options.visibility ?? visibility) === visibility,
      )
    },
    async read(zone, names, signal, turn) {
      const sets: ObservedRRset[] = []
      if (names === 'all') {
        for await (const page of pages(zone, undefined, signal, turn)) sets.push(...page.sets)
        return sets
      }
      // A page that starts at a name also covers the following names up to its end: the markers of a name sort next to it.
      const plain = [...names]
        .filter((name) => !isWildcard(name))
        .sort((a, b) => compareText(route53Order(a), route53Order(b)))
      let covered = ''
      let requests = 0
      /** Reads until all sets of the name are read (a name may have more routed sets than a page); returns the last name. */
      const readFrom = async (name: string): Promise<string> => {
        if (requests++ > 0) await turn?.()
        for await (const page of pages(zone, name, signal, turn)) {
          sets.push(...page.sets)
          const last = page.sets.at(-1)
          if (!page.isLast && last !== undefined && last.name !== name) return route53Order(last.name)
        }
        return END_OF_ZONE
      }
      for (const name of plain) {
        if (covered === '' || compareText(route53Order(name), covered) >= 0) covered = await readFrom(name)
      }
      for (const name of names) if (isWildcard(name)) await readFrom(name)
      const found = new Map(sets.filter((set) => names.has(set.name)).map((set) => [JSON.stringify(set), set]))
      return [...found.values()]
    },
    async apply(zone, batch, signal) {
      checkBatch(batch)
      const { sdk, client } = await load()
      // Deletes first: a CNAME may replace an address.
      const Changes: Change[] = [
        ...batch.flatMap(({ from }) =>
          from === undefined ? [] : [{ Action: 'DELETE' as const, ResourceRecordSet: toRoute53(from) }],
        ),
        ...batch.flatMap(({ to }) =>
          to === undefined ? [] : [{ Action: 'CREATE' as const, ResourceRecordSet: toRoute53(to) }],
        ),
      ]
      const command = new sdk.ChangeResourceRecordSetsCommand({ HostedZoneId: zone.id, ChangeBatch: { Changes } })
      await client.send(command, { abortSignal: signal }).catch((cause: unknown) => {
        throw failureOf(cause, zone.name, true)
      })
    },
    async close() {
      if (loading !== undefined) (await loading).client.destroy()
    },
  }
}

async function importSdk(): Promise<Sdk> {
  try {
    return await import('./route53-sdk.ts')
  } catch (cause) {
    throw new ProviderError(
      'ProviderMisconfigured',
      'later',
      'Route 53 needs the package @aws-sdk/client-route-53; install it',
      { cause },
    )
  }
}

function configOf(options: AwsOptions): Route53ClientConfig {
  return {
    region: options.region ?? 'us-east-1',
    // The executor retries, after reading the outcome of the first attempt.
    maxAttempts: 1,
    ...(options.endpoint !== undefined && { endpoint: options.endpoint }),
    ...(options.credentials !== undefined && { credentials: options.credentials }),
  }
}

function sizeOf(batch: readonly SetChange[]): { records: number; characters: number } {
  let records = 0
  let characters = 0
  for (const set of batch.flatMap(({ from, to }) => [from, to])) {
    for (const value of set?.values ?? []) {
      records++
      characters += value.length
    }
  }
  return { records, characters }
}

function toRoute53(set: RRset): ResourceRecordSet {
  return {
    Name: set.name,
    Type: set.type as NonNullable<ResourceRecordSet['Type']>,
    TTL: set.ttl,
    ResourceRecords: set.values.map((value) => ({ Value: toRoute53Value(set.type, value) })),
  }
}

/** Fields of a routing policy: such a set is more than name, type, TTL and values. */
const ROUTING = [
  'SetIdentifier',
  'Weight',
  'Region',
  'GeoLocation',
  'Failover',
  'MultiValueAnswer',
  'HealthCheckId',
  'CidrRoutingConfig',
  'GeoProximityLocation',
  'TrafficPolicyInstanceId',
] as const

function toObserved(set: ResourceRecordSet): ObservedRRset {
  const type = set.Type ?? ''
  const plain: ObservedRRset = {
    name: fromRoute53Name(set.Name ?? ''),
    type,
    ttl: set.TTL ?? 0,
    values: fromRoute53Values(
      type,
      (set.ResourceRecords ?? []).map(({ Value }) => Value ?? ''),
    ),
  }
  if (set.AliasTarget !== undefined) return { ...plain, values: [set.AliasTarget.DNSName ?? ''], opaque: 'an alias' }
  const policy = ROUTING.find((field) => set[field] !== undefined)
  if (policy === undefined) return plain
  return { ...plain, opaque: `a routing policy (${policy} ${set.SetIdentifier ?? ''})` }
}

/** Error codes of throttling; Route 53 returns them with HTTP 400. */
const THROTTLING = new Set([
  'Throttling',
  'ThrottlingException',
  'RequestLimitExceeded',
  'PriorRequestNotComplete',
  'TooManyRequestsException',
])
const CREDENTIALS = new Set([
  'InvalidClientTokenId',
  'SignatureDoesNotMatch',
  'UnrecognizedClientException',
  'InvalidSignatureException',
  'ExpiredToken',
  'ExpiredTokenException',
  'MissingAuthenticationToken',
  'CredentialsProviderError',
  'TokenProviderError',
])
const DENIED = new Set(['AccessDenied', 'AccessDeniedException', 'NotAuthorized'])

function failureOf(cause: unknown, zone: string, isWrite: boolean): ProviderError {
  const name = cause instanceof Error ? cause.name : ''
  const status = (cause as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode
  const text = cause instanceof Error ? cause.message : String(cause)
  const says = `${zone}: ${name}: ${text.slice(0, 500)}`
  // In some versions the SDK's error contains request headers: it is not passed on as a cause.
  if (THROTTLING.has(name)) return new ProviderError('Throttled', 'later', says)
  if (CREDENTIALS.has(name)) return new ProviderError('CredentialsInvalid', 'later', `${zone}: ${name}`)
  if (DENIED.has(name)) return new ProviderError('PermissionDenied', 'later', says)
  if (name === 'NoSuchHostedZone') return new ProviderError('ZoneNotFound', 'later', says)
  if (name === 'InvalidChangeBatch') return refusedBatch(cause, says)
  if (name === 'InvalidInput' || name === 'InvalidDomainName')
    return new ProviderError('RecordRejected', isWrite ? 'rejected' : 'later', says)
  if (status !== undefined && status < 500)
    return new ProviderError('RecordRejected', isWrite ? 'rejected' : 'later', says)
  if (!isWrite) return new ProviderError('ProviderUnavailable', 'later', says)
  return new ProviderError('OutcomeUnknown', 'unknown', says)
}

/** The message of the service lists the fault of each change: `[Tried to create …, RRSet with DNS name …]`. */
function refusedBatch(cause: unknown, says: string): ProviderError {
  const { messages, message } = cause as { messages?: string[]; message?: string }
  const list = (message ?? '').replace(/^\[/, '').replace(/\]$/, '')
  const texts =
    messages !== undefined && messages.length > 0 ? messages : list.split(/, (?=Tried |RRSet |Invalid |Number )/)
  const why = says.slice(0, 500)
  if (texts.some((text) => /limit of \d+ exceeded/i.test(text)))
    return new ProviderError('ZoneQuotaExceeded', 'later', why)
  const isMoved = texts.every((text) => /already exists|was not found|do not match/.test(text))
  return isMoved ? new ProviderError('BaseMoved', 'moved', why) : new ProviderError('RecordRejected', 'rejected', why)
}
