/**
 * `GlobalIngressPolicy`, `seamark.io/v1alpha1`: where the leaves of selected roots are placed, how traffic is divided, how
 * health is checked and how leaves move. A policy named `default` in the manager's namespace applies to roots without one.
 */
import { conditionsSchema, defineKind, type ObjectOf } from '@seamark/kube/crd'
import { z } from 'zod'
import { FLEET_GROUP, FLEET_VERSION } from './cluster.ts'
import { expectedStatus } from '../expected-status.ts'

export const STRATEGIES = ['roundRobin', 'weighted', 'failover', 'geo'] as const

const labels = z.record(z.string(), z.string())

const Placement = z.object({
  clusters: z.array(z.string()).max(200).optional().describe('Names of clusters. Default: all that match.'),
  clusterSelector: z.object({ matchLabels: labels.optional() }).optional(),
  minClusters: z.int().min(1).max(200).default(1).describe('Fewer: Placed is False, and what exists is used.'),
  maxClusters: z.int().min(1).max(200).optional().describe('Default: every eligible cluster.'),
  backendAffinity: z
    .enum(['Required', 'Any', 'Ignore'])
    .default('Required')
    .describe('Required: every Service of the root exists on the cluster. Any: at least one. Ignore: not checked.'),
  affinityGroups: z
    .array(z.object({ matchLabels: labels }))
    .max(16)
    .optional()
    .describe('Clusters of an earlier group are preferred.'),
  spread: z
    .array(z.object({ topologyKey: z.string().min(1), maxSkew: z.int().min(1).max(200).default(1) }))
    .max(4)
    .optional()
    .describe('Largest difference in the number of clusters between values of a label or of geo, region, zone.'),
  tolerations: z
    .array(z.object({ key: z.string().optional(), value: z.string().optional() }))
    .max(32)
    .optional()
    .describe('NoPlace taints that are tolerated; without key: all.'),
})

const Traffic = z.object({
  strategy: z.enum(STRATEGIES).default('roundRobin'),
  weights: z
    .record(z.string(), z.int().min(0).max(1000))
    .optional()
    .describe("weighted: by cluster. Default: the cluster's."),
  order: z.array(z.string()).max(200).optional().describe('failover: clusters, most preferred first.'),
  failback: z
    .enum(['Auto', 'Manual'])
    .default('Auto')
    .describe('failover: whether to return to a better cluster by itself.'),
  ttlSeconds: z.int().min(1).max(86_400).default(30),
  onAllUnhealthy: z.enum(['ServeLast', 'ServeAll', 'Remove']).default('ServeLast'),
})

const Health = z.object({
  protocol: z.enum(['HTTP', 'HTTPS', 'TCP']).default('HTTP'),
  port: z.int().min(1).max(65_535).optional().describe('Default 80, or 443 for HTTPS.'),
  path: z.string().max(2048).default('/'),
  host: z.string().max(253).optional().describe('Host header; required for wildcard hosts. Default: the host.'),
  expectedStatus: expectedStatus
    .default(['200'])
    .describe('HTTP statuses that are healthy: "200", or a range such as "200-299". Default 200.'),
  intervalSeconds: z.int().min(1).max(3600).default(5),
  timeoutSeconds: z.int().min(1).max(60).default(2),
  fall: z.int().min(1).max(10).default(3),
  rise: z.int().min(1).max(10).default(2),
})

const Migration = z.object({
  drainSeconds: z
    .int()
    .min(0)
    .max(86_400)
    .default(60)
    .describe('Least time between withdrawal and deletion of a leaf.'),
  propagationTimeoutSeconds: z
    .int()
    .min(1)
    .max(86_400)
    .default(120)
    .describe('A change that DNS servers do not show within this time is reported; the old leaf stays.'),
  minHoldSeconds: z.int().min(0).max(86_400).default(60).describe('Least time a leaf is unhealthy before it returns.'),
})

