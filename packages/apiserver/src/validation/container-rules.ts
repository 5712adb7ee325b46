/** Containers of a pod: names, ports, environment, resources, mounts, probes. */
import { parseQuantity } from '../cel/quantity.ts'
import { duplicateValue, forbiddenValue, invalidValue, requiredValue } from './metadata.ts'
import { checkConfigKey, checkLabel, checkQualifiedName, checkSubdomain } from './names.ts'
import { asRecords, asStrings, isRecord, type Json } from '../codec/object-shape.ts'
import type { Cause } from '../schema/model.ts'
import {
  atLeastZero,
  checkPortName,
  count,
  named,
  oneOf,
  oneOfIfSet,
  portNumber,
  portOrName,
  protocols,
  requiredName,
  text,
  within,
} from './field-rules.ts'

const maxId = 2_147_483_647
const pullPolicies = ['Always', 'IfNotPresent', 'Never']
const standardResources = ['cpu', 'memory', 'ephemeral-storage']
const fieldPaths = new Set([
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
])
const resourceFields = ['limits', 'requests']
  .flatMap((kind) => ['cpu', 'ephemeral-storage', 'memory'].map((name) => `${kind}.${name}`))
  .toSorted()

/** `names` collects the names of all containers of the pod. */
export function validateContainer(
  container: Json,
  at: string,
  names: Set<string>,
  volumes: ReadonlySet<string>,
): Cause[] {
  const [name, image] = [text(container['name']), text(container['image'])]
  const causes = requiredName(checkLabel, `${at}.name`, name)
  if (name !== '' && names.has(name)) causes.push(duplicateValue(`${at}.name`, name))
  names.add(name)
  if (image === '') causes.push(requiredValue(`${at}.image`))
  else if (image !== image.trim())
    causes.push(invalidValue(`${at}.image`, image, 'must not have leading or trailing whitespace'))
  return [
    ...causes,
    ...lifecycle(container['lifecycle'], `${at}.lifecycle`),
    ...['livenessProbe', 'readinessProbe', 'startupProbe'].flatMap((key) => probe(container[key], `${at}.${key}`, key)),
    ...oneOfIfSet(`${at}.terminationMessagePolicy`, container['terminationMessagePolicy'], [
      'File',
      'FallbackToLogsOnError',
    ]),
    ...ports(container, at),
    ...asRecords(container['env']).flatMap((variable, index) => environment(variable, `${at}.env[${index}]`)),
    ...asRecords(container['envFrom']).flatMap((source) => bulkEnvironment(source, `${at}.envFrom`)),
    ...mounts(container, at, volumes),
    ...oneOfIfSet(`${at}.imagePullPolicy`, container['imagePullPolicy'], pullPolicies),
    ...resources(container['resources'], `${at}.resources`),
    ...security(container['securityContext'], `${at}.securityContext`),
  ]
}

function ports(container: Json, at: string): Cause[] {
  const names = new Set<string>()
  return asRecords(container['ports']).flatMap((port, index) => {
    const here = `${at}.ports[${index}]`
    const name = text(port['name'])
    const causes = name === '' ? [] : named(checkPortName, `${here}.name`, name)
    if (causes.length === 0 && name !== '') {
      if (names.has(name)) causes.push(duplicateValue(`${here}.name`, name))
      names.add(name)
    }
    if (count(port['containerPort']) === 0) causes.push(requiredValue(`${here}.containerPort`))
    else causes.push(...portNumber(`${here}.containerPort`, port['containerPort']))
    if (count(port['hostPort']) !== 0) causes.push(...portNumber(`${here}.hostPort`, port['hostPort']))
    return [...causes, ...oneOf(`${here}.protocol`, port['protocol'], protocols)]
  })
}

