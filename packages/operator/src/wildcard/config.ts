/**
 * The `wildcard` section of the manager's configuration. This schema is the only declaration of wildcard's settings: the
 * options inside (options.ts) and their defaults derive from it.
 */
import { parseLabelSelector } from '@seamark/kube/object'
import { LIVE } from '../live-setting.ts'
import { z } from 'zod'
import { duration } from '../duration.ts'

export const WildcardConfig = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe('publish *.CLUSTER.ZONE for the ready nodes of every registered cluster'),
  zone: z
    .string()
    .default('')
    .describe('zone of *.CLUSTER.ZONE; a Secret may name another with the annotation seamark.io/zone'),
  namePrefix: z.string().default('').describe('prefix of the name of every generated DNSEndpoint'),
  ttl: z
    .number()
    .int()
    .min(1)
    .max(2 ** 31 - 1)
    .default(60)
    .describe('TTL of the records, in seconds')
    .meta(LIVE),
  nodeSelector: z
    .string()
    .refine((text) => typeof parseLabelSelector(text) === 'function', { error: 'is no label selector' })
    .default('')
    .describe('label selector of nodes that may serve; empty: every node')
    .meta(LIVE),
  excludeUnschedulable: z.boolean().default(true).describe('remove a cordoned node at once'),
  allowInternal: z
    .boolean()
    .default(true)
    .describe('publish the internal addresses of a node that has no external address of the family'),
  removalDelay: duration.default('45s').describe('how long a node is not ready before it is removed').meta(LIVE),
  coalesce: duration
    .default('5s')
    .describe('after a write, further changes wait this long and are written together')
    .meta(LIVE),
  minTargets: z
    .number()
    .int()
    .min(0)
    .default(0)
    .describe('do not shrink below this many nodes while nodes that are not ready could fill up; 0: no floor')
    .meta(LIVE),
  onEmpty: z
    .enum(['keep', 'delete'])
    .default('keep')
    .describe('no node is ready: keep the last targets, or delete the DNSEndpoint'),
  apex: z.boolean().default(false).describe('publish CLUSTER.ZONE as well'),
  localCluster: z
    .string()
    .default('')
    .describe('name of the cluster that the manager runs in; empty: only registered clusters are published'),
})

export type WildcardConfig = z.output<typeof WildcardConfig>
