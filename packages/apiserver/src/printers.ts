/** The columns of built-in kinds, as kubectl shows them; a kind that is not listed has Name and Age. */
import { type ApiObject, asRecords, asStrings, getPath, isRecord } from './object-shape.ts'
import { age, ageColumn, type Column, humanDuration, nameColumn } from './table.ts'

type Read = (object: ApiObject, nowMs: number) => unknown

/** `Name`, `Name:integer`, `Name+` for a column that only `-o wide` shows. */
function column(spec: string, read: Read): Column {
  const [title = '', type = 'string'] = spec.split(':')
  const isWide = title.endsWith('+')
  return { name: isWide ? title.slice(0, -1) : title, type, priority: isWide ? 1 : 0, read }
}

const text =
  (...path: string[]): Read =>
  (object) =>
    getPath(object, ...path) ?? ''
const number =
  (...path: string[]): Read =>
  (object) =>
    getPath(object, ...path) ?? 0
const createdAt: Column = { ...column('Created At:date', (object) => object.metadata.creationTimestamp), type: 'date' }

function formatLabels(labels: unknown): string {
  if (!isRecord(labels) || Object.keys(labels).length === 0) return '<none>'
  return Object.keys(labels)
    .sort()
    .map((key) => `${key}=${String(labels[key])}`)
    .join(',')
}

function formatSelector(selector: unknown): string {
  const terms = Object.entries(
    isRecord(getPath(selector, 'matchLabels')) ? (getPath(selector, 'matchLabels') as object) : {},
  ).map(([key, value]) => `${key}=${String(value)}`)
  for (const expression of asRecords(getPath(selector, 'matchExpressions'))) {
    const values = `(${asStrings(expression['values']).join(',')})`
    const key = String(expression['key'])
    const operator = String(expression['operator'])
    if (operator === 'In') terms.push(`${key} in ${values}`)
    else if (operator === 'NotIn') terms.push(`${key} notin ${values}`)
    else terms.push(operator === 'Exists' ? key : `!${key}`)
  }
  return terms.length === 0 ? '<none>' : terms.sort().join(',')
}

function withMore(list: readonly string[], count = list.length): string {
  if (count === 0) return '<unset>'
  const shown = list.slice(0, 3).join(',')
  return count > 3 ? `${shown} + ${count - 3} more...` : shown
}

function loadBalancer(object: ApiObject): string {
  const ingress = asRecords(getPath(object, 'status', 'loadBalancer', 'ingress'))
  const names = ingress.map((point) => String(point['ip'] ?? point['hostname'] ?? '')).filter((name) => name !== '')
  return [...new Set(names)].sort().join(',')
}

function externalIp(object: ApiObject): string {
  const externalIps = asStrings(getPath(object, 'spec', 'externalIPs'))
  switch (getPath(object, 'spec', 'type')) {
    case 'ExternalName':
      return String(getPath(object, 'spec', 'externalName') ?? '')
    case 'LoadBalancer': {
      const all = [loadBalancer(object), ...externalIps].filter((part) => part !== '')
      return all.length === 0 ? '<pending>' : all.join(',')
    }
    case 'ClusterIP':
    case 'NodePort':
      return externalIps.length === 0 ? '<none>' : externalIps.join(',')
    default:
      return '<unknown>'
  }
}

function servicePorts(object: ApiObject): string {
  const ports = asRecords(getPath(object, 'spec', 'ports')).map((port) => {
    const nodePort = Number(port['nodePort'] ?? 0)
    return `${String(port['port'])}${nodePort > 0 ? `:${nodePort}` : ''}/${String(port['protocol'] ?? 'TCP')}`
  })
  return ports.length === 0 ? '<none>' : ports.join(',')
}

function ingressHosts(object: ApiObject): string {
  const rules = asRecords(getPath(object, 'spec', 'rules'))
  const hosts = rules.map((rule) => String(rule['host'] ?? '')).filter((host) => host !== '')
  if (hosts.length === 0) return '*'
  return hosts.length > 3 ? `${hosts.slice(0, 3).join(',')} + ${rules.length - 3} more...` : hosts.join(',')
}