function environment(variable: Json, at: string): Cause[] {
  const source = variable['valueFrom']
  const causes: Cause[] = text(variable['name']) === '' ? [requiredValue(`${at}.name`)] : []
  if (!isRecord(source)) return causes
  if (text(variable['value']) !== '')
    return [...causes, invalidValue(`${at}.valueFrom`, '', 'may not be specified when `value` is not empty')]
  const given = Object.keys(source).filter((key) => isRecord(source[key]))
  if (given.length === 0) {
    const why = 'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`'
    causes.push(invalidValue(`${at}.valueFrom`, '', why))
  }
  if (given.length > 1)
    causes.push(invalidValue(`${at}.valueFrom`, '', 'may not have more than one field specified at a time'))
  return [...causes, ...given.flatMap((key) => valueSource(key, source[key] as Json, `${at}.valueFrom.${key}`))]
}

function valueSource(kind: string, source: Json, at: string): Cause[] {
  switch (kind) {
    case 'fieldRef': {
      const path = text(source['fieldPath'])
      if (path === '') return [requiredValue(`${at}.fieldPath`)]
      const isKnown = fieldPaths.has(path) || /^metadata\.(labels|annotations)(\['.+'\])?$/.test(path)
      const why = `error converting fieldPath: field label not supported: ${path}`
      return isKnown ? [] : [invalidValue(`${at}.fieldPath`, path, why)]
    }
    case 'resourceFieldRef':
      return text(source['resource']) === ''
        ? [requiredValue(`${at}.resource`)]
        : oneOf(`${at}.resource`, source['resource'], resourceFields)
    case 'configMapKeyRef':
    case 'secretKeyRef':
      return [
        ...named(checkSubdomain, `${at}.name`, text(source['name'])),
        ...requiredName(checkConfigKey, `${at}.key`, source['key']),
      ]
    default:
      return []
  }
}

function bulkEnvironment(source: Json, at: string): Cause[] {
  const given = ['configMapRef', 'secretRef'].filter((key) => isRecord(source[key]))
  if (given.length === 0) return [invalidValue(at, '', 'must specify one of: `configMapRef` or `secretRef`')]
  if (given.length > 1) return [invalidValue(at, '', 'may not have more than one field specified at a time')]
  return given.flatMap((key) => named(checkSubdomain, `${at}.${key}.name`, text((source[key] as Json)['name'])))
}

function mounts(container: Json, at: string, volumes: ReadonlySet<string>): Cause[] {
  const used = new Set<string>()
  return asRecords(container['volumeMounts']).flatMap((mount, index) => {
    const here = `${at}.volumeMounts[${index}]`
    const [name, path, part] = [text(mount['name']), text(mount['mountPath']), text(mount['subPath'])]
    const causes: Cause[] = []
    if (name === '') causes.push(requiredValue(`${here}.name`))
    if (!volumes.has(name))
      causes.push({
        reason: 'FieldValueNotFound',
        message: `Not found: ${JSON.stringify(name)}`,
        field: `${here}.name`,
      })
    if (path === '') causes.push(requiredValue(`${here}.mountPath`))
    if (used.has(path)) causes.push(invalidValue(`${here}.mountPath`, path, 'must be unique'))
    used.add(path)
    // The path in kube-apiserver's error, which lacks the index.
    const field = `${at}.volumeMounts.subPath`
    if (part.startsWith('/')) causes.push(invalidValue(field, part, 'must be a relative path'))
    if (part.split('/').includes('..')) causes.push(invalidValue(field, part, "must not contain '..'"))
    return causes
  })
}

export function resourceAmount(field: string, value: unknown): Cause[] {
  const amount = parseQuantity(String(value))
  return amount !== undefined && amount.units < 0n
    ? [invalidValue(field, String(value), 'must be greater than or equal to 0')]
    : []
}

function resources(value: unknown, at: string): Cause[] {
  if (!isRecord(value)) return []
  const list = (key: string): Json => (isRecord(value[key]) ? value[key] : {})
  const amounts = (key: string): Cause[] =>
    Object.entries(list(key)).flatMap(([name, amount]) => [
      ...resourceName(`${at}.${key}[${name}]`, name),
      ...resourceAmount(`${at}.${key}[${name}]`, amount),
    ])
  const over = Object.entries(list('requests')).flatMap(([name, amount]) => {
    const [request, limit] = [parseQuantity(String(amount)), parseQuantity(String(list('limits')[name]))]
    const isOver = request !== undefined && limit !== undefined && request.compare(limit) > 0n
    const why = `must be less than or equal to ${name} limit of ${String(list('limits')[name])}`
    return isOver ? [invalidValue(`${at}.requests`, String(amount), why)] : []
  })
  return [...amounts('limits'), ...amounts('requests'), ...over]
}

