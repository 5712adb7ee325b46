/** The page of one host: hops with their objects, targets with their history, and the commands that show the same. Pure. */
import { findCondition, type Immutable } from '@seamark/kube'
import { keyOf, type Kind, parseKey } from '@seamark/kube/object'
import {
  type CachedHost,
  Cluster,
  DNSEndpoint,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  type Explanation,
  GlobalIngress,
  type Hop,
  kindOfRoot,
  LEAF_CLUSTER_LABEL,
  LeafIngress,
  REASONS,
  sourceKindOf,
} from '@seamark/operator'
import type { CommandView, HealthChange, HopView, TargetView } from '../api/host-page.ts'
import type { AnswerView, HostView, ObjectRef } from '../api/state.ts'
import { targetOf } from './bands.ts'
import { explainCommand, shellWord } from './command.ts'
import { refOf } from './needs.ts'

/** An object that the page shows as YAML. */
export interface ShownObject {
  readonly kind: Kind
  readonly key: string
}

export function hopViews({ hops }: Explanation, host: CachedHost, view: HostView): HopView[] {
  return hops.map((hop) => {
    const object = objectOfHop(hop, host, view)
    const since = sinceOfHop(hop, host)
    return {
      name: hop.name,
      state: hop.state,
      ...(hop.reason !== undefined && { reason: hop.reason, meaning: REASONS[hop.reason] }),
      text: hop.text,
      ...(object !== undefined && { object }),
      ...(since !== undefined && { since }),
    }
  })
}

/** Texts of leaves and clusters begin with the name of the cluster. */
function clusterOf({ text }: Hop, { leaves }: CachedHost): Immutable<LeafIngress> | undefined {
  return leaves.find(({ spec }) => text.startsWith(`${spec.cluster}:`))
}

function objectOfHop(hop: Hop, host: CachedHost, { owner, zone }: HostView): ObjectRef | undefined {
  const [root] = host.trace?.roots ?? []
  switch (hop.name) {
    case 'source':
    case 'claim':
    case 'address':
      return refOf(owner)
    case 'policy':
    case 'placement':
      return root === undefined ? undefined : { kind: 'GlobalIngress', ...nameOf(root.global) }
    case 'leaf': {
      const leaf = clusterOf(hop, host)
      return leaf === undefined ? undefined : { kind: 'LeafIngress', ...nameOf(leaf) }
    }
    case 'cluster': {
      const leaf = clusterOf(hop, host)
      return leaf === undefined ? undefined : { kind: 'Cluster', name: leaf.spec.cluster }
    }
    case 'health':
    case 'selection':
      return host.balancer === undefined ? undefined : { kind: 'DNSLoadBalancer', ...nameOf(host.balancer) }
    case 'endpoint':
      return host.records === undefined ? undefined : { kind: 'DNSEndpoint', ...nameOf(host.records) }
    case 'plan':
    case 'provider':
    case 'answer':
      return zone === undefined ? undefined : { kind: 'Zone', name: zone }
    case 'certificate':
    case 'route':
      return undefined
  }
}

function nameOf({ metadata }: { readonly metadata: { readonly name?: string; readonly namespace?: string } }) {
  return { name: metadata.name ?? '', ...(metadata.namespace !== undefined && { namespace: metadata.namespace }) }
}

function sinceOfHop(hop: Hop, host: CachedHost): string | undefined {
  const [root] = host.trace?.roots ?? []
  const of = (type: string) => findCondition(root?.global.status?.conditions, type)?.lastTransitionTime
  switch (hop.name) {
    case 'placement':
      return of('Placed')
    case 'leaf':
      return clusterOf(hop, host)?.status?.phaseSince
    case 'health':
      return host.facts.balance?.endpoints
        .flatMap(({ since }) => since ?? [])
        .sort()
        .at(-1)
    case 'selection':
      return host.facts.balance?.selection?.since
    case 'answer':
      return of('DNSPublished') ?? host.facts.balance?.changedAt
    case 'source':
    case 'claim':
    case 'policy':
    case 'cluster':
    case 'address':
    case 'certificate':
    case 'endpoint':
    case 'plan':
    case 'provider':
    case 'route':
      return undefined
  }
}

