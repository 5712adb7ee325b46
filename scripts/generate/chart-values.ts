/** charts/seamark/values.schema.json: the values of the chart, of which `config` is the configuration of the manager. */
import { configurationSchema, type JsonSchema } from '../../packages/operator/src/config.ts'
import { z } from 'zod'

const text = (what: string) => z.string().describe(what)
const strings = z.record(z.string(), z.string())
/** Parts of a Pod, which the API server checks. */
const open = z.looseObject({})
const list = z.array(open)

const image = z.strictObject({
  repository: text('without a tag'),
  tag: text('empty: the version of the chart'),
  digest: z
    .string()
    .regex(/^(sha256:[0-9a-f]{64})?$/)
    .describe('wins over the tag'),
  pullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']),
})

const service = {
  type: z.enum(['LoadBalancer', 'NodePort', 'ClusterIP']),
  annotations: strings,
  loadBalancerClass: z.string(),
  externalTrafficPolicy: z.enum(['Local', 'Cluster']).describe('Local keeps the addresses of clients'),
  loadBalancerSourceRanges: z.array(z.string()),
}

const Values = z
  .strictObject({
    global: z.looseObject({}).describe('of a chart that contains this one; not used'),
    mode: z.enum(['observe', 'enforce']).describe('observe: decide and report, write nothing; enforce: write'),
    config: z.unknown(),
    image,
    imagePullSecrets: z.array(z.strictObject({ name: z.string() })),
    replicaCount: z.int().min(1).describe('one of them writes, the others wait for its Lease; all of them serve'),
    crds: z.strictObject({
      enabled: z.boolean().describe("the CRDs of Seamark's own kinds; without: the manager installs them"),
      keep: z.boolean().describe('they stay when the release is uninstalled'),
    }),
    rbac: z.strictObject({ create: z.boolean() }),
    serviceAccount: z.strictObject({ create: z.boolean(), name: z.string(), annotations: strings }),
    dns: z.strictObject({
      enabled: z.boolean().describe('serve config.dns.zones'),
      service: z.strictObject(service),
      secondaries: z.array(z.string()).describe('HOST:PORT of servers that copy the zones'),
    }),
    gateway: z.strictObject({
      dataPlane: z.enum(['envoy', 'built-in']).describe('of config.gateway'),
      kind: z.enum(['Deployment', 'DaemonSet']).describe('how Envoys run'),
      replicaCount: z.int().min(1),
      image,
      service: z.strictObject({
        ...service,
        extraPorts: z.array(
          z.strictObject({ port: z.int().min(1_024).max(65_535), protocol: z.enum(['TCP', 'UDP']).optional() }),
        ),
      }),
      resources: open,
      nodeSelector: strings,
      tolerations: list,
      affinity: open,
    }),
    admission: z.strictObject({
      enabled: z
        .boolean()
        .describe('webhooks that refuse names without a grant, and version v1 of the load balancing kinds'),
      failurePolicy: z.enum(['Ignore', 'Fail']),
      timeoutSeconds: z.int().min(1).max(30),
    }),
    dashboard: z.strictObject({
      enabled: z.boolean().describe('the page, also for people outside its Pod; else kubectl port-forward reaches it'),
      tlsSecret: z.string().describe('Secret of type kubernetes.io/tls with its certificate'),
      service: z.strictObject({ type: z.enum(['ClusterIP', 'LoadBalancer', 'NodePort']), annotations: strings }),
    }),
    metrics: z.strictObject({ service: z.strictObject({ enabled: z.boolean(), annotations: strings }) }),
    serviceMonitor: z.strictObject({
      enabled: z.boolean().describe('of the operator of Prometheus'),
      interval: z.string().regex(/^[0-9]+(ms|s|m)$/),
      labels: strings,
    }),
    prometheusRule: z.strictObject({ enabled: z.boolean().describe('the alerts'), labels: strings }),
    grafanaDashboards: z.strictObject({
      enabled: z.boolean().describe('a ConfigMap for the sidecar of Grafana'),
      labels: strings,
      annotations: strings,
    }),
    podDisruptionBudget: z.strictObject({
      enabled: z.boolean(),
      maxUnavailable: z.union([z.int().min(1), z.string().regex(/^[0-9]+%$/)]),
    }),
    networkPolicy: z.strictObject({ enabled: z.boolean(), egress: list }),
    resources: open,
    priorityClassName: z.string(),
    nodeSelector: strings,
    tolerations: list,
    affinity: open,
    topologySpreadConstraints: list,
    podAnnotations: strings,
    podLabels: strings,
    extraEnv: list,
    drainSeconds: z.int().min(1).describe('before a Pod is ended, while load balancers stop sending to it'),
  })
  .partial()

/** Helm merges values with the defaults before it validates them: only that no section is removed with null is required. */
export function valuesSchema(): string {
  const schema = z.toJSONSchema(Values, { target: 'draft-7', io: 'input', unrepresentable: 'any' }) as JsonSchema
  const { $schema: _, ...config } = configurationSchema() as JsonSchema & { $schema?: string }
  const properties = { ...schema.properties, config: forHelm(config) }
  // Without a section templates could not say what is wrong.
  const required = Object.keys(properties).filter((key) => key !== 'global')
  return `${JSON.stringify({ ...forHelm({ ...schema, properties, required }), title: 'Values of the chart seamark' }, undefined, 2)}\n`
}

const DURATION = '^(0|([0-9]+(\\.[0-9]+)?(ms|s|m|h))+)$'

/** `takesEffect` is a keyword of ours. The format `duration` of JSON Schema is another one than ours. */
function forHelm(schema: JsonSchema): JsonSchema {
  return JSON.parse(
    JSON.stringify(schema, (key, value: unknown) => {
      if (key === 'takesEffect') return undefined
      const { format, ...rest } = (value ?? {}) as { format?: unknown }
      return format === 'duration' ? { ...rest, pattern: DURATION } : value
    }),
  ) as JsonSchema
}
