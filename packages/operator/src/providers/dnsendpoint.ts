/**
 * Records as DNSEndpoints, for an ExternalDNS that writes them to a DNS service. One object per name, in one namespace, so
 * a change of a name is one write of one object: atomic for the name, with compare-and-swap by its resourceVersion.
 *
 * Markers are stored in annotations of the object: ExternalDNS has its own registry and needs no markers in the zone.
 */
import { createHash } from 'node:crypto'
import {
  AlreadyExists,
  ApiError,
  BadRequest,
  type Client,
  Conflict,
  Forbidden,
  Invalid,
  type Kind,
  messageOf,
  NotFound,
  type Obj,
} from '@seamark/kube'
import { z } from 'zod'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { checkBatch } from '../rrset/dns-limits.ts'
import { ProviderError } from '../rrset/error.ts'
import { isMarkerName } from '../rrset/marker.ts'
import { compareText, isWithin, type ObservedRRset, printSet, type RRset, sameSet, setKey } from '../rrset/rrset.ts'
import type { SetChange } from '../rrset/set-change.ts'
import type { Provider, ProviderZone } from './provider.ts'
import { fromEndpoint, toEndpoint } from './webhook/webhook-endpoint.ts'

export interface DnsEndpointOptions {
  readonly name: string
  readonly client: Client
  readonly namespace: string
  readonly zones: readonly string[]
}

/** Label of our objects; the value is the name of the provider. */
const RECORDS_LABEL = 'seamark.io/records'
/** JSON list of the marker sets that belong to the name of the object. */
const MARKERS = 'seamark.io/markers'
const NAME = 'seamark.io/name'

const storedMarkers = z.array(
  z.object({ name: z.string().refine(isMarkerName), type: z.string(), ttl: z.number(), values: z.array(z.string()) }),
)

interface Stored extends Obj {
  spec?: { endpoints?: { dnsName?: string; recordType?: string; targets?: string[]; recordTTL?: number }[] }
}

