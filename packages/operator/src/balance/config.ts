/** The `balance` section of the manager's configuration: the only declaration of its settings and their defaults. */
import { LIVE } from '../live-setting.ts'
import { z } from 'zod'
import { duration } from '../duration.ts'
import { MAX_CHANGES_PER_MINUTE } from './decide/finding.ts'
import type { BalanceDefaults } from './load-balancer.ts'

const ENDPOINT_SOURCES = ['Service', 'Ingress', 'Gateway'] as const

export const BalanceConfig = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe('publish DNSLoadBalancers: DNS names whose records follow the health of their endpoints'),
  sources: z
    .array(z.enum(ENDPOINT_SOURCES))
    .default([...ENDPOINT_SOURCES])
    .describe('kinds whose annotated objects become endpoints of a load balancer'),
  ttl: z
    .number()
    .int()
    .min(1)
    .max(86_400)
    .default(30)
    .describe('TTL in seconds of records whose load balancer gives none')
    .meta(LIVE),
  onAllUnhealthy: z
    .enum(['ServeLast', 'ServeAll', 'Remove'])
    .default('ServeLast')
    .describe('what is published while no endpoint is healthy, where the load balancer says nothing')
    .meta(LIVE),
  ejection: duration
    .default('30s')
    .describe(
      'least time an endpoint that failed its health check stays out; twice as long the next time, and so on, up to ten times',
    ),
  maxChangesPerMinute: z
    .number()
    .int()
    .min(1)
    .max(1000)
    .default(MAX_CHANGES_PER_MINUTE)
    .describe('how often the records of one name may change within a minute; the next change waits')
    .meta(LIVE),
  trustedNamespaces: z
    .array(z.string())
    .default([])
    .describe(
      "namespaces whose health checks may read bodies, send headers and ask other hosts and ports, besides the manager's own; *: every namespace",
    )
    .meta(LIVE),
  resolver: z
    .string()
    .default('')
    .describe('ADDRESS:PORT of the DNS server that resolves names of targets; empty: the servers of the machine'),
})

export type BalanceConfig = z.output<typeof BalanceConfig>

/** A redirect leads where the tenant's server says, so that none is followed. */
export function balanceDefaults({ ttl, onAllUnhealthy, maxChangesPerMinute }: BalanceConfig): BalanceDefaults {
  return { ttlSeconds: ttl, onAllUnhealthy, maxChangesPerMinute, maxRedirects: 0 }
}
