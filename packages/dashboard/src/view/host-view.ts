/** One host of the overview: the verdict of `explain` on what this process knows, and what clients get. Pure. */
import {
  type CachedHost,
  explain,
  type ExplainFacts,
  type Explanation,
  type HeldChange,
  type Reason,
  REASONS,
} from '@seamark/operator'
import { findCondition } from '@seamark/kube'
import type { HostView } from '../api/state.ts'
import type { ZoneAnswer } from './answer-shares.ts'
import { bandsOf } from './bands.ts'
import { refOf } from './needs.ts'

/** The zone of our own server that has the name. */
export interface OwnZone {
  /** Without trailing dot. */
  readonly name: string
  /** Undefined: it is not served; `fault` says why. */
  readonly answer: ZoneAnswer | undefined
  readonly fault?: string
  /** As a client of this machine reaches it. */
  readonly server: string
}

export interface HostFacts {
  readonly host: CachedHost
  readonly zone: OwnZone | undefined
  readonly clusterOf: (address: string) => string | undefined
  /** Changes of the name that a guard holds. */
  readonly held: readonly HeldChange[]
  /** Zones of our own server, where there is no other provider. */
  readonly onlyZones?: readonly string[]
  /** ms since the epoch. */
  readonly nowMs: number
}

export interface JudgedHost {
  readonly view: HostView
  readonly explanation: Explanation
}

export function judgeHost(facts: HostFacts): JudgedHost {
  const { host, zone, held, clusterOf, nowMs } = facts
  const explanation = explain(explainFacts(facts))
  const { verdict } = explanation
  const [first] = held
  // A held change of a provider that is not read here: clients get what they got.
  const isHeldOnly = first !== undefined && verdict.state === 'as it should be'
  const name = explanation.host
  const { shares, from } = sharesOf(facts)
  const reason = isHeldOnly ? first.code : verdict.reason
  const at = isHeldOnly ? 'plan' : verdict.at
  const since = sinceOf(facts, isHeldOnly ? 'degraded' : verdict.state)
  const ttl = zone?.answer?.ttl ?? host.ttl
  return {
    explanation,
    view: {
      name,
      owner: host.owner,
      namespace: host.namespace,
      by: host.by,
      state: isHeldOnly ? 'degraded' : verdict.state,
      text: isHeldOnly ? `${name} is degraded at plan: ${REASONS[first.code]}` : verdict.text,
      ...(at !== undefined && { at }),
      ...(reason !== undefined && { reason }),
      ...(since !== undefined && { since }),
      ...(verdict.waiting !== undefined && { waiting: verdict.waiting }),
      ...(first !== undefined && {
        held: { reason: first.code, since: new Date(first.since).toISOString(), command: commandFor(first) },
      }),
      ...(zone !== undefined && { zone: zone.name }),
      ...(ttl !== undefined && { ttl }),
      answersFrom: from,
      answers: bandsOf({ host, shares, isHeld: held.length > 0, clusterOf: ownCluster(host) ?? clusterOf, nowMs }),
    },
  }
}

/** Of a host that nothing declares, and whose deletion is held: clients get what they got. */
export function undeclaredView(view: HostView, former: HostView | undefined): HostView {
  const { held } = view
  if (held === undefined) return view
  const reason = held.reason as Reason
  const { owner = '', namespace = '', by = view.by, ttl } = former ?? {}
  return {
    ...view,
    owner,
    namespace,
    by,
    state: 'degraded',
    at: 'plan',
    reason,
    text: `${view.name} is degraded at plan: ${REASONS[reason]}`,
    ...(ttl !== undefined && { ttl }),
    ...(view.answersFrom !== 'zone' &&
      former !== undefined && {
        answersFrom: former.answersFrom,
        answers: former.answers.map((answer) => ({ ...answer, isHeld: true })),
      }),
  }
}

