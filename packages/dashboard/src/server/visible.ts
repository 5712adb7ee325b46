/** What of the state a reader may see. Pure. */
import type { EventView, HostView, NeedView, ObjectRef, State } from '../api/state.ts'
import type { Difference, Keyed } from '../api/stream.ts'
import type { Question, Rights } from './rights.ts'

const RESOURCES = {
  fleet: 'globalingresses.seamark.io',
  balance: 'dnsloadbalancers.loadbalancer.gardener.cloud',
  publish: 'dnsendpoints.externaldns.k8s.io',
  wildcard: 'dnsendpoints.externaldns.k8s.io',
  records: 'dnsendpoints.externaldns.k8s.io',
} as const satisfies Record<HostView['by'], string>

const CLUSTERS: Question = { verb: 'list', resource: 'clusters.seamark.io' }
/** A zone has the records of every namespace. */
const ZONES: Question = { verb: 'list', resource: 'dnsendpoints.externaldns.k8s.io' }

function questionOf({ by, namespace }: Pick<HostView, 'by' | 'namespace'>): Question {
  return { verb: 'list', resource: RESOURCES[by], ...(namespace !== '' && { namespace }) }
}

/** What has to be known to show this state. */
export function questionsOf(hosts: Iterable<HostView>): Question[] {
  const questions = new Map<string, Question>()
  for (const host of hosts) questions.set(`${host.by} ${host.namespace}`, questionOf(host))
  return [CLUSTERS, ZONES, ...questions.values()]
}

export function mayReadZones(rights: Rights): boolean {
  return rights.may(ZONES)
}

export class Visible {
  readonly #rights: Rights
  readonly #findHost: (name: string) => HostView | undefined

  constructor(rights: Rights, findHost: (name: string) => HostView | undefined) {
    this.#rights = rights
    this.#findHost = findHost
  }

  get isEverything(): boolean {
    return this.#rights.key === '*'
  }

  readonly host = (host: HostView): boolean => this.#rights.may(questionOf(host))

  readonly event = ({ host, cluster, object }: EventView): boolean => this.#about(host, cluster, object)

  readonly need = ({ host, cluster, zone, object }: Pick<NeedView, 'host' | 'cluster' | 'zone' | 'object'>): boolean =>
    zone === undefined ? this.#about(host, cluster, object) : mayReadZones(this.#rights)

  #about(host: string | undefined, cluster: string | undefined, { namespace }: ObjectRef): boolean {
    if (host !== undefined) {
      const view = this.#findHost(host)
      return view === undefined ? mayReadZones(this.#rights) : this.host(view)
    }
    if (cluster !== undefined) return this.#rights.may(CLUSTERS)
    return mayReadZones(this.#rights) || (namespace !== undefined && this.#rights.may({ ...ZONES, namespace }))
  }

  state(state: State): State {
    if (this.isEverything) return state
    const needsYou = state.needsYou.filter(this.need)
    return {
      ...state,
      clusters: this.#rights.may(CLUSTERS) ? state.clusters : [],
      hosts: state.hosts.filter(this.host),
      zones: mayReadZones(this.#rights) ? state.zones : [],
      needsYou,
      needsYouTotal: needsYou.length,
      lastHour: state.lastHour.filter(this.event),
    }
  }

  /** `shown`: the hosts and needs that the readers have; it is kept up to date. */
  difference(difference: Difference, shown: { readonly hosts: Set<string>; readonly needs: Set<string> }): Difference {
    if (this.isEverything) return difference
    const { clusters, hosts, zones, needsYou, needsYouTotal: _, events, ...rest } = difference
    const visibleHosts = narrow(hosts, ({ name }) => name, this.host, shown.hosts)
    const visibleNeeds = narrow(needsYou, ({ id }) => id, this.need, shown.needs)
    const visibleEvents = events?.filter(this.event)
    return {
      ...rest,
      ...(clusters !== undefined && this.#rights.may(CLUSTERS) && { clusters }),
      ...(visibleHosts !== undefined && { hosts: visibleHosts }),
      ...(zones !== undefined && mayReadZones(this.#rights) && { zones }),
      ...(visibleNeeds !== undefined && { needsYou: visibleNeeds, needsYouTotal: shown.needs.size }),
      ...(visibleEvents !== undefined && visibleEvents.length > 0 && { events: visibleEvents }),
    }
  }
}

/** What may not be seen is removed where it was seen, and else not named at all. */
function narrow<T>(
  change: Keyed<T> | undefined,
  keyOf: (item: T) => string,
  isVisible: (item: T) => boolean,
  shown: Set<string>,
): Keyed<T> | undefined {
  if (change === undefined) return undefined
  const set = change.set.filter(isVisible)
  const hidden = change.set.filter((item) => !isVisible(item)).map(keyOf)
  const removed = [...change.removed, ...hidden].filter((key) => shown.delete(key))
  for (const item of set) shown.add(keyOf(item))
  return set.length === 0 && removed.length === 0 ? undefined : { set, removed }
}
