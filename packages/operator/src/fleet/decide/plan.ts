/**
 * The plan of a root: its GlobalIngress and one LeafIngress per cluster, from placement and rendering. Pure.
 *
 * Guarantee: a leaf that leaves the plan keeps its last manifests until it is drained, and so does one that cannot be
 * rendered any more: nothing is taken from a member because of a mistake in a policy.
 */
import type { Immutable, Obj } from '@seamark/kube/object'
import { apiVersionOf } from '@seamark/kube/object'
import type { Cluster } from '../../api/cluster.ts'
import type { GlobalIngressPolicySpec } from '../../api/global-ingress-policy.ts'
import type { GlobalIngressSpec } from '../../api/global-ingress.ts'
import type { LeafIngress } from '../../api/leaf-ingress.ts'
import type { Reason } from '../../reasons.ts'
import { ADOPT_ANNOTATION, leafName, managedHost } from '../names.ts'
import type { RootKind } from '../roots/root-kind.ts'
import { type BackendFact, type ClusterFact, type PlacementDecision, placeRoot } from './placement.ts'
import { rememberTtl } from './published-ttl.ts'
import { type RenderCache, renderLeaf } from './render.ts'
import { isConditionTrue } from '@seamark/kube'

export interface PlanFacts<T extends Obj> {
  readonly root: Immutable<T>
  readonly kind: RootKind<T>
  readonly policy: GlobalIngressPolicySpec
  readonly ownedHosts: readonly string[]
  /** The namespace may use none of the hosts (any more): leaves that exist go, though nothing replaces them. @default false */
  readonly isGivenUp?: boolean
  readonly clusters: readonly Immutable<Cluster>[]
  readonly backendOf: (cluster: string) => BackendFact
  readonly labelledClusters: ReadonlySet<string> | undefined
  readonly previous: Immutable<GlobalIngressSpec> | undefined
  /** By cluster. */
  readonly leaves: ReadonlyMap<string, Immutable<LeafIngress>>
  readonly hubId: string
  readonly allowedAnnotations: readonly string[]
  /** UID of the hub's own API server, to recognise it among the members. */
  readonly hubUid: string
  /** A leaf is admitted and not known to be down. */
  readonly canPublish: boolean
  /** Wall clock, ms. */
  readonly nowMs: number
}

interface PlannedLeaf {
  readonly name: string
  /** False: kept as it was, because it drains or cannot be rendered any more. */
  readonly isRendered: boolean
  readonly cluster: string
  readonly spec: LeafIngress['spec']
}

export interface RootPlan {
  readonly spec: GlobalIngressSpec
  readonly leaves: readonly PlannedLeaf[]
  readonly placement: PlacementDecision
  /** Clusters for which no leaf could be rendered. */
  readonly refused: readonly { readonly cluster: string; readonly reason: Reason; readonly message: string }[]
}

export function planRoot<T extends Obj>(facts: PlanFacts<T>): RootPlan {
  const { root, kind, policy, leaves, previous } = facts
  const { name = '', namespace = '', uid = '', annotations } = root.metadata
  const placement = placeRoot({
    root: { kind: kind.kind.kind, namespace },
    policy: policy.placement,
    clusters: facts.clusters.map((cluster) => factOf(cluster)),
    backendOf: facts.backendOf,
    labelledClusters: facts.labelledClusters,
    previous: new Set((previous?.clusters ?? []).flatMap((each) => (each.state === 'Draining' ? [] : [each.name]))),
    existing: new Set(leaves.keys()),
  })
  const byName = new Map(facts.clusters.map((cluster) => [cluster.metadata.name ?? '', cluster]))
  const domain = policy.hosts?.managedDomain ?? ''
  const managed = new Map(
    domain === '' ? [] : facts.ownedHosts.map((host) => [host, managedHost(uid, host, domain)] as const),
  )
  const refused: { cluster: string; reason: Reason; message: string }[] = []
  const planned: PlannedLeaf[] = []
  const cache: RenderCache = new Map()
  const ownedHosts = new Set(facts.ownedHosts)
  for (const { name: cluster, state: placedAs } of placement.placed) {
    const state = facts.isGivenUp === true ? 'Draining' : placedAs
    const before = leaves.get(cluster)?.spec
    const keep = (): void => {
      if (before !== undefined)
        planned.push({
          name: leafName(kind.kind.kind, name, cluster),
          isRendered: false,
          cluster,
          spec: { ...(before as LeafIngress['spec']), lifecycle: state },
        })
    }
    if (state === 'Draining') {
      keep()
      continue
    }
    const settings = byName.get(cluster)?.spec
    const leaf = leafName(kind.kind.kind, name, cluster)
    const rendered = renderLeaf(
      root,
      kind,
      {
        cluster,
        hubId: facts.hubId,
        leafName: leaf,
        isHub: byName.get(cluster)?.status?.clusterUID === facts.hubUid,
        overrides: policy.overrides,
        ownedHosts,
        managedHosts: managed,
        ingressClassMap: settings?.ingress?.ingressClassMap ?? {},
        parentRefMap: settings?.ingress?.parentRefMap ?? [],
        allowedAnnotations: facts.allowedAnnotations,
      },
      cache,
    )
    if ('refused' in rendered) {
      refused.push({ cluster, reason: rendered.refused, message: `cluster ${cluster}: ${rendered.message}` })
      keep()
      continue
    }
    if (rendered.dropped !== '')
      refused.push({
        cluster,
        reason: 'OverrideInvalid',
        message: `cluster ${cluster}: overrides may not set ${rendered.dropped}; the leaf is applied without`,
      })
    planned.push({
      name: leaf,
      isRendered: true,
      cluster,
      spec: {
        cluster,
        lifecycle: state,
        manifests: rendered.manifests as unknown as LeafIngress['spec']['manifests'],
        specHash: rendered.specHash,
        ...(policy.conflict === 'Force' && { force: true }),
        ...(annotations?.[ADOPT_ANNOTATION] === 'true' && { adopt: true }),
        ...(settings?.namespacePolicy === 'Create' && { namespacePolicy: 'Create' as const }),
      },
    })
  }
  return { spec: specOf(facts, placement, planned, managed), leaves: planned, placement, refused }
}