export function targetViews(
  host: CachedHost,
  answers: readonly AnswerView[],
  historyOf: (key: string) => readonly HealthChange[],
): TargetView[] {
  const bands = new Map(answers.map((answer) => [answer.address, answer]))
  const facts = new Map((host.facts.balance?.endpoints ?? []).map((each) => [each.name, each]))
  const ofBalance = host.endpoints.map((endpoint): TargetView => {
    const { metadata, spec } = endpoint
    const fact = facts.get(metadata.name ?? '')
    const cluster = metadata.labels?.[LEAF_CLUSTER_LABEL]
    const owner = refOf(host.owner)
    const reason = findCondition(endpoint.status?.conditions, 'Active')?.reason
    return {
      name: metadata.name ?? '',
      address: targetOf(endpoint),
      ...(cluster !== undefined && { cluster }),
      ...(spec.weight !== undefined && { weight: spec.weight }),
      ...(spec.priority !== undefined && { priority: spec.priority }),
      ...(spec.geo !== undefined && { region: spec.geo }),
      ...(owner !== undefined && { owner }),
      share: bands.get(targetOf(endpoint))?.share ?? 0,
      isPublished: fact?.isActive ?? false,
      health: fact?.health ?? 'unknown',
      ...(fact?.since !== undefined && { since: fact.since }),
      text: [fact?.detail, fact?.membership?.message].filter((text) => text !== undefined && text !== '').join('; '),
      ...(reason !== undefined && { reason }),
      history: historyOf(keyOf(endpoint)),
    }
  })
  const known = new Set(ofBalance.map(({ address }) => address))
  const ofLeaves = host.leaves.flatMap(({ metadata, spec, status }) =>
    (status?.addresses ?? [])
      .filter(({ value }) => !known.has(value))
      .map(({ value }): TargetView => ({
        name: metadata.name ?? '',
        address: value,
        cluster: spec.cluster,
        share: bands.get(value)?.share ?? 0,
        isPublished: false,
        health: 'unknown',
        text: `${status?.phase ?? 'Pending'}: ${status?.reason ?? 'not offered to the load balancer'}`,
        ...(status?.phaseSince !== undefined && { since: status.phaseSince }),
        history: [],
      })),
  )
  if (host.balancer !== undefined || host.trace !== undefined) return [...ofBalance, ...ofLeaves]
  return answers.map(({ address, share, state }): TargetView => ({
    name: address,
    address,
    share,
    isPublished: share > 0,
    health: 'unknown',
    text: `${state}; its health is not checked`,
    history: [],
  }))
}

/** What the host is made of, in the order of the hops. */
export function objectsOf(host: CachedHost): ShownObject[] {
  const { trace, leaves, balancer, endpoints, records, owner } = host
  const source = refOf(owner)
  const kindOfOwner = source === undefined ? undefined : (kindOfRoot(source.kind) ?? sourceKindOf(source.kind))
  const clusters = new Set(leaves.map(({ spec }) => spec.cluster))
  const all: ShownObject[] = [
    ...(kindOfOwner === undefined || source === undefined
      ? []
      : [{ kind: kindOfOwner, key: `${source.namespace ?? ''}/${source.name}` }]),
    ...(trace?.roots ?? []).map(({ global }) => ({ kind: GlobalIngress, key: keyOf(global) })),
    ...leaves.map((leaf) => ({ kind: LeafIngress, key: keyOf(leaf) })),
    ...[...clusters].sort().map((name) => ({ kind: Cluster, key: name })),
    ...(balancer === undefined ? [] : [{ kind: DNSLoadBalancer, key: keyOf(balancer) }]),
    ...endpoints.map((endpoint) => ({ kind: DNSLoadBalancerEndpoint, key: keyOf(endpoint) })),
    ...(records === undefined ? [] : [{ kind: DNSEndpoint, key: keyOf(records) }]),
  ]
  return all.filter(({ key }) => parseKey(key).name !== '')
}

export function commandsOf(host: CachedHost, { name, held }: HostView): CommandView[] {
  const { trace, balancer, records } = host
  return [
    { command: explainCommand(name), text: 'the hops on a terminal' },
    ...(trace === undefined
      ? []
      : [{ command: `seamark tree ${shellWord(name)}`, text: 'root, leaves and addresses' }]),
    ...(held === undefined ? [] : [{ command: held.command, text: 'lets the held change pass' }]),
    ...(balancer === undefined ? [] : [getCommand('dnsloadbalancer', keyOf(balancer))]),
    ...(balancer !== undefined || records === undefined ? [] : [getCommand('dnsendpoint', keyOf(records))]),
  ]
}

function getCommand(kind: string, key: string): CommandView {
  const { namespace = '', name } = parseKey(key)
  return { command: `kubectl -n ${shellWord(namespace)} get ${kind} ${shellWord(name)} -o yaml`, text: 'the object' }
}
