/**
 * `DNSLoadBalancer`, `loadbalancer.gardener.cloud/v1beta1`: one DNS name whose records follow the health of endpoints.
 *
 * The schema is the single source of the type and of validation. Field names and states are those of
 * dnslb-controller-manager; every field that it does not have is optional. There are no schema defaults: a default for
 * `type` would contradict an object that sets the older `singleton`.
 */
import { conditionsSchema, defineKind, type ObjectOf } from '@seamark/kube/crd'
import { z } from 'zod'
import { expectedStatus } from '../expected-status.ts'

/** As metav1.Duration is written: `45s`, `1h30m`. */
const DURATION = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/

export const durationText = z.string().regex(DURATION, { error: 'is not a duration like 45s or 1h30m' })

export const HealthCheck = z.object({
  scheme: z.enum(['https', 'http', 'tcp']).optional().describe('Default https.'),
  method: z.enum(['GET', 'HEAD']).optional().describe('Default GET.'),
  port: z.int().min(1).max(65_535).optional().describe('Default 443, or 80 for http.'),
  host: z.string().max(253).optional().describe('Host header. Default: the DNS name.'),
  sni: z.string().max(253).optional().describe('TLS server name. Default: the Host header.'),
  statusCodes: z.array(z.int().min(100).max(599)).min(1).max(20).optional().describe('Default: spec.statusCode.'),
  expectedStatus: expectedStatus
    .optional()
    .describe('Expected statuses: "200", or a range such as "200-299". Overrides statusCodes and statusCode.'),
  bodyContains: z.string().min(1).max(1024).optional().describe('Text that the body must contain.'),
  headers: z.record(z.string().regex(/^[A-Za-z0-9-]{1,64}$/), z.string().max(1024)).optional(),
  verifyTLS: z.boolean().optional().describe('Whether the certificate is verified. Default false.'),
  maxRedirects: z.int().min(0).max(10).optional().describe('Default 10.'),
  profile: z.enum(['default', 'fast']).optional().describe('Timing that the fields below override.'),
  interval: durationText.optional(),
  timeout: durationText.optional(),
  edgeInterval: durationText.optional().describe('Interval while results contradict the verdict.'),
  rise: z.int().min(1).max(10).optional().describe('Successes that make a target healthy.'),
  fall: z.int().min(1).max(10).optional().describe('Failures that make a target unhealthy.'),
})

export const DNSLoadBalancerSpec = z.object({
  DNSName: z.string().optional().describe('The managed DNS name.'),
  dnsname: z.string().optional().describe('Alias of DNSName that later versions of the original write.'),
  healthPath: z.string().max(2048).optional().describe('Path of the health check.'),
  statusCode: z.int().min(0).max(599).optional().describe('Expected status. Default 200.'),
  type: z.string().optional().describe('Balanced (all healthy endpoints) or Exclusive (one). Default Balanced.'),
  singleton: z.boolean().optional().describe('Older form of type: true is Exclusive.'),
  endpointValidityInterval: durationText.optional().describe('Endpoints expire unless renewed. Default: never.'),
  ttl: z.int().min(1).max(86_400).optional().describe('TTL of the records, seconds.'),
  healthCheck: HealthCheck.optional(),
  onAllUnhealthy: z
    .enum(['ServeLast', 'ServeAll', 'Remove'])
    .optional()
    .describe('What is published while no endpoint is healthy. Default ServeLast.'),
  failBack: z
    .enum(['Never', 'Always'])
    .optional()
    .describe('Exclusive: whether to leave a healthy endpoint for one of better priority. Default Never.'),
})

const ActiveEndpoint = z.object({
  name: z.string(),
  ipaddress: z.string().optional(),
  cname: z.string().optional(),
})

const DNSLoadBalancerStatus = z.object({
  state: z.string().optional().describe('healthy, unreachable or Error.'),
  message: z.string().optional(),
  active: z.array(ActiveEndpoint).optional().describe('Endpoints in the records, sorted by name.'),
  observedGeneration: z.int().optional(),
  conditions: conditionsSchema.optional(),
})

export type DNSLoadBalancerSpec = z.output<typeof DNSLoadBalancerSpec>
export type DNSLoadBalancerStatus = z.output<typeof DNSLoadBalancerStatus>

export const LOAD_BALANCER_GROUP = 'loadbalancer.gardener.cloud'

export const DNSLoadBalancer = defineKind({
  group: LOAD_BALANCER_GROUP,
  version: 'v1beta1',
  kind: 'DNSLoadBalancer',
  plural: 'dnsloadbalancers',
  shortNames: ['dnslb'],
  namespaced: true,
  description: 'A DNS name whose records follow the health of its endpoints.',
  spec: DNSLoadBalancerSpec,
  status: DNSLoadBalancerStatus,
  printerColumns: [
    { name: 'DNSName', type: 'string', jsonPath: '.spec.DNSName' },
    { name: 'Type', type: 'string', jsonPath: '.spec.type' },
    { name: 'Status', type: 'string', jsonPath: '.status.state' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Message', type: 'string', jsonPath: '.status.message', priority: 1 },
  ],
})
export type DNSLoadBalancer = ObjectOf<typeof DNSLoadBalancer>