function specOf<T extends Obj>(
  { root, kind, policy, ownedHosts, clusters, previous, canPublish, nowMs }: PlanFacts<T>,
  placement: PlacementDecision,
  planned: readonly PlannedLeaf[],
  managed: ReadonlyMap<string, string>,
): GlobalIngressSpec {
  const { traffic, migration } = policy
  const byName = new Map(clusters.map((cluster) => [cluster.metadata.name ?? '', cluster]))
  const order = traffic.order ?? []
  // Once published it stays: health changes the answer, not whether there is one.
  const published = ownedHosts.length > 0 && (previous?.published === true || canPublish)
  const formerTtls = rememberTtl(previous, { ttlSeconds: traffic.ttlSeconds, published }, nowMs)
  const withLeaf = new Set(planned.map(({ cluster }) => cluster))
  return {
    rootRef: {
      apiVersion: apiVersionOf(kind.kind),
      kind: kind.kind.kind,
      name: root.metadata.name ?? '',
      uid: root.metadata.uid ?? '',
    },
    hosts: ownedHosts.map((host) => {
      const name = managed.get(host)
      return { host, ...(name !== undefined && { managed: name }) }
    }),
    clusters: placement.placed
      .filter(({ name }) => withLeaf.has(name))
      .map(({ name, state }) => {
        const spec = byName.get(name)?.spec
        const position = order.indexOf(name)
        return {
          name,
          state,
          ...(traffic.strategy === 'weighted' && { weight: traffic.weights?.[name] ?? spec?.weight ?? 100 }),
          ...(traffic.strategy === 'failover' && { priority: position < 0 ? order.length : position }),
          ...(traffic.strategy === 'geo' && spec?.location?.geo !== undefined && { geo: spec.location.geo }),
        }
      }),
    strategy: traffic.strategy,
    failback: traffic.failback,
    ttlSeconds: traffic.ttlSeconds,
    ...(formerTtls !== undefined && { formerTtls }),
    onAllUnhealthy: traffic.onAllUnhealthy,
    health: healthOf(policy, kind.usesTls(root)),
    isProbeRequired: policy.health !== undefined,
    drainSeconds: migration.drainSeconds,
    minHoldSeconds: migration.minHoldSeconds,
    propagationTimeoutSeconds: migration.propagationTimeoutSeconds,
    statusMode: policy.statusMode,
    published,
  }
}

function healthOf({ health }: GlobalIngressPolicySpec, usesTls: boolean): GlobalIngressSpec['health'] {
  if (health === undefined) return { scheme: 'tcp', port: usesTls ? 443 : 80 }
  const scheme = health.protocol.toLowerCase() as 'http' | 'https' | 'tcp'
  return {
    scheme,
    port: health.port ?? (health.protocol === 'HTTPS' ? 443 : 80),
    path: health.path,
    ...(health.host !== undefined && { host: health.host }),
    ...statusesOf(health.expectedStatus),
    intervalSeconds: health.intervalSeconds,
    timeoutSeconds: health.timeoutSeconds,
    rise: health.rise,
    fall: health.fall,
  }
}

/** Single statuses are written as before there were ranges, which readers of an earlier version know. */
function statusesOf(expected: readonly string[]): Pick<GlobalIngressSpec['health'], 'statusCodes' | 'expectedStatus'> {
  return expected.every((text) => /^\d+$/.test(text))
    ? { statusCodes: expected.map(Number) }
    : { expectedStatus: [...expected] }
}

function factOf({ metadata, spec, status }: Immutable<Cluster>): ClusterFact {
  const { geo, region, zone } = spec.location ?? {}
  return {
    name: metadata.name ?? '',
    labels: metadata.labels ?? {},
    location: {
      ...(geo !== undefined && { geo }),
      ...(region !== undefined && { region }),
      ...(zone !== undefined && { zone }),
    },
    weight: spec.weight,
    isReady: isConditionTrue(status?.conditions, 'Ready'),
    isDeleting: metadata.deletionTimestamp !== undefined,
    isDraining: spec.drain?.enabled === true,
    taints: (spec.taints ?? []).map(({ key, value, effect }) => ({
      key,
      effect,
      ...(value !== undefined && { value }),
    })),
    allowedNamespaces: spec.allowedNamespaces,
    servedKinds: status?.servedKinds,
  }
}
