/** Cells of the tables of built-in kinds: addresses, ports, ages, readiness, as kubectl prints them. */
import { type ApiObject, asRecords, asStrings, getPath, isRecord } from '../codec/object-shape.ts'
import { age, ageColumn, type Column, humanDuration, nameColumn } from './table.ts'

type Read = (object: ApiObject, nowMs: number) => unknown

/** `Name`, `Name:integer`, `Name+` for a column of `-o wide` only. */
export function column(spec: string, read: Read): Column {
  const [title = '', type = 'string'] = spec.split(':')
  const isWide = title.endsWith('+')
  return { name: isWide ? title.slice(0, -1) : title, type, priority: isWide ? 1 : 0, read }
}

export const text =
  (...path: string[]): Read =>
  (object) =>
    getPath(object, ...path) ?? ''
export const number =
  (...path: string[]): Read =>
  (object) =>
    getPath(object, ...path) ?? 0
export const createdAt: Column = {
  ...column('Created At:date', (object) => object.metadata.creationTimestamp),
  type: 'date',
}

export function formatLabels(labels: unknown): string {
  if (!isRecord(labels) || Object.keys(labels).length === 0) return '<none>'
  return Object.keys(labels)
    .sort()
    .map((key) => `${key}=${String(labels[key])}`)
    .join(',')
}

export function formatSelector(selector: unknown): string {
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

export function withMore(list: readonly string[], count = list.length): string {
  if (count === 0) return '<unset>'
  const visible = list.slice(0, 3).join(',')
  return count > 3 ? `${visible} + ${count - 3} more...` : visible
}

export function loadBalancer(object: ApiObject): string {
  const ingress = asRecords(getPath(object, 'status', 'loadBalancer', 'ingress'))
  const names = ingress.map((point) => String(point['ip'] ?? point['hostname'] ?? '')).filter((name) => name !== '')
  return [...new Set(names)].sort().join(',')
}

export function externalIp(object: ApiObject): string {
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

export function servicePorts(object: ApiObject): string {
  const ports = asRecords(getPath(object, 'spec', 'ports')).map((port) => {
    const nodePort = Number(port['nodePort'] ?? 0)
    return `${String(port['port'])}${nodePort > 0 ? `:${nodePort}` : ''}/${String(port['protocol'] ?? 'TCP')}`
  })
  return ports.length === 0 ? '<none>' : ports.join(',')
}

export function ingressHosts(object: ApiObject): string {
  const rules = asRecords(getPath(object, 'spec', 'rules'))
  const hosts = rules.map((rule) => String(rule['host'] ?? '')).filter((host) => host !== '')
  if (hosts.length === 0) return '*'
  return hosts.length > 3 ? `${hosts.slice(0, 3).join(',')} + ${rules.length - 3} more...` : hosts.join(',')
}

export function endpointAddresses(object: ApiObject): string {
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

export const containers = (...path: string[]): Column[] => [
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
export const templateContainers = containers('spec', 'template', 'spec')
export const selectorColumn = column('Selector+', (object) => formatSelector(getPath(object, 'spec', 'selector')))
export const readyOf: Read = (object) =>
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

export const eventColumns: Column[] = [
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

export function nodeStatus(object: ApiObject): string {
  const ready = asRecords(getPath(object, 'status', 'conditions')).find((condition) => condition['type'] === 'Ready')
  const status = ready === undefined ? 'Unknown' : ready['status'] === 'True' ? 'Ready' : 'NotReady'
  return getPath(object, 'spec', 'unschedulable') === true ? `${status},SchedulingDisabled` : status
}

export function nodeRoles(object: ApiObject): string {
  const prefix = 'node-role.kubernetes.io/'
  const roles = Object.keys(object.metadata.labels ?? {})
    .filter((key) => key.startsWith(prefix) && key.length > prefix.length)
    .map((key) => key.slice(prefix.length))
  return roles.length === 0 ? '<none>' : roles.sort().join(',')
}

export const nodeAddress =
  (type: string): Read =>
  (object) =>
    asRecords(getPath(object, 'status', 'addresses')).find((address) => address['type'] === type)?.['address'] ??
    '<none>'
export const orUnknown =
  (...path: string[]): Read =>
  (object) =>
    getPath(object, ...path) || '<unknown>'

export function podReady(object: ApiObject): string {
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

export const bindingColumns: Column[] = [
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

export const webhookColumns: Column[] = [
  nameColumn,
  column('Webhooks:integer', (object) => asRecords(object['webhooks']).length),
  ageColumn,
]

export function jobStatus(object: ApiObject): string {
  const isTrue = (type: string): boolean =>
    asRecords(getPath(object, 'status', 'conditions')).some(
      (condition) => condition['type'] === type && condition['status'] === 'True',
    )
  if (isTrue('Complete')) return 'Complete'
  if (isTrue('Failed')) return 'Failed'
  if (object.metadata.deletionTimestamp !== undefined) return 'Terminating'
  return isTrue('Suspended') ? 'Suspended' : 'Running'
}

export function jobDuration(object: ApiObject, nowMs: number): string {
  const start = getPath(object, 'status', 'startTime')
  if (typeof start !== 'string') return ''
  const end = getPath(object, 'status', 'completionTime')
  return humanDuration((typeof end === 'string' ? Date.parse(end) : nowMs) - Date.parse(start))
}

export const accessModes =
  (...path: string[]): Read =>
  (object) =>
    asStrings(getPath(object, ...path))
      .map(
        (mode) =>
          ({ ReadWriteOnce: 'RWO', ReadOnlyMany: 'ROX', ReadWriteMany: 'RWX', ReadWriteOncePod: 'RWOP' })[mode] ?? '',
      )
      .join(',')