function endpointAddresses(object: ApiObject): string {
  const subsets = asRecords(getPath(object, 'subsets'))
  if (subsets.length === 0) return '<none>'
  const list = subsets.flatMap((subset) => {
    const addresses = asRecords(subset['addresses']).map((address) => String(address['ip']))
    const ports = asRecords(subset['ports'])
    if (ports.length === 0) return addresses
    return ports.flatMap((port) =>
      addresses.map((ip) => `${ip.includes(':') ? `[${ip}]` : ip}:${String(port['port'])}`),
    )
  })
  return list.length > 3 ? `${list.slice(0, 3).join(',')} + ${list.length - 3} more...` : list.join(',')
}

const containers = (...path: string[]): Column[] => [
  column('Containers+', (object) =>
    asRecords(getPath(object, ...path, 'containers'))
      .map((container) => String(container['name']))
      .join(','),
  ),
  column('Images+', (object) =>
    asRecords(getPath(object, ...path, 'containers'))
      .map((container) => String(container['image']))
      .join(','),
  ),
]
const templateContainers = containers('spec', 'template', 'spec')
const selectorColumn = column('Selector+', (object) => formatSelector(getPath(object, 'spec', 'selector')))
const readyOf: Read = (object) =>
  `${String(getPath(object, 'status', 'readyReplicas') ?? 0)}/${String(getPath(object, 'spec', 'replicas') ?? 1)}`

function eventTimes(object: ApiObject, nowMs: number): { first: string; last: string; count: unknown } {
  const eventTime = getPath(object, 'eventTime')
  const first = age(
    getPath(object, 'firstTimestamp') ?? getPath(object, 'deprecatedFirstTimestamp') ?? eventTime,
    nowMs,
  )
  const lastTime = getPath(object, 'lastTimestamp') ?? getPath(object, 'deprecatedLastTimestamp')
  const series = getPath(object, 'series')
  if (isRecord(series)) return { first, last: age(series['lastObservedTime'], nowMs), count: series['count'] }
  const count = Number(getPath(object, 'count') ?? getPath(object, 'deprecatedCount') ?? 0)
  return { first, last: lastTime === undefined ? first : age(lastTime, nowMs), count: count === 0 ? 1 : count }
}

const involved = (object: ApiObject): unknown => object['involvedObject'] ?? object['regarding']

const eventColumns: Column[] = [
  column('Last Seen', (object, nowMs) => eventTimes(object, nowMs).last),
  column('Type', text('type')),
  column('Reason', text('reason')),
  column('Object', (object) => {
    const kind = String(getPath(involved(object), 'kind') ?? '').toLowerCase()
    const name = getPath(involved(object), 'name')
    return name === undefined || name === '' ? kind : `${kind}/${String(name)}`
  }),
  column('Subobject+', (object) => getPath(involved(object), 'fieldPath') ?? ''),
  column('Source+', (object) => {
    const source = object['source'] ?? object['deprecatedSource']
    const component = String(
      getPath(source, 'component') ?? object['reportingComponent'] ?? object['reportingController'] ?? '',
    )
    const host = String(getPath(source, 'host') ?? object['reportingInstance'] ?? '')
    return host === '' ? component : `${component}, ${host}`
  }),
  column('Message', (object) => String(object['message'] ?? object['note'] ?? '').trim()),
  column('First Seen+', (object, nowMs) => eventTimes(object, nowMs).first),
  column('Count+', (object, nowMs) => eventTimes(object, nowMs).count),
  { ...nameColumn, priority: 1 },
]

function nodeStatus(object: ApiObject): string {
  const ready = asRecords(getPath(object, 'status', 'conditions')).find((condition) => condition['type'] === 'Ready')
  const status = ready === undefined ? 'Unknown' : ready['status'] === 'True' ? 'Ready' : 'NotReady'
  return getPath(object, 'spec', 'unschedulable') === true ? `${status},SchedulingDisabled` : status
}

function nodeRoles(object: ApiObject): string {
  const prefix = 'node-role.kubernetes.io/'
  const roles = Object.keys(object.metadata.labels ?? {})
    .filter((key) => key.startsWith(prefix) && key.length > prefix.length)
    .map((key) => key.slice(prefix.length))
  return roles.length === 0 ? '<none>' : roles.sort().join(',')
}

