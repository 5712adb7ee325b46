/** The `gateway` section of the manager's configuration: the data plane of this cluster inside `seamark run`. */
import { z } from 'zod'

const listenAddress = z
  .string()
  .regex(/^(?:\[[0-9a-fA-F:.]+\]|[^\s:[\]]*):\d{1,5}$/, { error: 'is no HOST:PORT such as :8080 or [::1]:8080' })
const objectKey = z.string().regex(/^(?:[^/\s]+\/[^/\s]+)?$/, { error: 'is no NAMESPACE/NAME' })

export const GatewayConfig = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe('serve Ingress, HTTPProxy and Gateway API with the built-in proxy, on every replica'),
  mode: z
    .enum(['cluster', 'global'])
    .default('cluster')
    .describe('cluster: Services behind routes; global: member clusters behind the hosts of GlobalIngresses'),
  httpListen: listenAddress.default(':8080').describe('HOST:PORT for HTTP'),
  httpsListen: listenAddress.default(':8443').describe('HOST:PORT for HTTPS'),
  ingressClassNames: z
    .array(z.string())
    .default([])
    .describe('classes of Ingress and HTTPProxy that are served; empty: contour, seamark and objects without a class'),
  rootNamespaces: z.array(z.string()).default([]).describe('namespaces that may contain root HTTPProxies; empty: all'),
  gateway: objectKey.default('').describe('NAMESPACE/NAME of the Gateway to serve; empty: all of our GatewayClasses'),
  statusAddresses: z
    .array(z.string())
    .default([])
    .describe('addresses or names for statuses; empty: those of gateway.service'),
  service: objectKey
    .default('')
    .describe('NAMESPACE/NAME of the Service of the data plane, whose addresses go to statuses'),
  externalNames: z
    .boolean()
    .default(false)
    .describe('resolve Services of type ExternalName; tenants can then reach any address'),
  lease: z.string().default('seamark-gateway').describe('name of the Lease whose holder writes statuses'),
})
export type GatewayConfig = z.output<typeof GatewayConfig>
