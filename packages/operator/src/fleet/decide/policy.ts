/**
 * Which policy applies to a root. Pure.
 *
 * Order: a policy of the namespace that names the root, then one that selects it by labels (the oldest of several), then the
 * policy `default` of the manager's namespace, then annotations of the root. A policy wins over annotations. A value that
 * cannot be used is reported with its field path and never ignored.
 */
import { byAge } from '@seamark/dialects'
import type { Immutable, Obj } from '@seamark/kube/object'
import { FLEET_GROUP } from '../../api/cluster.ts'
import { GlobalIngressPolicy, type GlobalIngressPolicySpec, parsePolicySpec } from '../../api/global-ingress-policy.ts'

export interface PolicyFacts {
  readonly root: Immutable<Obj>
  readonly group: string
  readonly kind: string
  /** Of the namespace of the root. */
  readonly policies: readonly Immutable<GlobalIngressPolicy>[]
  readonly defaultPolicy: Immutable<GlobalIngressPolicy> | undefined
}

export type ResolvedPolicy =
  | { readonly spec: GlobalIngressPolicySpec; readonly source: string }
  | { readonly source: string; readonly message: string }

export function resolvePolicy({ root, group, kind, policies, defaultPolicy }: PolicyFacts): ResolvedPolicy {
  const { name, labels = {} } = root.metadata
  const candidates = policies
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .sort(byAge(GlobalIngressPolicy))
  const named = candidates.find(({ spec }) =>
    (spec.targetRefs ?? []).some((ref) => ref.group === group && ref.kind === kind && ref.name === name),
  )
  const selected = candidates.find(({ spec }) => {
    const wanted = spec.selector?.matchLabels
    return wanted !== undefined && Object.entries(wanted).every(([key, value]) => labels[key] === value)
  })
  const policy = named ?? selected ?? defaultPolicy
  if (policy === undefined) return readAnnotations(root)
  const source = `GlobalIngressPolicy ${policy.metadata.namespace}/${policy.metadata.name}`
  const parsed = parsePolicySpec(policy.spec)
  return 'spec' in parsed
    ? { spec: parsed.spec, source }
    : { source, message: `${source}: ${parsed.path} ${parsed.message}` }
}

const PREFIX = `${FLEET_GROUP}/`
const WEIGHT_PREFIX = `${PREFIX}weight.`

function readAnnotations({ metadata: { annotations = {} } }: Immutable<Obj>): ResolvedPolicy {
  const source = 'annotations'
  const text = (key: string): string | undefined => annotations[`${PREFIX}${key}`]
  const problems: string[] = []
  const number = (key: string, value = text(key)): number | undefined => {
    if (value === undefined) return undefined
    if (/^[0-9]{1,9}$/.test(value)) return Number(value)
    problems.push(`annotation ${PREFIX}${key}: ${JSON.stringify(value)} is no number`)
    return undefined
  }
  const weights = Object.entries(annotations)
    .filter(([key]) => key.startsWith(WEIGHT_PREFIX))
    .map(([key, value]) => [key.slice(WEIGHT_PREFIX.length), number(key.slice(PREFIX.length), value)] as const)
  const primary = text('primary')
  const strategy =
    text('strategy') ?? (primary === undefined ? (weights.length > 0 ? 'weighted' : undefined) : 'failover')
  const selector = text('cluster-selector')
  const matchLabels = selector === undefined ? undefined : readLabels(selector)
  if (selector !== undefined && matchLabels === undefined)
    problems.push(`annotation ${PREFIX}cluster-selector: ${JSON.stringify(selector)} is not of the form key=value,…`)
  const clusters = text('clusters')
  const healthPath = text('health-path')
  const ttlSeconds = number('ttl')
  const drainSeconds = number('drain-seconds')
  const parsed = parsePolicySpec({
    placement: {
      ...(clusters !== undefined && { clusters: splitList(clusters) }),
      ...(matchLabels !== undefined && { clusterSelector: { matchLabels } }),
    },
    traffic: {
      ...(strategy !== undefined && { strategy }),
      ...(weights.length > 0 && { weights: Object.fromEntries(weights) }),
      ...(primary !== undefined && { order: [primary] }),
      ...(ttlSeconds !== undefined && { ttlSeconds }),
    },
    migration: { ...(drainSeconds !== undefined && { drainSeconds }) },
    ...(healthPath !== undefined && { health: { path: healthPath } }),
  })
  if (!('spec' in parsed)) problems.push(`annotations: ${parsed.path} ${parsed.message}`)
  if (problems.length > 0 || !('spec' in parsed)) return { source, message: problems.join('; ') }
  return { spec: parsed.spec, source }
}

function splitList(text: string): string[] {
  return text.split(/[\s,]+/).filter((item) => item !== '')
}

function readLabels(text: string): Record<string, string> | undefined {
  const pairs = splitList(text).map((item) => item.split('='))
  if (pairs.length === 0 || pairs.some((pair) => pair.length !== 2 || pair[0] === '')) return undefined
  return Object.fromEntries(pairs as [string, string][])
}
