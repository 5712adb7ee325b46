/** What the server fills into objects of built-in kinds when they are written. In place, like the typed decoder does it. */
import { type ApiObject, asRecords, getPath, isRecord, type Json, setOwn } from '../object-shape.ts'
import { fill, fillPodSpec, fillTemplate } from './pod-defaults.ts'

const rbac = 'rbac.authorization.k8s.io'

function specOf(object: ApiObject): Json {
  if (!isRecord(object['spec'])) object['spec'] = {}
  return object['spec'] as Json
}

function fillRollingUpdate(spec: Json, key: string, values: Json): void {
  if (!isRecord(spec[key])) spec[key] = {}
  const strategy = spec[key] as Json
  fill(strategy, 'type', 'RollingUpdate')
  if (strategy['type'] !== 'RollingUpdate') return
  if (!isRecord(strategy['rollingUpdate'])) strategy['rollingUpdate'] = {}
  for (const [name, value] of Object.entries(values)) fill(strategy['rollingUpdate'] as Json, name, value)
}

function fillService(object: ApiObject): void {
  const spec = specOf(object)
  fill(spec, 'sessionAffinity', 'None')
  if (spec['sessionAffinity'] === 'None') delete spec['sessionAffinityConfig']
  else if (getPath(spec, 'sessionAffinityConfig', 'clientIP', 'timeoutSeconds') === undefined) {
    spec['sessionAffinityConfig'] = { clientIP: { timeoutSeconds: 10_800 } }
  }
  fill(spec, 'type', 'ClusterIP')
  for (const port of asRecords(spec['ports'])) {
    fill(port, 'protocol', 'TCP')
    if (port['targetPort'] === undefined || port['targetPort'] === 0 || port['targetPort'] === '')
      port['targetPort'] = port['port']
  }
  const type = spec['type']
  const isExternal =
    type === 'LoadBalancer' || type === 'NodePort' || (type === 'ClusterIP' && asArray(spec['externalIPs']).length > 0)
  if (isExternal) fill(spec, 'externalTrafficPolicy', 'Cluster')
  if (type !== 'ExternalName') fill(spec, 'internalTrafficPolicy', 'Cluster')
  if (type !== 'LoadBalancer') return
  fill(spec, 'allocateLoadBalancerNodePorts', true)
  for (const point of asRecords(getPath(object, 'status', 'loadBalancer', 'ingress'))) {
    if (typeof point['ip'] === 'string') fill(point, 'ipMode', 'VIP')
  }
}

const asArray = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

function fillDeployment(object: ApiObject): void {
  const spec = specOf(object)
  fill(spec, 'replicas', 1)
  fillRollingUpdate(spec, 'strategy', { maxUnavailable: '25%', maxSurge: '25%' })
  fill(spec, 'revisionHistoryLimit', 10)
  fill(spec, 'progressDeadlineSeconds', 600)
  fillTemplate(spec)
}

function fillStatefulSet(object: ApiObject): void {
  const spec = specOf(object)
  fill(spec, 'podManagementPolicy', 'OrderedReady')
  fillRollingUpdate(spec, 'updateStrategy', { partition: 0 })
  if (!isRecord(spec['persistentVolumeClaimRetentionPolicy'])) spec['persistentVolumeClaimRetentionPolicy'] = {}
  for (const key of ['whenDeleted', 'whenScaled'])
    fill(spec['persistentVolumeClaimRetentionPolicy'] as Json, key, 'Retain')
  fill(spec, 'replicas', 1)
  fill(spec, 'revisionHistoryLimit', 10)
  fillTemplate(spec)
}

function fillJobSpec(spec: Json): void {
  if (spec['completions'] === undefined && spec['parallelism'] === undefined) spec['completions'] = 1
  fill(spec, 'parallelism', 1)
  fill(spec, 'backoffLimit', 6)
  fill(spec, 'completionMode', 'NonIndexed')
  fill(spec, 'suspend', false)
  fill(spec, 'podReplacementPolicy', spec['podFailurePolicy'] === undefined ? 'TerminatingOrFailed' : 'Failed')
  fill(spec, 'manualSelector', false)
  fillTemplate(spec)
}

function fillBinding(object: ApiObject): void {
  const role = object['roleRef']
  if (isRecord(role)) fill(role, 'apiGroup', rbac)
  for (const subject of asRecords(object['subjects'])) {
    if (subject['kind'] === 'User' || subject['kind'] === 'Group') fill(subject, 'apiGroup', rbac)
  }
}

