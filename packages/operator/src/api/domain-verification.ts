/**
 * `DomainVerification`, `seamark.io/v1alpha1`: proof that a namespace may use a domain and the names below it: a TXT record
 * `_seamark-challenge.DOMAIN` with the random token of the status.
 */
import { conditionsSchema, defineKind, type ObjectOf } from '@seamark/kube/crd'
import { z } from 'zod'
import { FLEET_GROUP, FLEET_VERSION } from './cluster.ts'

const DomainVerificationStatus = z.object({
  observedGeneration: z.int().optional(),
  token: z.string().optional().describe('Content of the TXT record.'),
  verified: z.boolean().optional(),
  lastChecked: z.string().optional().describe('RFC 3339; of the last check that changed something.'),
  failingSince: z.string().optional().describe('RFC 3339; the proof is revoked after 72 hours.'),
  failures: z.int().optional(),
  conditions: conditionsSchema.optional(),
})
export type DomainVerificationStatus = z.output<typeof DomainVerificationStatus>

export const DomainVerification = defineKind({
  group: FLEET_GROUP,
  version: FLEET_VERSION,
  kind: 'DomainVerification',
  plural: 'domainverifications',
  shortNames: ['dv'],
  namespaced: true,
  description: 'Proof by a TXT record that a namespace may use a domain.',
  spec: z.object({ domain: z.string().min(1).max(253).describe('The domain; names below it are covered.') }),
  status: DomainVerificationStatus,
  printerColumns: [
    { name: 'Domain', type: 'string', jsonPath: '.spec.domain' },
    { name: 'Verified', type: 'boolean', jsonPath: '.status.verified' },
    { name: 'Token', type: 'string', jsonPath: '.status.token', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
})
export type DomainVerification = ObjectOf<typeof DomainVerification>
