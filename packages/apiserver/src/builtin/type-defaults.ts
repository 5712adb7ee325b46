/** The default rules, one per type. A rule receives only its own object; nested types have their own rules. */
import { isJsonObject } from '../codec/json-object.ts'
import type { JsonObject } from '../codec/json-object.ts'
import { setOwn } from '../codec/object-shape.ts'

type Rule = (object: JsonObject) => void

/** Sets each field that is absent or empty. */
function fields(values: JsonObject): Rule {
  return (object) => {
    for (const [name, value] of Object.entries(values)) {
      const current = object[name]
      if (current === undefined || current === null || current === '') object[name] = structuredClone(value)
    }
  }
}

/** Numbers that are not pointers: 0 means absent. */
function numbers(values: Record<string, number>): Rule {
  return (object) => {
    for (const [name, value] of Object.entries(values)) if ((object[name] ?? 0) === 0) object[name] = value
  }
}

function part(object: JsonObject, name: string): JsonObject {
  const value = object[name]
  if (isJsonObject(value)) return value
  const empty: JsonObject = {}
  object[name] = empty
  return empty
}

function list(value: unknown): JsonObject[] {
  return Array.isArray(value) ? (value as JsonObject[]) : []
}

/** `latest`, or neither tag nor digest: always pulled. */
function pullPolicy(image: unknown): string {
  const name = (typeof image === 'string' ? image : '').replace(/^.*\//, '')
  if (name.includes('@')) return 'IfNotPresent'
  const tag = name.split(':')[1] ?? 'latest'
  return tag === 'latest' ? 'Always' : 'IfNotPresent'
}

function defaultContainer(container: JsonObject): void {
  fields({
    imagePullPolicy: pullPolicy(container['image']),
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
  })(container)
}

function defaultService(service: JsonObject): void {
  const spec = part(service, 'spec')
  fields({ sessionAffinity: 'None', type: 'ClusterIP' })(spec)
  if (spec['sessionAffinity'] === 'None') delete spec['sessionAffinityConfig']
  if (spec['sessionAffinity'] === 'ClientIP') {
    const config = spec['sessionAffinityConfig'] as { clientIP?: { timeoutSeconds?: number } } | undefined
    if (config?.clientIP?.timeoutSeconds === undefined)
      spec['sessionAffinityConfig'] = { clientIP: { timeoutSeconds: 10800 } }
  }
  for (const port of list(spec['ports'])) {
    fields({ protocol: 'TCP' })(port)
    if (port['targetPort'] === undefined || port['targetPort'] === 0 || port['targetPort'] === '')
      port['targetPort'] = port['port']
  }
  defaultTraffic(spec)
  if (spec['type'] !== 'LoadBalancer') return
  fields({ allocateLoadBalancerNodePorts: true })(spec)
  const balancer = (service['status'] as { loadBalancer?: { ingress?: JsonObject[] } } | undefined)?.loadBalancer
  for (const ingress of balancer?.ingress ?? []) if (ingress['ip'] !== undefined) fields({ ipMode: 'VIP' })(ingress)
}

function defaultTraffic(spec: JsonObject): void {
  const type = spec['type']
  const isExternal =
    type === 'LoadBalancer' || type === 'NodePort' || (type === 'ClusterIP' && list(spec['externalIPs']).length > 0)
  if (isExternal) fields({ externalTrafficPolicy: 'Cluster' })(spec)
  if (type === 'NodePort' || type === 'LoadBalancer' || type === 'ClusterIP')
    fields({ internalTrafficPolicy: 'Cluster' })(spec)
}

/** `stringData` is write-only. */
function defaultSecret(secret: JsonObject): void {
  fields({ type: 'Opaque' })(secret)
  const text = secret['stringData']
  if (!isJsonObject(text)) return
  const data = isJsonObject(secret['data']) ? secret['data'] : {}
  for (const key of Object.keys(text)) setOwn(data, key, Buffer.from(String(text[key])).toString('base64'))
  secret['data'] = data
  delete secret['stringData']
}

function defaultPodSpec(spec: JsonObject): void {
  fields({
    dnsPolicy: 'ClusterFirst',
    restartPolicy: 'Always',
    securityContext: {},
    terminationGracePeriodSeconds: 30,
    schedulerName: 'default-scheduler',
  })(spec)
  // `serviceAccount` is the deprecated alias of `serviceAccountName`.
  const { serviceAccount, serviceAccountName } = spec
  const account = typeof serviceAccountName === 'string' ? serviceAccountName : serviceAccount
  if (typeof account === 'string') Object.assign(spec, { serviceAccount: account, serviceAccountName: account })
}

function defaultPod(pod: JsonObject): void {
  const spec = part(pod, 'spec')
  fields({ enableServiceLinks: true })(spec)
  for (const container of [...list(spec['containers']), ...list(spec['initContainers'])]) {
    const resources = container['resources'] as { limits?: JsonObject; requests?: JsonObject } | undefined
    if (resources?.limits !== undefined) resources.requests = { ...resources.limits, ...resources.requests }
    if (spec['hostNetwork'] !== true) continue
    for (const port of list(container['ports'])) numbers({ hostPort: Number(port['containerPort'] ?? 0) })(port)
  }
}

const VOLUME_FIELDS: ReadonlySet<string> = new Set(['name'])

function defaultVolume(volume: JsonObject): void {
  if (Object.keys(volume).every((name) => VOLUME_FIELDS.has(name))) volume['emptyDir'] = {}
  const image = volume['image']
  if (isJsonObject(image)) fields({ pullPolicy: pullPolicy(image['reference']) })(image)
}

function rollingUpdate(strategy: JsonObject, defaults: JsonObject): void {
  fields({ type: 'RollingUpdate' })(strategy)
  if (strategy['type'] === 'RollingUpdate') fields(defaults)(part(strategy, 'rollingUpdate'))
}

function defaultDeployment(deployment: JsonObject): void {
  const spec = part(deployment, 'spec')
  fields({ replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600 })(spec)
  rollingUpdate(part(spec, 'strategy'), { maxUnavailable: '25%', maxSurge: '25%' })
}

function defaultDaemonSet(daemonSet: JsonObject): void {
  const spec = part(daemonSet, 'spec')
  fields({ revisionHistoryLimit: 10 })(spec)
  rollingUpdate(part(spec, 'updateStrategy'), { maxUnavailable: 1, maxSurge: 0 })
}

function defaultStatefulSet(statefulSet: JsonObject): void {
  const spec = part(statefulSet, 'spec')
  fields({ podManagementPolicy: 'OrderedReady', replicas: 1, revisionHistoryLimit: 10 })(spec)
  const strategy = part(spec, 'updateStrategy')
  if (strategy['type'] === undefined || strategy['type'] === '') {
    strategy['type'] = 'RollingUpdate'
    part(strategy, 'rollingUpdate')
  }
  const rolling = strategy['rollingUpdate']
  if (strategy['type'] === 'RollingUpdate' && isJsonObject(rolling)) fields({ partition: 0 })(rolling)
  fields({ whenDeleted: 'Retain', whenScaled: 'Retain' })(part(spec, 'persistentVolumeClaimRetentionPolicy'))
}

function templateLabels(object: JsonObject): JsonObject | undefined {
  const template = (object['spec'] as { template?: { metadata?: { labels?: JsonObject } } } | undefined)?.template
  return template?.metadata?.labels
}

function labelLikeTemplate(object: JsonObject): void {
  const labels = templateLabels(object)
  const metadata = part(object, 'metadata')
  if (labels !== undefined && Object.keys((metadata['labels'] as JsonObject | undefined) ?? {}).length === 0) {
    metadata['labels'] = { ...labels }
  }
}

function defaultReplicationController(object: JsonObject): void {
  const labels = templateLabels(object)
  labelLikeTemplate(object)
  if (labels !== undefined) fields({ selector: labels })(part(object, 'spec'))
  fields({ replicas: 1 })(part(object, 'spec'))
}

function defaultJob(job: JsonObject): void {
  const spec = part(job, 'spec')
  if (spec['completions'] === undefined && spec['parallelism'] === undefined) spec['completions'] = 1
  fields({
    parallelism: 1,
    backoffLimit: spec['backoffLimitPerIndex'] === undefined ? 6 : 2147483647,
    completionMode: 'NonIndexed',
    suspend: false,
    podReplacementPolicy: spec['podFailurePolicy'] === undefined ? 'TerminatingOrFailed' : 'Failed',
    manualSelector: false,
  })(spec)
  labelLikeTemplate(job)
}

function defaultNamespace(namespace: JsonObject): void {
  const metadata = part(namespace, 'metadata')
  const { name } = metadata
  if (typeof name === 'string' && name !== '')
    metadata['labels'] = { ...(metadata['labels'] as JsonObject | undefined), 'kubernetes.io/metadata.name': name }
}

function defaultNetworkPolicy(policy: JsonObject): void {
  const spec = part(policy, 'spec')
  if (list(spec['policyTypes']).length > 0) return
  spec['policyTypes'] = list(spec['egress']).length > 0 ? ['Ingress', 'Egress'] : ['Ingress']
}

const RBAC_GROUP = 'rbac.authorization.k8s.io'

function defaultRoleRef(binding: JsonObject): void {
  fields({ apiGroup: RBAC_GROUP })(part(binding, 'roleRef'))
}

function defaultSubject(subject: JsonObject): void {
  if (subject['kind'] === 'User' || subject['kind'] === 'Group') fields({ apiGroup: RBAC_GROUP })(subject)
}

const WEBHOOK = {
  failurePolicy: 'Fail',
  matchPolicy: 'Equivalent',
  namespaceSelector: {},
  objectSelector: {},
  timeoutSeconds: 10,
}

function defaultCrd(crd: JsonObject): void {
  const spec = part(crd, 'spec')
  const names = part(spec, 'names')
  const kind = typeof names['kind'] === 'string' ? names['kind'] : ''
  fields({ singular: kind.toLowerCase(), ...(kind !== '' && { listKind: `${kind}List` }) })(names)
  fields({ conversion: { strategy: 'None' } })(spec)
  const status = part(crd, 'status')
  if (list(status['storedVersions']).length > 0) return
  const storage = list(spec['versions']).find((version) => version['storage'] === true)
  if (storage !== undefined) status['storedVersions'] = [storage['name']]
}

function defaultAutoscaler(autoscaler: JsonObject): void {
  const spec = part(autoscaler, 'spec')
  fields({ minReplicas: 1 })(spec)
  if (list(spec['metrics']).length === 0) {
    spec['metrics'] = [
      { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } } },
    ]
  }
  const behavior = spec['behavior']
  if (!isJsonObject(behavior)) return
  const up = [
    { type: 'Pods', value: 4, periodSeconds: 15 },
    { type: 'Percent', value: 100, periodSeconds: 15 },
  ]
  fields({ stabilizationWindowSeconds: 0, selectPolicy: 'Max', policies: up })(part(behavior, 'scaleUp'))
  fields({ selectPolicy: 'Max', policies: [{ type: 'Percent', value: 100, periodSeconds: 15 }] })(
    part(behavior, 'scaleDown'),
  )
}