function resourceName(field: string, name: string): Cause[] {
  const causes = named(checkQualifiedName, field, name)
  if (causes.length > 0 || name.includes('/')) return causes
  if (standardResources.includes(name) || name.startsWith('hugepages-')) return []
  return [
    invalidValue(field, name, 'must be a standard resource type or fully qualified'),
    invalidValue(field, name, 'must be a standard resource for containers'),
  ]
}

const handlers = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep']

/** The handler of a probe or a hook: exactly one action. */
function handler(value: Json, at: string): Cause[] {
  const [first, ...more] = handlers.filter((key) => isRecord(value[key]))
  if (first === undefined) return [requiredValue(at, 'must specify a handler type')]
  return [
    ...action(first, value[first] as Json, `${at}.${first}`),
    ...more.map((key) => forbiddenValue(`${at}.${key}`, 'may not specify more than 1 handler type')),
  ]
}

function action(kind: string, value: Json, at: string): Cause[] {
  switch (kind) {
    case 'exec':
      return asStrings(value['command']).length === 0 ? [requiredValue(`${at}.command`)] : []
    case 'httpGet':
      return [
        ...(text(value['path']) === '' ? [requiredValue(`${at}.path`)] : []),
        ...portOrName(`${at}.port`, value['port']),
        ...oneOf(`${at}.scheme`, value['scheme'], ['HTTP', 'HTTPS']),
      ]
    case 'tcpSocket':
    case 'grpc':
      return portOrName(`${at}.port`, value['port'])
    default:
      return []
  }
}

function probe(value: unknown, at: string, kind: string): Cause[] {
  if (!isRecord(value)) return []
  const causes = handler(value, at)
  const numbers = [
    'initialDelaySeconds',
    'timeoutSeconds',
    'periodSeconds',
    'successThreshold',
    'failureThreshold',
    'terminationGracePeriodSeconds',
  ]
  for (const key of numbers) causes.push(...atLeastZero(`${at}.${key}`, value[key]))
  const successes = value['successThreshold']
  if (kind !== 'readinessProbe' && typeof successes === 'number' && successes !== 1)
    causes.push(invalidValue(`${at}.successThreshold`, successes, 'must be 1'))
  return causes
}

function lifecycle(value: unknown, at: string): Cause[] {
  if (!isRecord(value)) return []
  return ['postStart', 'preStop'].flatMap((key) => {
    const hook = value[key]
    return isRecord(hook) ? handler(hook, `${at}.${key}`) : []
  })
}

const contextFields = [
  'capabilities',
  'privileged',
  'seLinuxOptions',
  'windowsOptions',
  'runAsUser',
  'runAsGroup',
  'runAsNonRoot',
  'readOnlyRootFilesystem',
  'allowPrivilegeEscalation',
  'procMount',
  'seccompProfile',
  'appArmorProfile',
]

function security(value: unknown, at: string): Cause[] {
  if (!isRecord(value)) return []
  const causes = ['runAsUser', 'runAsGroup'].flatMap((key) => within(`${at}.${key}`, value[key], 0, maxId))
  if (value['privileged'] === true && value['allowPrivilegeEscalation'] === false) {
    // In the format of kube-apiserver's internal type.
    const internal = Object.fromEntries(
      contextFields.map((key) => [
        key === 'seLinuxOptions' ? 'SELinuxOptions' : `${key.charAt(0).toUpperCase()}${key.slice(1)}`,
        value[key] ?? null,
      ]),
    )
    const why = 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true'
    causes.push(invalidValue(at, internal, why))
  }
  return causes
}