const JsonPatch = z.object({
  op: z.enum(['add', 'remove', 'replace', 'test', 'move', 'copy']),
  path: z.string().max(1024),
  from: z.string().max(1024).optional(),
  value: z.unknown().optional().meta({ 'x-kubernetes-preserve-unknown-fields': true }),
})

const GlobalIngressPolicySpec = z
  .object({
    targetRefs: z
      .array(z.object({ group: z.string(), kind: z.string(), name: z.string() }))
      .max(64)
      .optional()
      .describe('Roots of the same namespace.'),
    selector: z
      .object({ matchLabels: labels.optional() })
      .optional()
      .describe('Roots of the same namespace by labels.'),
    placement: Placement.prefault({}),
    traffic: Traffic.prefault({}),
    health: Health.optional().describe('Default: a TCP connection to port 443, or 80 without TLS.'),
    migration: Migration.prefault({}),
    conflict: z
      .enum(['Refuse', 'Force'])
      .default('Refuse')
      .describe('Force takes over fields of a leaf that another manager owns.'),
    statusMode: z
      .enum(['Auto', 'Merged', 'ManagedHost'])
      .default('Auto')
      .describe('Addresses in the status of the root. Auto: merged until DNS is published, then the managed host.'),
    hosts: z
      .object({
        managedDomain: z.string().max(200).optional().describe('Every host gets a second, generated name below it.'),
        customDomains: z.enum(['Any', 'VerifiedOnly']).default('Any'),
      })
      .optional(),
    overrides: z
      .array(z.object({ cluster: z.string(), patches: z.array(JsonPatch).max(64) }))
      .max(200)
      .optional()
      .describe('RFC 6902 patches of the leaf of one cluster, applied last.'),
  })
  .prefault({})

export type GlobalIngressPolicySpec = z.output<typeof GlobalIngressPolicySpec>

export const GlobalIngressPolicy = defineKind({
  group: FLEET_GROUP,
  version: FLEET_VERSION,
  kind: 'GlobalIngressPolicy',
  plural: 'globalingresspolicies',
  shortNames: ['gip'],
  namespaced: true,
  description: 'Placement, traffic, health checks and migration of roots of one namespace.',
  spec: GlobalIngressPolicySpec,
  status: z.object({ observedGeneration: z.int().optional(), conditions: conditionsSchema.optional() }),
  printerColumns: [
    { name: 'Strategy', type: 'string', jsonPath: '.spec.traffic.strategy' },
    { name: 'Min', type: 'integer', jsonPath: '.spec.placement.minClusters' },
    { name: 'Max', type: 'integer', jsonPath: '.spec.placement.maxClusters' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
})
/** In the manager's namespace: of roots without a policy of their own. */
export const DEFAULT_POLICY_NAME = 'default'
export type GlobalIngressPolicy = ObjectOf<typeof GlobalIngressPolicy>

/** The policy of a root without any. */
export const DEFAULT_POLICY: GlobalIngressPolicySpec = GlobalIngressPolicySpec.parse({})

/** Octets of JSON of all patches of a policy. */
const MAX_PATCH_OCTETS = 64 * 1024

/** Parsed here too: the CRD on the hub may be older. */
export function parsePolicySpec(
  spec: unknown,
): { readonly spec: GlobalIngressPolicySpec } | { readonly path: string; readonly message: string } {
  const parsed = GlobalIngressPolicySpec.safeParse(spec)
  if (parsed.success) {
    const octets = octetsOf(parsed.data.overrides ?? [])
    if (octets <= MAX_PATCH_OCTETS) return { spec: parsed.data }
    return { path: 'spec.overrides', message: `has more than ${MAX_PATCH_OCTETS} octets; make the patches smaller` }
  }
  const [issue] = parsed.error.issues
  return { path: `spec.${issue?.path.join('.') ?? ''}`, message: issue?.message ?? 'is invalid' }
}

/** Of JSON; infinite when it is nested too deeply to be written. */
function octetsOf(value: unknown): number {
  try {
    return Buffer.byteLength(JSON.stringify(value))
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