/** The addresses of a wildcard are of the cluster that it is for. */
function ownCluster({ owner }: CachedHost): (() => string) | undefined {
  const source = refOf(owner)
  return source?.kind === 'Cluster' ? () => source.name : undefined
}

/** What lets it pass, or shows more. */
export function commandFor({ set, isApprovable = true, name }: HeldChange): string {
  return set !== undefined && isApprovable ? `seamark approve ${set}` : `seamark explain ${name.replace(/\.$/, '')}`
}

/** The overview has too many hosts for that. */
const UNASKED = 'DNS servers of others are asked on the page of the host'

function explainFacts({ host, zone, held, onlyZones }: HostFacts): ExplainFacts {
  const { facts } = host
  const answer = zone?.answer
  const base = { ...facts, ...(onlyZones !== undefined && { ownZones: onlyZones }) }
  if (zone === undefined) return { plan: undefined, answers: undefined, unasked: UNASKED, ...base }
  const plan = {
    zone: zone.name,
    pending: [],
    refused: held.map(({ code, why }) => ({ reason: code, message: why })),
    records: answer?.values ?? [],
    ...(answer === undefined && {
      providerFault: {
        reason: 'ZoneNotFound' as const,
        message: `zone ${zone.name} is not served: ${zone.fault ?? 'it is not complete yet'}`,
      },
    }),
  }
  const answered =
    answer === undefined
      ? { server: zone.server, targets: [], fault: `it refuses the names of zone ${zone.name}` }
      : { server: zone.server, targets: [...answer.shares].flatMap(([value, share]) => (share > 0 ? [value] : [])) }
  return { plan, answers: [answered], ...base }
}

/** The zone that queries are answered from, else what authoritative servers answered, else what is published. */
function sharesOf({ host, zone }: HostFacts): {
  readonly shares: ReadonlyMap<string, number>
  readonly from: HostView['answersFrom']
} {
  if (zone !== undefined) return { shares: zone.answer?.shares ?? new Map(), from: 'zone' }
  const asked = host.trace?.roots.find(({ global }) => global.status?.answered !== undefined)?.global.status?.answered
  if (asked !== undefined) return { shares: evenly(asked), from: 'asked' }
  const { facts, endpoints } = host
  const active = endpoints.flatMap(({ status, spec }) =>
    status?.active === true ? [(spec.cname ?? spec.ipaddress ?? '').replace(/\.$/, '')] : [],
  )
  const isBalanced = host.by === 'fleet' || host.by === 'balance'
  return { shares: evenly(isBalanced ? active : (facts.endpoint?.targets ?? [])), from: 'published' }
}

function evenly(values: readonly string[]): Map<string, number> {
  return new Map(values.map((value) => [value, 1 / values.length]))
}

/** Since when the objects say so; undefined: they do not. */
function sinceOf({ host, held }: HostFacts, state: HostView['state']): string | undefined {
  const [first] = held
  if (state === 'as it should be') return undefined
  const ofHeld = first === undefined ? [] : [new Date(first.since).toISOString()]
  const ofRoots = (host.trace?.roots ?? []).flatMap(({ global }) =>
    ['Ready', 'DNSPublished', 'Placed'].flatMap((type) => {
      const condition = findCondition(global.status?.conditions, type)
      return condition?.status === 'False' ? [condition.lastTransitionTime ?? ''] : []
    }),
  )
  const { certificate, balance } = host.facts
  const { selection, endpoints = [] } = balance ?? {}
  const ofCertificate = certificate?.validity?.since ?? certificate?.since
  const ofBalance = [
    ...(selection !== undefined && !selection.isReady ? [selection.since] : []),
    ...endpoints.flatMap(({ health, since }) => (health === 'unhealthy' && since !== undefined ? [since] : [])),
  ]
  return [...ofHeld, ...ofRoots, ...ofBalance, ...(ofCertificate === undefined ? [] : [ofCertificate])]
    .filter((time) => time !== '')
    .sort()
    .at(-1)
}
