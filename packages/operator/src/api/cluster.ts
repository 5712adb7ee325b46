/**
 * `Cluster`, `seamark.io/v1alpha1`: a member cluster on which leaves may be placed. Cluster-scoped: only administrators of
 * the hub register members.
 *
 * Its credentials are the kubeconfig of a Secret in the manager's namespace with the label `seamark.io/cluster=NAME`
 * (clusters/registry.ts). Steady state writes nothing: `lastContact` is written only when contact is lost.
 */
import { conditionsSchema, defineKind, type ObjectOf } from '@seamark/kube/crd'
import { z } from 'zod'

/** The API group of every kind of the fleet. */
export const FLEET_GROUP = 'seamark.io'
export const FLEET_VERSION = 'v1alpha1'

const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/

export const TAINT_EFFECTS = ['NoPlace', 'NoTraffic'] as const

const ParentMapping = z.object({
  from: z.object({ namespace: z.string().optional(), name: z.string() }),
  to: z.object({ namespace: z.string().optional(), name: z.string(), sectionName: z.string().optional() }),
})

const ClusterSpec = z
  .object({
    kubeconfigSecretRef: z
      .object({ name: z.string().min(1).max(253) })
      .optional()
      .describe("Secret in the manager's namespace. Default: the one with the label seamark.io/cluster=NAME."),
    location: z
      .object({ geo: z.string().optional(), region: z.string().optional(), zone: z.string().optional() })
      .optional()
      .describe('Where the cluster is. Placement spreads over these, and over the labels of the Cluster.'),
    weight: z.int().min(0).max(1000).default(100).describe('Share of traffic, and preference in placement.'),
    taints: z
      .array(
        z.object({
          key: z.string().min(1).max(253),
          value: z.string().max(63).optional(),
          effect: z.enum(TAINT_EFFECTS),
        }),
      )
      .max(32)
      .optional()
      .describe('NoPlace: no new leaves unless tolerated. NoTraffic: leaves stay and receive no traffic.'),
    drain: z
      .object({
        enabled: z.boolean().default(false),
        deadline: z.iso
          .datetime({ offset: true })
          .optional()
          .describe(
            'From this time on drainSeconds of policies is not waited for, only the time of DNS caches; leaves that are left are reported. A host never becomes unreachable.',
          ),
      })
      .optional()
      .describe('Move all traffic and leaves away, in the order that keeps every host reachable.'),
    allowedNamespaces: z
      .array(z.string())
      .max(1000)
      .optional()
      .describe('Namespaces whose roots may be placed here. Default: all.'),
    ingress: z
      .object({
        ingressClassMap: z
          .record(z.string(), z.string())
          .optional()
          .describe("IngressClass of the hub → of the member. Default: the member's default class."),
        parentRefMap: z.array(ParentMapping).max(64).optional().describe('Gateway of the hub → Gateway of the member.'),
        routerName: z.string().optional().describe('Only this OpenShift router admits Routes. Default: any.'),
        addressOverride: z
          .array(z.string())
          .max(32)
          .optional()
          .describe('Addresses to publish instead of those in the status of the leaf.'),
        excludeAddresses: z.array(z.string()).max(64).optional().describe('Addresses that are never published.'),
      })
      .optional(),
    namespacePolicy: z
      .enum(['Create', 'Require'])
      .default('Require')
      .describe('Whether a missing namespace is created on the member.'),
  })
  .prefault({})

const ClusterStatus = z.object({
  observedGeneration: z.int().optional(),
  clusterUID: z.string().optional().describe('UID of the namespace kube-system of the member.'),
  version: z.string().optional(),
  servedKinds: z.array(z.string()).optional().describe('Kinds of roots that the member serves.'),
  lastContact: z.string().optional().describe('RFC 3339; written when contact is lost.'),
  leafCount: z.int().optional(),
  orphans: z
    .array(z.object({ kind: z.string(), namespace: z.string(), name: z.string(), since: z.string() }))
    .optional()
    .describe('Objects that could not be deleted on the member; deleted when it returns.'),
  conditions: conditionsSchema.optional(),
})

export const Cluster = defineKind({
  group: FLEET_GROUP,
  version: FLEET_VERSION,
  kind: 'Cluster',
  plural: 'clusters',
  namespaced: false,
  description: 'A member cluster on which leaves of global ingresses may be placed.',
  spec: ClusterSpec,
  status: ClusterStatus,
  printerColumns: [
    { name: 'Ready', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].status" },
    { name: 'Reason', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].reason" },
    { name: 'Weight', type: 'integer', jsonPath: '.spec.weight' },
    { name: 'Drain', type: 'boolean', jsonPath: '.spec.drain.enabled' },
    { name: 'Leaves', type: 'integer', jsonPath: '.status.leafCount' },
    { name: 'Version', type: 'string', jsonPath: '.status.version', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  rules: [
    {
      rule: "self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
      message: 'the name must be a DNS label of at most 40 characters: it is part of the names of leaves',
    },
  ],
})
export type Cluster = ObjectOf<typeof Cluster>

export function isClusterName(name: string): boolean {
  return name.length <= 40 && NAME.test(name)
}