const nodeAddress =
  (type: string): Read =>
  (object) =>
    asRecords(getPath(object, 'status', 'addresses')).find((address) => address['type'] === type)?.['address'] ??
    '<none>'
const orUnknown =
  (...path: string[]): Read =>
  (object) =>
    getPath(object, ...path) ?? '<unknown>'

function podReady(object: ApiObject): string {
  const statuses = asRecords(getPath(object, 'status', 'containerStatuses'))
  const ready = statuses.filter((status) => status['ready'] === true).length
  return `${ready}/${asRecords(getPath(object, 'spec', 'containers')).length}`
}

const subjects =
  (kind: string): Read =>
  (object) =>
    asRecords(object['subjects'])
      .filter((subject) => subject['kind'] === kind)
      .map(
        (subject) =>
          (kind === 'ServiceAccount' ? `${String(subject['namespace'] ?? '')}/` : '') + String(subject['name']),
      )
      .join(', ')

const bindingColumns: Column[] = [
  nameColumn,
  column(
    'Role',
    (object) => `${String(getPath(object, 'roleRef', 'kind'))}/${String(getPath(object, 'roleRef', 'name'))}`,
  ),
  ageColumn,
  column('Users+', subjects('User')),
  column('Groups+', subjects('Group')),
  column('ServiceAccounts+', subjects('ServiceAccount')),
]

const webhookColumns: Column[] = [
  nameColumn,
  column('Webhooks:integer', (object) => asRecords(object['webhooks']).length),
  ageColumn,
]

function jobStatus(object: ApiObject): string {
  const isTrue = (type: string): boolean =>
    asRecords(getPath(object, 'status', 'conditions')).some(
      (condition) => condition['type'] === type && condition['status'] === 'True',
    )
  if (isTrue('Complete')) return 'Complete'
  if (isTrue('Failed')) return 'Failed'
  if (object.metadata.deletionTimestamp !== undefined) return 'Terminating'
  return isTrue('Suspended') ? 'Suspended' : 'Running'
}

function jobDuration(object: ApiObject, nowMs: number): string {
  const start = getPath(object, 'status', 'startTime')
  if (typeof start !== 'string') return ''
  const end = getPath(object, 'status', 'completionTime')
  return humanDuration((typeof end === 'string' ? Date.parse(end) : nowMs) - Date.parse(start))
}

const accessModes =
  (...path: string[]): Read =>
  (object) =>
    asStrings(getPath(object, ...path))
      .map(
        (mode) =>
          ({ ReadWriteOnce: 'RWO', ReadOnlyMany: 'ROX', ReadWriteMany: 'RWX', ReadWriteOncePod: 'RWOP' })[mode] ?? '',
      )
      .join(',')

const plain: readonly Column[] = [nameColumn, ageColumn]

