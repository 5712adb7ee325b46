/** The columns of built-in kinds, as kubectl prints them; a kind that is not listed has Name and Age. */
import {
  accessModes,
  bindingColumns,
  column,
  containers,
  createdAt,
  endpointAddresses,
  eventColumns,
  externalIp,
  formatLabels,
  formatSelector,
  ingressHosts,
  jobDuration,
  jobStatus,
  loadBalancer,
  nodeAddress,
  nodeRoles,
  nodeStatus,
  number,
  orUnknown,
  podReady,
  readyOf,
  selectorColumn,
  servicePorts,
  templateContainers,
  text,
  webhookColumns,
  withMore,
} from './cells.ts'
import { asRecords, asStrings, getPath, isRecord } from '../codec/object-shape.ts'
import { age, ageColumn, nameColumn, type Column } from './table.ts'

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
