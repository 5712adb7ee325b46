/**
 * What the search field says: words that all have to match, each anywhere in a name, address, cluster, owner or zone; or
 * `host:`, `address:`, `cluster:`, `zone:`, `namespace:`, `state:` and `reason:` before a word for one of them, matched whole.
 */
import type { ClusterView, EventView, HostView, NeedView, ObjectRef } from '../../api/state.ts'

interface Searched {
  readonly text: string
  readonly host?: readonly string[]
  readonly address?: readonly string[]
  readonly cluster?: readonly string[]
  readonly zone?: readonly string[]
  readonly namespace?: readonly string[]
  readonly state?: readonly string[]
  readonly reason?: readonly string[]
}

const FIELDS = ['host', 'address', 'cluster', 'zone', 'namespace', 'state', 'reason'] as const
type Field = (typeof FIELDS)[number]

export interface SearchQuery {
  readonly isEmpty: boolean
  readonly host: (host: HostView) => boolean
  readonly cluster: (cluster: ClusterView) => boolean
  readonly need: (need: NeedView) => boolean
  readonly event: (event: EventView) => boolean
}

export function parseQuery(query: string): SearchQuery {
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  const terms = words.map(termOf)
  const matches = (searched: Searched): boolean => terms.every((term) => term(searched))
  return {
    isEmpty: terms.length === 0,
    host: (host) => matches(searchedHost(host)),
    cluster: (cluster) => matches(searchedCluster(cluster)),
    need: (need) => matches(searchedReport(need, 'zone' in need ? need.zone : undefined)),
    event: (event) => matches(searchedReport(event, undefined)),
  }
}

function termOf(word: string): (searched: Searched) => boolean {
  const [prefix = '', ...rest] = word.split(':')
  const value = rest.join(':')
  if (value !== '' && (FIELDS as readonly string[]).includes(prefix))
    return (searched) => (searched[prefix as Field] ?? []).some((each) => each.toLowerCase() === value)
  return ({ text }) => text.includes(word)
}

/** Values are replaced when they change, never changed: what is computed of one stays right. */
const hosts = new WeakMap<HostView, Searched>()

function searchedHost(host: HostView): Searched {
  const known = hosts.get(host)
  if (known !== undefined) return known
  const { name, answers, owner, namespace, zone = '', state, reason = '', held } = host
  const clusters = answers.flatMap(({ cluster }) => cluster ?? [])
  const addresses = answers.map(({ address }) => address)
  const searched: Searched = {
    text: [name, owner, reason, zone, ...addresses, ...clusters, ...answers.flatMap(({ services }) => services ?? [])]
      .join(' ')
      .toLowerCase(),
    host: [name],
    address: addresses,
    cluster: clusters,
    zone: [zone],
    namespace: [namespace],
    state: [state, ...(state === 'as it should be' ? ['fine'] : []), ...(held === undefined ? [] : ['held'])],
    reason: [reason],
  }
  hosts.set(host, searched)
  return searched
}

function searchedCluster({ name, addresses, location = '', state, reason = '' }: ClusterView): Searched {
  return {
    text: [name, location, state, ...addresses].join(' ').toLowerCase(),
    address: addresses,
    cluster: [name],
    state: [state],
    reason: [reason],
  }
}

function searchedReport(
  {
    reason,
    object,
    text,
    host = '',
    cluster = '',
  }: { reason: string; object: ObjectRef; text: string; host?: string; cluster?: string },
  zone: string | undefined,
): Searched {
  const { kind, name, namespace = '' } = object
  return {
    text: [reason, kind, `${namespace}/${name}`, text, host, cluster, zone ?? ''].join(' ').toLowerCase(),
    host: [host],
    cluster: [cluster],
    zone: [zone ?? ''],
    namespace: [namespace],
    reason: [reason],
  }
}