function fillWebhooks(object: ApiObject, isMutating: boolean): void {
  for (const webhook of asRecords(object['webhooks'])) {
    fill(webhook, 'failurePolicy', 'Fail')
    fill(webhook, 'matchPolicy', 'Equivalent')
    fill(webhook, 'namespaceSelector', {})
    fill(webhook, 'objectSelector', {})
    fill(webhook, 'timeoutSeconds', 10)
    if (isMutating) fill(webhook, 'reinvocationPolicy', 'Never')
    for (const rule of asRecords(webhook['rules'])) fill(rule, 'scope', '*')
    const service = getPath(webhook, 'clientConfig', 'service')
    if (isRecord(service)) fill(service, 'port', 443)
  }
}

function fillPolicyTypes(object: ApiObject): void {
  const spec = specOf(object)
  if (asArray(spec['policyTypes']).length === 0)
    spec['policyTypes'] = asArray(spec['egress']).length > 0 ? ['Ingress', 'Egress'] : ['Ingress']
  for (const rule of [...asRecords(spec['ingress']), ...asRecords(spec['egress'])]) {
    for (const port of asRecords(rule['ports'])) fill(port, 'protocol', 'TCP')
  }
}

const defaultsByKind: Record<string, (object: ApiObject) => void> = {
  services: fillService,
  secrets: (object) => {
    fill(object, 'type', 'Opaque')
    const text = object['stringData']
    if (!isRecord(text)) return
    const data: Json = isRecord(object['data']) ? object['data'] : {}
    for (const key of Object.keys(text)) setOwn(data, key, Buffer.from(String(text[key])).toString('base64'))
    object['data'] = data
    delete object['stringData']
  },
  endpoints: (object) => {
    for (const subset of asRecords(object['subsets']))
      for (const port of asRecords(subset['ports'])) fill(port, 'protocol', 'TCP')
  },
  pods: (object) => {
    fillPodSpec(object['spec'])
    if (isRecord(object['spec'])) fill(object['spec'], 'enableServiceLinks', true)
  },
  podtemplates: fillTemplate,
  replicationcontrollers: (object) => {
    fill(specOf(object), 'replicas', 1)
    fillTemplate(object['spec'])
  },
  persistentvolumeclaims: (object) => {
    fill(specOf(object), 'volumeMode', 'Filesystem')
    if (!isRecord(object['status'])) object['status'] = { phase: 'Pending' }
  },
  persistentvolumes: (object) => {
    fill(specOf(object), 'volumeMode', 'Filesystem')
    fill(specOf(object), 'persistentVolumeReclaimPolicy', 'Retain')
    if (!isRecord(object['status'])) object['status'] = { phase: 'Pending' }
  },
  'deployments.apps': fillDeployment,
  'statefulsets.apps': fillStatefulSet,
  'daemonsets.apps': (object) => {
    fillRollingUpdate(specOf(object), 'updateStrategy', { maxUnavailable: 1, maxSurge: 0 })
    fill(specOf(object), 'revisionHistoryLimit', 10)
    fillTemplate(object['spec'])
  },
  'replicasets.apps': (object) => {
    fill(specOf(object), 'replicas', 1)
    fillTemplate(object['spec'])
  },
  'jobs.batch': (object) => fillJobSpec(specOf(object)),
  'cronjobs.batch': (object) => {
    const spec = specOf(object)
    fill(spec, 'concurrencyPolicy', 'Allow')
    fill(spec, 'suspend', false)
    fill(spec, 'successfulJobsHistoryLimit', 3)
    fill(spec, 'failedJobsHistoryLimit', 1)
    fillTemplate(getPath(spec, 'jobTemplate', 'spec'))
  },
  'networkpolicies.networking.k8s.io': fillPolicyTypes,
  'ingressclasses.networking.k8s.io': (object) => {
    const parameters = getPath(object, 'spec', 'parameters')
    if (isRecord(parameters)) fill(parameters, 'scope', 'Cluster')
  },
  'endpointslices.discovery.k8s.io': (object) => {
    for (const port of asRecords(object['ports'])) {
      if (port['name'] === undefined) port['name'] = ''
      fill(port, 'protocol', 'TCP')
    }
  },
  [`rolebindings.${rbac}`]: fillBinding,
  [`clusterrolebindings.${rbac}`]: fillBinding,
  'mutatingwebhookconfigurations.admissionregistration.k8s.io': (object) => fillWebhooks(object, true),
  'validatingwebhookconfigurations.admissionregistration.k8s.io': (object) => fillWebhooks(object, false),
  'horizontalpodautoscalers.autoscaling': (object) => fill(specOf(object), 'minReplicas', 1),
  'storageclasses.storage.k8s.io': (object) => {
    fill(object, 'reclaimPolicy', 'Delete')
    fill(object, 'volumeBindingMode', 'Immediate')
  },
  'priorityclasses.scheduling.k8s.io': (object) => fill(object, 'preemptionPolicy', 'PreemptLowerPriority'),
}

export function applyKindDefaults(id: string, object: ApiObject): void {
  defaultsByKind[id]?.(object)
}
