/** Settings of the fleet capability. */
import { LIVE } from '../live-setting.ts'
import { z } from 'zod'
import { duration } from '../duration.ts'

const SERVER = /^(\[[0-9A-Fa-f:.]+\]|[0-9.]+)(:[0-9]{1,5})?$/

export const FleetConfig = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe('place root Ingresses, HTTPRoutes and Routes on registered clusters, and merge their status'),
  roots: z
    .enum(['class', 'all'])
    .default('class')
    .describe(
      'class: only roots of an IngressClass or GatewayClass of the controller seamark.io/global; all: every Ingress of a hub without ingress controllers of its own',
    ),
  hubId: z
    .string()
    .regex(/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/, { error: 'is no label value' })
    .or(z.literal(''))
    .default('')
    .describe('identity of this hub on leaves; empty: the UID of its namespace kube-system'),
  dns: z
    .boolean()
    .default(true)
    .describe('write a DNSLoadBalancer for each host; off: only leaves and the merged status'),
  answeredElsewhere: z
    .boolean()
    .default(false)
    .describe(
      'another process publishes the hosts: ExternalDNS the DNSEndpoints of balance, or another manager the DNSLoadBalancers; else the manager does not start without a zone or provider of its own',
    ),
  verifyDns: z
    .boolean()
    .default(true)
    .describe(
      'ask every authoritative server whether it shows a change before a migration goes on; off: what was published counts as answered',
    ),
  dnsServers: z
    .array(z.string().regex(SERVER, { error: 'is no ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT' }))
    .default([])
    .describe(
      'authoritative servers to ask, ADDRESS:PORT; empty: the DNS server of this manager for its own zones, else the servers of the NS records',
    ),
  contactInterval: duration
    .default('10s')
    .describe('how often the API server of each registered cluster is asked; after three failures it is unreachable'),
  leafAnnotations: z
    .array(z.string())
    .default([
      'nginx.ingress.kubernetes.io/backend-protocol',
      'nginx.ingress.kubernetes.io/force-ssl-redirect',
      'nginx.ingress.kubernetes.io/proxy-body-size',
      'nginx.ingress.kubernetes.io/rewrite-target',
      'nginx.ingress.kubernetes.io/ssl-redirect',
    ])
    .describe('annotations of roots that are copied to leaves; a trailing * allows a prefix; snippets never are')
    .meta(LIVE),
  tlsSecrets: z
    .boolean()
    .default(false)
    .describe(
      'copy TLS Secrets with the label seamark.io/sync: "true" to the clusters whose leaves name them; needs rights to watch Secrets on the hub and to write them on members',
    ),
  orphanAfterSeconds: z
    .number()
    .int()
    .min(0)
    .default(900)
    .describe('how long the deletion of a leaf waits for a cluster that cannot be reached')
    .meta(LIVE),
})

export type FleetConfig = z.output<typeof FleetConfig>

export type FleetOptions = Readonly<Omit<FleetConfig, 'enabled'>>