const columnsByResource: Record<string, readonly Column[]> = {
  namespaces: [nameColumn, column('Status', text('status', 'phase')), ageColumn],
  services: [
    nameColumn,
    column('Type', text('spec', 'type')),
    column('Cluster-IP', (object) => asStrings(getPath(object, 'spec', 'clusterIPs'))[0] ?? '<none>'),
    column('External-IP', externalIp),
    column('Port(s)', servicePorts),
    ageColumn,
    column('Selector+', (object) => formatLabels(getPath(object, 'spec', 'selector'))),
  ],
  pods: [
    nameColumn,
    column('Ready', podReady),
    column('Status', (object) =>
      object.metadata.deletionTimestamp !== undefined
        ? 'Terminating'
        : (getPath(object, 'status', 'reason') ?? getPath(object, 'status', 'phase') ?? ''),
    ),
    column('Restarts', (object) =>
      String(
        asRecords(getPath(object, 'status', 'containerStatuses')).reduce(
          (sum, status) => sum + Number(status['restartCount'] ?? 0),
          0,
        ),
      ),
    ),
    ageColumn,
    column('IP+', (object) => getPath(object, 'status', 'podIP') ?? '<none>'),
    column('Node+', (object) => getPath(object, 'spec', 'nodeName') ?? '<none>'),
    column('Nominated Node+', (object) => getPath(object, 'status', 'nominatedNodeName') ?? '<none>'),
    column('Readiness Gates+', () => '<none>'),
  ],
  nodes: [
    nameColumn,
    column('Status', nodeStatus),
    column('Roles', nodeRoles),
    ageColumn,
    column('Version', text('status', 'nodeInfo', 'kubeletVersion')),
    column('Internal-IP+', nodeAddress('InternalIP')),
    column('External-IP+', nodeAddress('ExternalIP')),
    column('OS-Image+', orUnknown('status', 'nodeInfo', 'osImage')),
    column('Kernel-Version+', orUnknown('status', 'nodeInfo', 'kernelVersion')),
    column('Container-Runtime+', orUnknown('status', 'nodeInfo', 'containerRuntimeVersion')),
  ],
  secrets: [
    nameColumn,
    column('Type', text('type')),
    column('Data', (object) => Object.keys(isRecord(object['data']) ? object['data'] : {}).length),
    ageColumn,
  ],
  configmaps: [
    nameColumn,
    column('Data', (object) =>
      [object['data'], object['binaryData']].reduce<number>(
        (sum, part) => sum + (isRecord(part) ? Object.keys(part).length : 0),
        0,
      ),
    ),
    ageColumn,
  ],
  events: eventColumns,
  'events.events.k8s.io': eventColumns,
  endpoints: [nameColumn, column('Endpoints', endpointAddresses), ageColumn],
  limitranges: [nameColumn, createdAt],
  'deployments.apps': [
    nameColumn,
    column('Ready', readyOf),
    column('Up-to-date', number('status', 'updatedReplicas')),
    column('Available', number('status', 'availableReplicas')),
    ageColumn,
    ...templateContainers,
    selectorColumn,
  ],
  'replicasets.apps': [
    nameColumn,
    column('Desired:integer', number('spec', 'replicas')),
    column('Current:integer', number('status', 'replicas')),
    column('Ready:integer', number('status', 'readyReplicas')),
    ageColumn,
    ...templateContainers,
    selectorColumn,
  ],
  'daemonsets.apps': [
    nameColumn,
    column('Desired:integer', number('status', 'desiredNumberScheduled')),
    column('Current:integer', number('status', 'currentNumberScheduled')),
    column('Ready:integer', number('status', 'numberReady')),
    column('Up-to-date:integer', number('status', 'updatedNumberScheduled')),
    column('Available:integer', number('status', 'numberAvailable')),
    column('Node Selector', (object) => formatLabels(getPath(object, 'spec', 'template', 'spec', 'nodeSelector'))),
    ageColumn,
    ...templateContainers,
    selectorColumn,
  ],
  'statefulsets.apps': [nameColumn, column('Ready', readyOf), ageColumn, ...templateContainers],
  'jobs.batch': [
    nameColumn,
    column('Status', jobStatus),
    column(
      'Completions',
      (object) =>
        `${String(getPath(object, 'status', 'succeeded') ?? 0)}/${String(getPath(object, 'spec', 'completions') ?? 1)}`,
    ),
    column('Duration', jobDuration),
    ageColumn,
    ...templateContainers,
    selectorColumn,
  ],
  'cronjobs.batch': [
    nameColumn,
    column('Schedule', text('spec', 'schedule')),
    column('Timezone', (object) => getPath(object, 'spec', 'timeZone') ?? '<none>'),
    column('Suspend:boolean', (object) => getPath(object, 'spec', 'suspend') ?? false),
    column('Active:integer', (object) => asRecords(getPath(object, 'status', 'active')).length),
    column('Last Schedule', (object, nowMs) => {
      const last = getPath(object, 'status', 'lastScheduleTime')
      return last === undefined ? '<none>' : age(last, nowMs)
    }),
    ageColumn,
    ...containers('spec', 'jobTemplate', 'spec', 'template', 'spec'),
    selectorColumn,
  ],
  'ingresses.networking.k8s.io': [
    nameColumn,
    column('Class', (object) => getPath(object, 'spec', 'ingressClassName') ?? '<none>'),
    column('Hosts', ingressHosts),
    column('Address', loadBalancer),
    column('Ports', (object) => (asRecords(getPath(object, 'spec', 'tls')).length > 0 ? '80, 443' : '80')),
    ageColumn,
  ],
  'ingressclasses.networking.k8s.io': [
    {
      ...nameColumn,
      read: (object) => {
        const isDefault = object.metadata.annotations?.['ingressclass.kubernetes.io/is-default-class'] === 'true'
        return `${String(object.metadata.name)}${isDefault ? ' (default)' : ''}`
      },
    },
    column('Controller', text('spec', 'controller')),
    column('Parameters', (object) => {
      const parameters = getPath(object, 'spec', 'parameters')
      if (!isRecord(parameters)) return '<none>'
      const group = parameters['apiGroup'] === undefined ? '' : `.${String(parameters['apiGroup'])}`
      return `${String(parameters['kind'])}${group}/${String(parameters['name'])}`
    }),
    ageColumn,
  ],
  'networkpolicies.networking.k8s.io': [
    nameColumn,
    column('Pod-Selector', (object) => formatSelector(getPath(object, 'spec', 'podSelector'))),
    ageColumn,
  ],
  'endpointslices.discovery.k8s.io': [
    nameColumn,
    column('AddressType', text('addressType')),
    column('Ports', (object) =>
      withMore(asRecords(object['ports']).map((port) => String(port['port'] ?? port['name'] ?? '*'))),
    ),
    column('Endpoints', (object) =>
      withMore(asRecords(object['endpoints']).flatMap((endpoint) => asStrings(endpoint['addresses']))),
    ),
    ageColumn,
  ],
  'leases.coordination.k8s.io': [nameColumn, column('Holder', text('spec', 'holderIdentity')), ageColumn],
  'roles.rbac.authorization.k8s.io': [nameColumn, createdAt],
  'clusterroles.rbac.authorization.k8s.io': [nameColumn, createdAt],
  'rolebindings.rbac.authorization.k8s.io': bindingColumns,
  'clusterrolebindings.rbac.authorization.k8s.io': bindingColumns,
  'mutatingwebhookconfigurations.admissionregistration.k8s.io': webhookColumns,
  'validatingwebhookconfigurations.admissionregistration.k8s.io': webhookColumns,
  'customresourcedefinitions.apiextensions.k8s.io': [nameColumn, createdAt],
  'storageclasses.storage.k8s.io': [
    nameColumn,
    column('Provisioner', text('provisioner')),
    column('ReclaimPolicy', (object) => object['reclaimPolicy'] ?? 'Delete'),
    column('VolumeBindingMode', (object) => object['volumeBindingMode'] ?? 'Immediate'),
    column('AllowVolumeExpansion', (object) => object['allowVolumeExpansion'] ?? false),
    ageColumn,
  ],
  'priorityclasses.scheduling.k8s.io': [
    nameColumn,
    column('Value:integer', number('value')),
    column('Global-Default:boolean', (object) => object['globalDefault'] ?? false),
    ageColumn,
    column('PreemptionPolicy', text('preemptionPolicy')),
  ],
  'runtimeclasses.node.k8s.io': [nameColumn, column('Handler', text('handler')), ageColumn],
  'poddisruptionbudgets.policy': [
    nameColumn,
    column('Min Available', (object) => getPath(object, 'spec', 'minAvailable') ?? 'N/A'),
    column('Max Unavailable', (object) => getPath(object, 'spec', 'maxUnavailable') ?? 'N/A'),
    column('Allowed Disruptions:integer', number('status', 'disruptionsAllowed')),
    ageColumn,
  ],
  persistentvolumeclaims: [
    nameColumn,
    column('Status', text('status', 'phase')),
    column('Volume', text('spec', 'volumeName')),
    column('Capacity', text('status', 'capacity', 'storage')),
    column('Access Modes', accessModes('status', 'accessModes')),
    column('StorageClass', text('spec', 'storageClassName')),
    column('VolumeAttributesClass', (object) => getPath(object, 'spec', 'volumeAttributesClassName') ?? '<unset>'),
    ageColumn,
    column('VolumeMode+', text('spec', 'volumeMode')),
  ],
}

export function builtinColumns(group: string, plural: string): readonly Column[] {
  return columnsByResource[group === '' ? plural : `${plural}.${group}`] ?? plain
}
