/** The `gateway` section of the manager's configuration: the data plane of this cluster inside `seamark run`. */
import { LIVE } from '../live-setting.ts'
import { z } from 'zod'

const listenAddress = z
  .string()
  .regex(/^(?:\[[0-9a-fA-F:.]+\]|[^\s:[\]]*):\d{1,5}$/, { error: 'is no HOST:PORT such as :8080 or [::1]:8080' })
const objectKey = z.string().regex(/^(?:[^/\s]+\/[^/\s]+)?$/, { error: 'is no NAMESPACE/NAME' })

export const GatewayConfig = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe('serve Ingress, HTTPProxy and Gateway API with the built-in proxy or Envoy, on every replica'),
  mode: z
    .enum(['cluster', 'global'])
    .default('cluster')
    .describe('cluster: Services behind routes; global: member clusters behind the hosts of GlobalIngresses'),
  httpListen: listenAddress.default(':8080').describe('HOST:PORT for HTTP'),
  httpsListen: listenAddress.default(':8443').describe('HOST:PORT for HTTPS'),
  listenerAddresses: z
    .array(z.string().regex(/^\d{1,5}=\S*:\d{1,5}$/, { error: 'is no PORT=HOST:PORT such as 8081=:18081' }))
    .default([])
    .describe(
      'PORT=HOST:PORT for ports of Gateways besides the main ones; other ports: the host of httpListen or httpsListen and the port',
    ),
  listenerPortOffset: z
    .int()
    .default(0)
    .describe('added to a port of a Gateway besides the main ones that listenerAddresses does not contain'),
  envoy: z
    .string()
    .min(1)
    .default('off')
    .describe(
      'data plane: off is the built-in proxy; auto is Envoy where the program is found; a path is the program; external is Envoys that others run',
    ),
  envoyDirectory: z
    .string()
    .default('')
    .describe('folder of the Envoy that this process runs; empty: one below the folder for temporary files'),
  xdsListen: listenAddress
    .or(z.literal(''))
    .default('')
    .describe('HOST:PORT for Envoys that others run; empty: 127.0.0.1:8001 with envoy external, else none'),
  xdsCaFile: z.string().default('').describe('authority of the certificates of Envoys on the xDS port'),
  xdsCertificateFile: z.string().default('').describe('certificate of the xDS port; read again when it changes'),
  xdsKeyFile: z.string().default('').describe('private key of the xDS port'),
  xdsSecret: z
    .string()
    .default('')
    .describe(
      "Secret in the manager's namespace with the certificate of the xDS port; the manager creates and renews it, with gateway.xdsClientSecret, in place of the files",
    ),
  xdsClientSecret: z
    .string()
    .default('')
    .describe(
      'Secret beside it with the certificate of Envoys: ca.crt of the one, tls.crt and tls.key of the other are for them',
    ),
  xdsDnsNames: z
    .array(z.string())
    .default([])
    .describe('names by which Envoys connect to the xDS port, such as SERVICE.NAMESPACE.svc'),
  xdsInsecure: z
    .boolean()
    .default(false)
    .describe('the xDS port without TLS: whoever reaches it reads all certificates with their keys'),
  ingressClassNames: z
    .array(z.string())
    .default([])
    .describe('classes of Ingress and HTTPProxy that are served; empty: contour, seamark and objects without a class')
    .meta(LIVE),
  rootNamespaces: z
    .array(z.string())
    .default([])
    .describe('namespaces that may contain root HTTPProxies; empty: all')
    .meta(LIVE),
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
