/** What needs somebody: held, refused, failing, expiring and drifting things, one line each, with the command to type. Pure. */
import { type HeldChange, isObjectScope, type Reason, REASONS } from '@seamark/operator'
import type { ClusterView, HostView, ManagerView, NeedView, ObjectRef, ZoneView } from '../api/state.ts'
import { explainCommand, shellWord } from './command.ts'

/** A change that a guard holds, and where. */
export interface HeldItem {
  /** Zone, without trailing dot, or the capability that writes objects. */
  readonly scope: string
  readonly change: HeldChange
}

const KINDS_OF_NEED: Readonly<Partial<Record<Reason, NeedView['what']>>> = {
  ApplyRejected: 'refused',
  ClaimHeldByOther: 'refused',
  CertificateExpiring: 'expiring',
  ForeignOwner: 'refused',
  HealthCheckRefused: 'refused',
  HostConflict: 'refused',
  KubeconfigRefused: 'refused',
  NameClaimed: 'refused',
  NameNotGranted: 'refused',
  PoisonRecordIsolated: 'refused',
  RecordRejected: 'refused',
  UnownedRecordExists: 'refused',
  AnswerDiffers: 'drifting',
  BaseMoved: 'drifting',
  NotYetPropagated: 'drifting',
  RecordRestored: 'drifting',
  SecondWriter: 'drifting',
}

/** Undefined: it is as it should be, or the held set that it is in says it. */
export function needOfHost(host: HostView, certificate?: { readonly name: string }): NeedView | undefined {
  const { name, state, at, reason = '', owner, text, since } = host
  if (state === 'as it should be' || (host.held !== undefined && host.reason === host.held.reason)) return undefined
  const [headline = ''] = text.split('\n')
  const isOfCertificate = at === 'certificate' && certificate !== undefined
  return {
    id: `host/${name}`,
    what: KINDS_OF_NEED[reason as Reason] ?? 'failing',
    severity: state,
    reason,
    object: (isOfCertificate && refOf(`Certificate ${certificate.name}`)) || (refOf(owner) ?? { kind: 'Host', name }),
    text: headline,
    ...(since !== undefined && { since }),
    command: explainCommand(name),
    host: name,
  }
}

/** A drain that was asked for needs nobody, until its deadline has passed. */
export function needOfCluster(cluster: ClusterView): NeedView | undefined {
  const { name, state, text, reason = '', since, answersStill } = cluster
  const isLate = state === 'Draining' && reason === 'DrainDeadlineReached'
  if (state !== 'Unreachable' && state !== 'Unhealthy' && !isLate) return undefined
  return {
    id: `cluster/${name}`,
    what: KINDS_OF_NEED[reason as Reason] ?? 'failing',
    severity: state === 'Unhealthy' && answersStill ? 'broken' : 'degraded',
    reason,
    object: { kind: 'Cluster', name },
    text,
    ...(since !== undefined && { since }),
    command: reason === 'AccessMissing' ? `seamark cluster token ${name}` : `seamark cluster list`,
    cluster: name,
  }
}

export function needOfZone({ name, fault }: ZoneView): NeedView | undefined {
  if (fault === undefined) return undefined
  return {
    id: `zone/${name}`,
    what: 'failing',
    severity: 'broken',
    reason: 'ZoneNotFound',
    object: { kind: 'Zone', name },
    text: fault,
    command: 'seamark plan',
    zone: name,
  }
}

/** One for each set that is approved together, and one for each code of what no approval lets pass. */
export function needsOfHeld(held: readonly HeldItem[]): NeedView[] {
  const sets = new Map<string, HeldItem[]>()
  for (const item of held) {
    const { set, isApprovable = true, code } = item.change
    const id = set !== undefined && isApprovable ? set : `${item.scope}/${code}`
    sets.set(id, [...(sets.get(id) ?? []), item])
  }
  return [...sets].flatMap(([id, items]) => {
    const [first] = items
    if (first === undefined) return []
    const { scope, change } = first
    const isObject = isObjectScope(scope)
    const since = Math.min(...items.map((item) => item.change.since))
    const more = items.length > 1 ? ` and ${items.length - 1} more` : ''
    const what = `${change.op} ${change.type} ${change.name}${more}`
    const isApproved = change.set === id
    return [
      {
        id: `held/${id}`,
        what: 'held' as const,
        severity: 'degraded' as const,
        reason: change.code,
        object: isObject ? objectOfAll(items) : { kind: 'Zone', name: scope },
        text: `${what}: ${change.why || REASONS[change.code]}`,
        since: new Date(since).toISOString(),
        command: isApproved ? `seamark approve ${shellWord(id)}` : 'seamark plan',
        ...(!isObject && { zone: scope }),
      },
    ]
  })
}

/** Of several namespaces it is the capability: who may read one of them does not learn of the others. */
function objectOfAll(items: readonly HeldItem[]): ObjectRef {
  const [first, ...others] = items.map(({ scope, change }) => ({ scope, object: objectOf(change) }))
  if (first === undefined || others.every(({ object }) => object.namespace === first.object.namespace))
    return first?.object ?? { kind: 'Capability', name: '' }
  return { kind: 'Capability', name: first.scope }
}

export function needsOfManager({ pausedBy, namespace }: Pick<ManagerView, 'pausedBy' | 'namespace'>): NeedView[] {
  if (pausedBy.length === 0) return []
  const isAnnotated = pausedBy.includes('annotation')
  return [
    {
      id: 'manager/paused',
      what: 'held',
      severity: 'degraded',
      reason: 'Paused',
      object: { kind: 'ConfigMap', namespace, name: 'seamark' },
      text: `writing is paused by ${pausedBy.join(', ')}`,
      command: isAnnotated
        ? `kubectl -n ${shellWord(namespace)} annotate configmap seamark seamark.io/pause-`
        : 'seamark config view',
    },
  ]
}

/** Of an object, on a member cluster after `cluster/`. */
export function objectOf({ type, name }: Pick<HeldChange, 'type' | 'name'>): ObjectRef {
  const parts = name.split('/')
  const [namespace, object] = parts.slice(-2)
  return object === undefined ? { kind: type, name } : { kind: type, namespace: namespace ?? '', name: object }
}

/** `Ingress shop/web` */
export function refOf(text: string): ObjectRef | undefined {
  const match = /^(\S+) (?:([^/]+)\/)?([^/]+)$/.exec(text)
  if (match?.[1] === undefined || match[3] === undefined) return undefined
  return { kind: match[1], name: match[3], ...(match[2] !== undefined && { namespace: match[2] }) }
}