export function dnsEndpointProvider(options: DnsEndpointOptions): Provider {
  const { client, namespace } = options
  const kind = DNSEndpoint as unknown as Kind<Stored>
  const zones = options.zones.map((name): ProviderZone => ({ id: name, name }))
  const check = (zone: ProviderZone): void => {
    if (!zones.some(({ name }) => name === zone.name))
      throw new ProviderError('ZoneNotFound', 'later', `${zone.name} is not among the zones of ${options.name}`)
  }
  const failure = (cause: unknown, isWrite: boolean): ProviderError => {
    if (cause instanceof ProviderError) return cause
    const why = messageOf(cause)
    if (cause instanceof Conflict || cause instanceof AlreadyExists) return new ProviderError('BaseMoved', 'moved', why)
    if (cause instanceof Forbidden) return new ProviderError('PermissionDenied', 'later', why)
    if (cause instanceof NotFound)
      return new ProviderError('ZoneNotFound', 'later', `DNSEndpoints are not served: ${why}`)
    if (cause instanceof BadRequest || cause instanceof Invalid)
      return new ProviderError('RecordRejected', 'rejected', why)
    if (cause instanceof ApiError && !isWrite) return new ProviderError('ProviderUnavailable', 'later', why, { cause })
    return isWrite
      ? new ProviderError('OutcomeUnknown', 'unknown', messageOf(cause), { cause })
      : new ProviderError('ProviderUnavailable', 'later', messageOf(cause), { cause })
  }
  const find = async (owner: string, signal: AbortSignal): Promise<Stored | undefined> =>
    client.find(kind, `${namespace}/${objectName(options.name, owner)}`, { signal })

  const readAll = async (signal: AbortSignal): Promise<ObservedRRset[]> => {
    const sets: ObservedRRset[] = []
    let next: string | undefined
    do {
      const page = await client.list(kind, {
        namespace,
        labelSelector: `${RECORDS_LABEL}=${options.name}`,
        limit: 500,
        signal,
        ...(next !== undefined && { continue: next }),
      })
      for (const object of page.items) sets.push(...setsOf(object))
      next = page.metadata.continue === '' ? undefined : page.metadata.continue
    } while (next !== undefined)
    return sets
  }

  return {
    name: options.name,
    account: `dnsendpoint/${namespace}`,
    // One object contains one name: a batch is one name.
    capabilities: { isAtomic: false, comparesAndSwaps: true, readsByName: true, maxChanges: 1, requestsPerSecond: 50 },
    zones: async () => zones,
    async read(zone, names, signal) {
      check(zone)
      try {
        if (names === 'all') return (await readAll(signal)).filter(({ name }) => isWithin(name, zone.name))
        const owners = new Set([...names].map(subjectName))
        const found = await Promise.all([...owners].map(async (owner) => find(owner, signal)))
        return found
          .flatMap((object) => (object === undefined ? [] : setsOf(object)))
          .filter(({ name }) => names.has(name))
      } catch (cause) {
        throw failure(cause, false)
      }
    },
    async apply(zone, batch, signal) {
      check(zone)
      // Markers are in annotations, where every name has room.
      checkBatch(batch.filter(({ to }) => to !== undefined && !isMarkerName(to.name)))
      const byOwner = new Map<string, SetChange[]>()
      for (const change of batch) {
        const owner = subjectName((change.to ?? change.from)?.name ?? '')
        byOwner.set(owner, [...(byOwner.get(owner) ?? []), change])
      }
      try {
        for (const [owner, changes] of byOwner) await writeName(owner, changes, signal)
      } catch (cause) {
        throw failure(cause, true)
      }
    },
  }

  async function writeName(owner: string, changes: readonly SetChange[], signal: AbortSignal): Promise<void> {
    const present = await find(owner, signal)
    const sets = new Map((present === undefined ? [] : setsOf(present)).map((set) => [setKey(set), set]))
    for (const { from, to } of changes) {
      const subject = to ?? from
      if (subject === undefined) continue
      const there = sets.get(setKey(subject))
      if (!sameSet(there, from)) {
        throw new ProviderError(
          'BaseMoved',
          'moved',
          `${setKey(subject)}: the object holds ${there === undefined ? 'nothing' : printSet(there)}`,
        )
      }
      if (to === undefined) sets.delete(setKey(subject))
      else sets.set(setKey(to), to)
    }
    const object = objectOf(owner, [...sets.values()], present)
    if (present === undefined) {
      if (sets.size > 0) await client.create(kind, object, { signal })
    } else if (sets.size === 0) {
      const { uid, resourceVersion } = present.metadata
      await client.delete(kind, `${namespace}/${objectName(options.name, owner)}`, {
        signal,
        precondition: {
          ...(uid !== undefined && { uid }),
          ...(resourceVersion !== undefined && { resourceVersion }),
        },
      })
    } else {
      await client.update(kind, object, { signal })
    }
  }

  function objectOf(owner: string, sets: readonly RRset[], present: Stored | undefined): Stored {
    const markers = sets.filter((set) => isMarkerName(set.name)).toSorted((a, b) => compareText(a.name, b.name))
    const records = sets.filter((set) => !isMarkerName(set.name)).toSorted((a, b) => compareText(a.type, b.type))
    const { resourceVersion, uid } = present?.metadata ?? {}
    return {
      apiVersion: 'externaldns.k8s.io/v1alpha1',
      kind: 'DNSEndpoint',
      metadata: {
        ...(resourceVersion !== undefined && { resourceVersion }),
        ...(uid !== undefined && { uid }),
        name: objectName(options.name, owner),
        namespace,
        labels: { ...present?.metadata.labels, [RECORDS_LABEL]: options.name },
        annotations: { ...present?.metadata.annotations, [NAME]: owner, [MARKERS]: JSON.stringify(markers) },
      },
      spec: {
        endpoints: records.map((set) => {
          const { dnsName, recordType, targets, recordTTL } = toEndpoint(set)
          return {
            dnsName,
            recordType,
            targets: [...(targets ?? [])],
            ...(recordTTL !== undefined && { recordTTL }),
          }
        }),
      },
    }
  }
}

/** A marker is stored with the name that it marks, and so is ExternalDNS' old label. */
function subjectName(name: string): string {
  if (!isMarkerName(name)) return name
  const rest = name.slice(name.indexOf('.') + 1)
  return rest.startsWith('_any.') ? `*${rest.slice('_any'.length)}` : rest
}

/** A DNS name may be no valid object name: the result has a readable prefix and a hash of the whole name. */
function objectName(provider: string, owner: string): string {
  const hash = createHash('sha256').update(owner).digest('hex').slice(0, 10)
  const start = owner
    .replaceAll('*', 'any')
    .replaceAll(/[^a-z0-9.-]/g, '-')
    .replaceAll(/^[.-]+|[.-]+$/g, '')
    .slice(0, 150)
  return `${provider}-${start.replaceAll(/\.+/g, '-')}-${hash}`
}

function setsOf(object: Stored): ObservedRRset[] {
  const records = (object.spec?.endpoints ?? []).map((endpoint) =>
    fromEndpoint(
      {
        dnsName: endpoint.dnsName ?? '',
        recordType: endpoint.recordType ?? '',
        targets: endpoint.targets ?? [],
        recordTTL: endpoint.recordTTL,
      },
      300,
    ),
  )
  // When another client changed the annotation there is no marker: the records are not ours, so nothing is written.
  return [...records, ...readMarkers(object.metadata.annotations?.[MARKERS])]
}

function readMarkers(text = '[]'): readonly RRset[] {
  try {
    return storedMarkers.safeParse(JSON.parse(text)).data ?? []
  } catch {
    return []
  }
}
