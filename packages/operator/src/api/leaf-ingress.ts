/**
 * `LeafIngress`, `seamark.io/v1alpha1`: one root on one member cluster. Written by the planner, read by the syncer of that
 * cluster; its status has the phase of the leaf, so that a migration continues after a restart.
 */
import { conditionsSchema, defineKind, type ObjectOf } from '@seamark/kube/crd'
import { z } from 'zod'
import { FLEET_GROUP, FLEET_VERSION } from './cluster.ts'

/** In the order of a leaf's life (fleet/decide/leaf-phase.ts). */
export const PHASES = [
  'Pending',
  'Applied',
  'Admitted',
  'Warming',
  'Active',
  'Unhealthy',
  'Draining',
  'Drained',
] as const
export type Phase = (typeof PHASES)[number]

const LeafIngressSpec = z.object({
  cluster: z.string().describe('Name of the Cluster.'),
  manifests: z
    .array(z.looseObject({ apiVersion: z.string(), kind: z.string(), metadata: z.looseObject({}) }))
    .max(8)
    .describe('Objects to apply on the member.'),
  specHash: z.string(),
  lifecycle: z.enum(['Active', 'NoTraffic', 'Draining']).describe('NoTraffic: the leaf stays and gets no traffic.'),
  force: z.boolean().optional().describe('Take over fields that another manager owns.'),
  adopt: z.boolean().optional().describe('Take over an object that exists on the member and is not ours.'),
  namespacePolicy: z.enum(['Create', 'Require']).optional(),
})

const Address = z.object({ type: z.enum(['IPAddress', 'Hostname']), value: z.string() })

const LeafIngressStatus = z.object({
  observedGeneration: z.int().optional(),
  phase: z.enum(PHASES).optional(),
  phaseSince: z.string().optional().describe('RFC 3339, when the phase began.'),
  reason: z.string().optional().describe('Why the leaf is in this phase.'),
  appliedHash: z.string().optional(),
  remoteUID: z.string().optional(),
  remoteGeneration: z.int().optional(),
  addresses: z.array(Address).optional(),
  admitted: z.boolean().optional(),
  endpointsReady: z.int().optional().describe('Ready endpoints of the Services of the leaf.'),
  stale: z.boolean().optional().describe('The member cannot be read; the other fields are the last known.'),
  drainStartedAt: z.string().optional().describe('RFC 3339, when every DNS server had stopped answering the leaf.'),
  waitsUntil: z
    .string()
    .optional()
    .describe('RFC 3339, until when a leaf that drains stays because caches may have its addresses.'),
  conditions: conditionsSchema.optional(),
})

export type LeafAddress = z.output<typeof Address>
export type LeafIngressStatus = z.output<typeof LeafIngressStatus>

export const LeafIngress = defineKind({
  group: FLEET_GROUP,
  version: FLEET_VERSION,
  kind: 'LeafIngress',
  plural: 'leafingresses',
  shortNames: ['leaf', 'leaves'],
  namespaced: true,
  description: 'One root on one member cluster. Generated.',
  spec: LeafIngressSpec,
  status: LeafIngressStatus,
  printerColumns: [
    { name: 'Cluster', type: 'string', jsonPath: '.spec.cluster' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Reason', type: 'string', jsonPath: '.status.reason' },
    { name: 'Addresses', type: 'string', jsonPath: '.status.addresses[*].value' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
})
export type LeafIngress = ObjectOf<typeof LeafIngress>