const MODE_0644 = 420

export const TYPE_DEFAULTS: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['core.v1.Service', defaultService],
  ['core.v1.Pod', defaultPod],
  ['core.v1.PodSpec', defaultPodSpec],
  ['core.v1.Container', defaultContainer],
  ['core.v1.EphemeralContainer', defaultContainer],
  ['core.v1.Volume', defaultVolume],
  ['core.v1.Probe', numbers({ timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 })],
  ['core.v1.HTTPGetAction', fields({ path: '/', scheme: 'HTTP' })],
  ['core.v1.SecretVolumeSource', fields({ defaultMode: MODE_0644 })],
  ['core.v1.ConfigMapVolumeSource', fields({ defaultMode: MODE_0644 })],
  ['core.v1.DownwardAPIVolumeSource', fields({ defaultMode: MODE_0644 })],
  ['core.v1.ProjectedVolumeSource', fields({ defaultMode: MODE_0644 })],
  ['core.v1.ServiceAccountTokenProjection', fields({ expirationSeconds: 3600 })],
  ['core.v1.HostPathVolumeSource', (source) => void (source['type'] ??= '')],
  ['core.v1.ObjectFieldSelector', fields({ apiVersion: 'v1' })],
  ['core.v1.Secret', defaultSecret],
  ['core.v1.EndpointPort', fields({ protocol: 'TCP' })],
  ['core.v1.Namespace', defaultNamespace],
  ['core.v1.NamespaceStatus', fields({ phase: 'Active' })],
  ['core.v1.PersistentVolumeSpec', fields({ persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem' })],
  ['core.v1.PersistentVolumeStatus', fields({ phase: 'Pending' })],
  ['core.v1.PersistentVolumeClaimSpec', fields({ volumeMode: 'Filesystem' })],
  ['core.v1.PersistentVolumeClaimStatus', fields({ phase: 'Pending' })],
  ['core.v1.ReplicationController', defaultReplicationController],
  ['apps.v1.Deployment', defaultDeployment],
  ['apps.v1.DaemonSet', defaultDaemonSet],
  ['apps.v1.StatefulSet', defaultStatefulSet],
  ['apps.v1.ReplicaSetSpec', fields({ replicas: 1 })],
  ['batch.v1.Job', defaultJob],
  [
    'batch.v1.CronJobSpec',
    fields({ concurrencyPolicy: 'Allow', suspend: false, successfulJobsHistoryLimit: 3, failedJobsHistoryLimit: 1 }),
  ],
  ['batch.v1.PodFailurePolicyOnPodConditionsPattern', fields({ status: 'True' })],
  ['networking.v1.NetworkPolicy', defaultNetworkPolicy],
  ['networking.v1.NetworkPolicyPort', fields({ protocol: 'TCP' })],
  ['networking.v1.IngressClassParametersReference', fields({ scope: 'Cluster' })],
  [
    'discovery.v1.EndpointPort',
    (port) => {
      port['name'] ??= ''
      port['protocol'] ??= 'TCP'
    },
  ],
  ['rbac.v1.RoleBinding', defaultRoleRef],
  ['rbac.v1.ClusterRoleBinding', defaultRoleRef],
  ['rbac.v1.Subject', defaultSubject],
  ['admissionregistration.v1.ValidatingWebhook', fields(WEBHOOK)],
  ['admissionregistration.v1.MutatingWebhook', fields({ ...WEBHOOK, reinvocationPolicy: 'Never' })],
  ['admissionregistration.v1.RuleWithOperations', fields({ scope: '*' })],
  ['admissionregistration.v1.ServiceReference', fields({ port: 443 })],
  ['apiextensions.v1.CustomResourceDefinition', defaultCrd],
  ['apiextensions.v1.ServiceReference', fields({ port: 443 })],
  ['storage.v1.StorageClass', fields({ reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' })],
  ['scheduling.v1.PriorityClass', fields({ preemptionPolicy: 'PreemptLowerPriority' })],
  ['autoscaling.v2.HorizontalPodAutoscaler', defaultAutoscaler],
])
