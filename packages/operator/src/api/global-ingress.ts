/**
 * `GlobalIngress`, `seamark.io/v1alpha1`: a root as a whole: its hosts, its clusters and its state. One per root, owned by
 * it. DNS objects exist only while `spec.published` is true.
 */
import { conditionsSchema, defineKind, type ObjectOf } from '@seamark/kube/crd'
import { z } from 'zod'
import { FLEET_GROUP, FLEET_VERSION } from './cluster.ts'
import { STRATEGIES } from './global-ingress-policy.ts'
import { PHASES } from './leaf-ingress.ts'

const GlobalIngressSpec = z.object({
  rootRef: z.object({ apiVersion: z.string(), kind: z.string(), name: z.string(), uid: z.string() }),
  hosts: z.array(z.object({ host: z.string(), managed: z.string().optional() })).describe('Owned hosts.'),
  clusters: z
    .array(
      z.object({
        name: z.string(),
        state: z.enum(['Active', 'NoTraffic', 'Draining']),
        weight: z.int().optional(),
        priority: z.int().optional(),
        geo: z.string().optional(),
      }),
    )
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }),
  strategy: z.enum(STRATEGIES),
  failback: z.enum(['Auto', 'Manual']),
  ttlSeconds: z.int(),
  formerTtls: z
    .array(z.object({ ttlSeconds: z.int(), replacedAt: z.string().describe('RFC 3339.') }))
    .optional()
    .describe(
      'Higher TTLs that the hosts had before: a leaf that is withdrawn stays for twice the highest of the last hour.',
    ),
  onAllUnhealthy: z.enum(['ServeLast', 'ServeAll', 'Remove']),
  health: z
    .object({
      scheme: z.enum(['http', 'https', 'tcp']),
      port: z.int(),
      path: z.string().optional(),
      host: z.string().optional(),
      statusCodes: z.array(z.int()).optional(),
      expectedStatus: z.array(z.string()).optional().describe('Instead of statusCodes, when there is a range.'),
      intervalSeconds: z.int().optional(),
      timeoutSeconds: z.int().optional(),
      rise: z.int().optional(),
      fall: z.int().optional(),
    })
    .describe('How a leaf is probed.'),
  isProbeRequired: z.boolean().describe('Whether a leaf needs a successful probe before it serves.'),
  drainSeconds: z.int(),
  minHoldSeconds: z.int(),
  propagationTimeoutSeconds: z.int(),
  statusMode: z.enum(['Auto', 'Merged', 'ManagedHost']),
  published: z.boolean().describe('Whether DNS objects exist: set when the first leaf is admitted and healthy.'),
})
export type GlobalIngressSpec = z.output<typeof GlobalIngressSpec>

const GlobalIngressStatus = z.object({
  observedGeneration: z.int().optional(),
  leaves: z
    .array(
      z.object({
        cluster: z.string(),
        phase: z.enum(PHASES),
        reason: z.string(),
        admitted: z.boolean(),
        stale: z.boolean().optional(),
        endpointsReady: z.int().optional(),
        addresses: z.array(z.string()),
        published: z.boolean(),
      }),
    )
    .optional(),
  policy: z
    .string()
    .optional()
    .describe('Where the settings come from: GlobalIngressPolicy NAMESPACE/NAME, or the annotations of the root.'),
  addresses: z.array(z.string()).optional().describe('Addresses of all leaves that serve, merged and sorted.'),
  answered: z
    .array(z.string())
    .optional()
    .describe(
      'What the DNS servers of the hosts answer, sorted: addresses, and names of CNAMEs. Absent: not asked yet, or fleet.verifyDns is off.',
    ),
  spareClusters: z
    .array(z.string())
    .optional()
    .describe('Clusters that could take a leaf when one is drained: eligible, and more than maxClusters asks for.'),
  notPlaced: z
    .array(z.object({ reason: z.string(), message: z.string(), clusters: z.array(z.string()) }))
    .optional()
    .describe('Why clusters have no leaf, and what to change; clusters with the same reason together.'),
  withdrawnAt: z.string().optional().describe('RFC 3339, when the DNS objects of a deleted root were gone.'),
  leavesUntil: z
    .string()
    .optional()
    .describe('RFC 3339, until when the leaves of a deleted root stay because caches may have its addresses.'),
  conditions: conditionsSchema.optional(),
})
export type GlobalIngressStatus = z.output<typeof GlobalIngressStatus>

export const GlobalIngress = defineKind({
  group: FLEET_GROUP,
  version: FLEET_VERSION,
  kind: 'GlobalIngress',
  plural: 'globalingresses',
  shortNames: ['gi'],
  namespaced: true,
  description: 'A root ingress as a whole: hosts, clusters and state. Generated.',
  spec: GlobalIngressSpec,
  status: GlobalIngressStatus,
  printerColumns: [
    { name: 'Root', type: 'string', jsonPath: '.spec.rootRef.name' },
    { name: 'Hosts', type: 'string', jsonPath: '.spec.hosts[*].host' },
    { name: 'Ready', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].status" },
    { name: 'Message', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].message" },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
})
export type GlobalIngress = ObjectOf<typeof GlobalIngress>
