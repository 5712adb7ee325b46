/**
 * Validation of built-in kinds: the rules that users meet with kubectl and that controllers rely on, in the real server's
 * words. Not every rule of every kind; what is not checked is accepted.
 */
import { isIP } from 'node:net'
import { duplicateValue, forbiddenValue, invalidValue, requiredValue, unsupportedValue } from '../metadata.ts'
import { checkConfigKey, checkDns1035Label, checkLabel, checkSubdomain } from '../names.ts'
import { type ApiObject, asRecords, asStrings, getPath, isRecord, isSameJson, type Json } from '../object-shape.ts'
import type { Cause } from '../schema/model.ts'
import { compileLabelSelector } from '../selectors.ts'

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const immutable = 'field is immutable'
const maxDataBytes = 1024 * 1024

function checkKeys(data: unknown, field: string): Cause[] {
  if (!isRecord(data)) return []
  return Object.keys(data).flatMap((key) =>
    checkConfigKey(key).map((why) => invalidValue(`${field}[${key}]`, key, why)),
  )
}

function dataBytes(data: unknown, isBase64: boolean): number {
  if (!isRecord(data)) return 0
  return Object.values(data).reduce<number>(
    (sum, value) => sum + (isBase64 ? Buffer.byteLength(text(value), 'base64') : Buffer.byteLength(text(value))),
    0,
  )
}

function checkImmutableData(object: ApiObject, old: ApiObject | undefined, keys: readonly string[]): Cause[] {
  if (old?.['immutable'] !== true) return []
  const wrong: Cause[] = []
  if (object['immutable'] !== true)
    wrong.push({
      reason: 'FieldValueForbidden',
      message: 'Forbidden: field is immutable when `immutable` is set',
      field: 'immutable',
    })
  for (const key of keys) {
    if (!isSameJson(object[key] ?? {}, old[key] ?? {})) {
      wrong.push({
        reason: 'FieldValueForbidden',
        message: 'Forbidden: field is immutable when `immutable` is set',
        field: key,
      })
    }
  }
  return wrong
}

function validateConfigMap(object: ApiObject, old: ApiObject | undefined): Cause[] {
  const { data, binaryData } = object
  const wrong = checkImmutableData(object, old, ['data', 'binaryData'])
  wrong.push(...checkKeys(data, 'data'))
  for (const key of isRecord(data) && isRecord(binaryData) ? Object.keys(data) : []) {
    if (Object.hasOwn(binaryData as Json, key))
      wrong.push(invalidValue(`data[${key}]`, key, 'duplicate of key present in binaryData'))
  }
  wrong.push(...checkKeys(binaryData, 'binaryData'))
  if (dataBytes(data, false) + dataBytes(binaryData, true) > maxDataBytes) {
    wrong.push({
      reason: 'FieldValueTooLong',
      message: `Too long: may not be more than ${maxDataBytes} bytes`,
      field: '',
    })
  }
  return wrong
}

const requiredSecretKeys: Record<string, readonly string[]> = {
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
  'kubernetes.io/dockercfg': ['.dockercfg'],
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
}

function validateSecret(object: ApiObject, old: ApiObject | undefined): Cause[] {
  const { data } = object
  const wrong = checkImmutableData(object, old, ['data'])
  if (old !== undefined && object['type'] !== old['type']) wrong.push(invalidValue('type', object['type'], immutable))
  wrong.push(...checkKeys(data, 'data'))
  if (dataBytes(data, true) > maxDataBytes)
    wrong.push({
      reason: 'FieldValueTooLong',
      message: `Too long: may not be more than ${maxDataBytes} bytes`,
      field: 'data',
    })
  for (const key of requiredSecretKeys[text(object['type'])] ?? []) {
    if (!isRecord(data) || data[key] === undefined) wrong.push(requiredValue(`data[${key}]`))
  }
  return wrong
}

const serviceTypes = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']

function checkPortNumber(field: string, value: unknown): Cause[] {
  return typeof value === 'number' && value >= 1 && value <= 65_535
    ? []
    : [invalidValue(field, value ?? 0, 'must be between 1 and 65535, inclusive')]
}

function validateServicePorts(spec: unknown): Cause[] {
  const wrong: Cause[] = []
  const ports = asRecords(getPath(spec, 'ports'))
  const isHeadless = getPath(spec, 'clusterIP') === 'None'
  if (ports.length === 0 && !isHeadless && getPath(spec, 'type') !== 'ExternalName')
    wrong.push(requiredValue('spec.ports'))
  const names = new Set<string>()
  const seen = new Set<string>()
  ports.forEach((port, index) => {
    const at = `spec.ports[${index}]`
    const name = text(port['name'])
    if (name === '') {
      if (ports.length > 1) wrong.push(requiredValue(`${at}.name`))
    } else {
      wrong.push(...checkLabel(name).map((why) => invalidValue(`${at}.name`, name, why)))
      if (names.has(name)) wrong.push(duplicateValue(`${at}.name`, name))
      names.add(name)
    }
    wrong.push(...checkPortNumber(`${at}.port`, port['port']))
    const protocol = text(port['protocol'])
    if (!['TCP', 'UDP', 'SCTP'].includes(protocol))
      wrong.push(unsupportedValue(`${at}.protocol`, protocol, ['SCTP', 'TCP', 'UDP']))
    const target = port['targetPort']
    if (typeof target === 'number') wrong.push(...checkPortNumber(`${at}.targetPort`, target))
    const key = `${protocol}/${String(port['port'])}`
    if (seen.has(key)) wrong.push(duplicateValue(at, { protocol, port: port['port'] }))
    seen.add(key)
  })
  return wrong
}

function validateService(object: ApiObject): Cause[] {
  const spec = object['spec']
  const points = asRecords(getPath(object, 'status', 'loadBalancer', 'ingress'))
  const type = text(getPath(spec, 'type'))
  const wrong = validateServicePorts(spec)
  if (!serviceTypes.includes(type)) wrong.push(unsupportedValue('spec.type', type, serviceTypes))
  if (type === 'ExternalName') {
    const name = text(getPath(spec, 'externalName'))
    if (name === '') wrong.push(requiredValue('spec.externalName'))
    else
      wrong.push(...checkSubdomain(name.replace(/\.$/, '')).map((why) => invalidValue('spec.externalName', name, why)))
  }
  if (points.length > 0 && type !== 'LoadBalancer') {
    wrong.push(forbiddenValue('status.loadBalancer.ingress', "may only be used when `spec.type` is 'LoadBalancer'"))
  }
  const affinity = getPath(spec, 'sessionAffinity')
  if (affinity !== 'None' && affinity !== 'ClientIP')
    wrong.push(unsupportedValue('spec.sessionAffinity', affinity, ['ClientIP', 'None']))
  asStrings(getPath(spec, 'externalIPs')).forEach((ip, index) => {
    if (isIP(ip) === 0)
      wrong.push(
        invalidValue(`spec.externalIPs[${index}]`, ip, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'),
      )
  })
  return wrong
}

const pathTypes = ['Exact', 'ImplementationSpecific', 'Prefix']

function validateBackend(backend: unknown, at: string): Cause[] {
  if (!isRecord(backend)) return [requiredValue(at)]
  const { service, resource } = backend
  if (isRecord(resource))
    return isRecord(service) ? [invalidValue(at, '', 'cannot set both resource and service backends')] : []
  if (!isRecord(service)) return [requiredValue(at, 'resource or service backend is required')]
  const name = text(service['name'])
  const wrong: Cause[] = []
  if (name === '') wrong.push(requiredValue(`${at}.service.name`))
  else wrong.push(...checkDns1035Label(name).map((why) => invalidValue(`${at}.service.name`, name, why)))
  const port = service['port']
  const hasName = text(getPath(port, 'name')) !== ''
  const hasNumber = getPath(port, 'number') !== undefined
  if (hasName && hasNumber) wrong.push(invalidValue(at, '', 'cannot set both port name & port number'))
  else if (!hasName && !hasNumber) wrong.push(requiredValue(at, 'port name or number is required'))
  else if (hasNumber) wrong.push(...checkPortNumber(`${at}.service.port.number`, getPath(port, 'number')))
  return wrong
}

function validateIngressHost(host: string, at: string): Cause[] {
  if (host === '') return []
  if (isIP(host) !== 0) return [invalidValue(at, host, 'must be a DNS name, not an IP address')]
  if (!host.includes('*')) return checkSubdomain(host).map((why) => invalidValue(at, host, why))
  const why = `a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
  return host.startsWith('*.') && checkSubdomain(host.slice(2)).length === 0 ? [] : [invalidValue(at, host, why)]
}

function validateIngress(object: ApiObject): Cause[] {
  const spec = object['spec']
  const rules = asRecords(getPath(spec, 'rules'))
  const wrong: Cause[] = []
  const defaultBackend = getPath(spec, 'defaultBackend')
  if (rules.length === 0 && !isRecord(defaultBackend)) {
    wrong.push(invalidValue('spec', null, 'either `defaultBackend` or `rules` must be specified'))
  }
  if (isRecord(defaultBackend)) wrong.push(...validateBackend(defaultBackend, 'spec.defaultBackend'))
  rules.forEach((rule, index) => {
    const at = `spec.rules[${index}]`
    wrong.push(...validateIngressHost(text(rule['host']), `${at}.host`))
    const http = rule['http']
    if (!isRecord(http)) return
    const paths = asRecords(http['paths'])
    if (paths.length === 0) wrong.push(requiredValue(`${at}.http.paths`))
    paths.forEach((path, pathIndex) => {
      const here = `${at}.http.paths[${pathIndex}]`
      const type = path['pathType']
      // A real server looks no further into a path without a type.
      if (type === undefined || type === null) {
        wrong.push(requiredValue(`${here}.pathType`, 'pathType must be specified'))
        return
      }
      if (!pathTypes.includes(text(type))) wrong.push(unsupportedValue(`${here}.pathType`, type, pathTypes))
      else if (type !== 'ImplementationSpecific' && !text(path['path']).startsWith('/'))
        wrong.push(invalidValue(`${here}.path`, text(path['path']), 'must be an absolute path'))
      wrong.push(...validateBackend(path['backend'], `${here}.backend`))
    })
  })
  return wrong
}

function validateWorkload(object: ApiObject, old: ApiObject | undefined): Cause[] {
  const spec = object['spec']
  const selector = getPath(spec, 'selector')
  const labels = getPath(spec, 'template', 'metadata', 'labels')
  const wrong: Cause[] = []
  if (!isRecord(selector)) wrong.push(requiredValue('spec.selector'))
  else if (Object.keys(selector).length === 0)
    wrong.push(invalidValue('spec.selector', {}, 'empty selector is invalid for deployment'))
  else if (!compileLabelSelector(selector).matches(isRecord(labels) ? (labels as Record<string, string>) : {})) {
    wrong.push(
      invalidValue('spec.template.metadata.labels', labels ?? null, '`selector` does not match template `labels`'),
    )
  }
  wrong.push(...validateReplicas(getPath(spec, 'replicas'), 'spec.replicas'))
  wrong.push(...validateContainers(getPath(spec, 'template', 'spec'), 'spec.template.spec'))
  if (old !== undefined && !isSameJson(selector, getPath(old, 'spec', 'selector')))
    wrong.push(invalidValue('spec.selector', selector, immutable))
  return wrong
}

function validateReplicas(value: unknown, field: string): Cause[] {
  return typeof value === 'number' && value < 0
    ? [invalidValue(field, value, 'must be greater than or equal to 0')]
    : []
}

function validateContainers(spec: unknown, at: string): Cause[] {
  const containers = asRecords(getPath(spec, 'containers'))
  if (containers.length === 0) return [requiredValue(`${at}.containers`)]
  const names = new Set<string>()
  return containers.flatMap((container, index) => {
    const here = `${at}.containers[${index}]`
    const name = text(container['name'])
    const wrong: Cause[] = []
    if (name === '') wrong.push(requiredValue(`${here}.name`))
    else wrong.push(...checkLabel(name).map((why) => invalidValue(`${here}.name`, name, why)))
    if (name !== '' && names.has(name)) wrong.push(duplicateValue(`${here}.name`, name))
    names.add(name)
    if (text(container['image']) === '') wrong.push(requiredValue(`${here}.image`))
    return wrong
  })
}

function validateBinding(object: ApiObject, old: ApiObject | undefined): Cause[] {
  const wrong: Cause[] = []
  const role = object['roleRef']
  const kind = text(getPath(role, 'kind'))
  const isCluster = object.kind === 'ClusterRoleBinding'
  if (getPath(role, 'apiGroup') !== 'rbac.authorization.k8s.io')
    wrong.push(unsupportedValue('roleRef.apiGroup', getPath(role, 'apiGroup'), ['rbac.authorization.k8s.io']))
  const kinds = isCluster ? ['ClusterRole'] : ['Role', 'ClusterRole']
  if (!kinds.includes(kind)) wrong.push(unsupportedValue('roleRef.kind', kind, kinds))
  if (text(getPath(role, 'name')) === '') wrong.push(requiredValue('roleRef.name'))
  asRecords(object['subjects']).forEach((subject, index) => {
    const at = `subjects[${index}]`
    if (text(subject['name']) === '') wrong.push(requiredValue(`${at}.name`))
    if (!['ServiceAccount', 'User', 'Group'].includes(text(subject['kind'])))
      wrong.push(unsupportedValue(`${at}.kind`, subject['kind'], ['ServiceAccount', 'User', 'Group']))
    else if (subject['kind'] === 'ServiceAccount' && isCluster && text(subject['namespace']) === '')
      wrong.push(requiredValue(`${at}.namespace`))
  })
  if (old !== undefined && !isSameJson(role, old['roleRef']))
    wrong.push(invalidValue('roleRef', role, 'cannot change roleRef'))
  return wrong
}

function validateRole(object: ApiObject): Cause[] {
  return asRecords(object['rules']).flatMap((rule, index) => {
    const at = `rules[${index}]`
    const wrong: Cause[] = []
    if (asStrings(rule['verbs']).length === 0)
      wrong.push(requiredValue(`${at}.verbs`, 'verbs must contain at least one value'))
    const isNonResource = asStrings(rule['nonResourceURLs']).length > 0
    if (isNonResource) {
      if (object.kind === 'Role')
        wrong.push(
          invalidValue(
            `${at}.nonResourceURLs`,
            rule['nonResourceURLs'],
            'namespaced rules cannot apply to non-resource URLs',
          ),
        )
      return wrong
    }
    if (asStrings(rule['apiGroups']).length === 0)
      wrong.push(requiredValue(`${at}.apiGroups`, 'resource rules must supply at least one api group'))
    if (asStrings(rule['resources']).length === 0)
      wrong.push(requiredValue(`${at}.resources`, 'resource rules must supply at least one resource'))
    return wrong
  })
}

function validateLease(object: ApiObject): Cause[] {
  const positive = (key: string): Cause[] => {
    const value = getPath(object, 'spec', key)
    return typeof value === 'number' && value <= 0 ? [invalidValue(`spec.${key}`, value, 'must be greater than 0')] : []
  }
  return positive('leaseDurationSeconds')
}

const byKind: Record<string, (object: ApiObject, old: ApiObject | undefined) => Cause[]> = {
  configmaps: validateConfigMap,
  secrets: validateSecret,
  services: validateService,
  pods: (object, old) => (old === undefined ? validateContainers(object['spec'], 'spec') : []),
  'ingresses.networking.k8s.io': validateIngress,
  'deployments.apps': validateWorkload,
  'replicasets.apps': validateWorkload,
  'daemonsets.apps': validateWorkload,
  'statefulsets.apps': validateWorkload,
  'roles.rbac.authorization.k8s.io': validateRole,
  'clusterroles.rbac.authorization.k8s.io': validateRole,
  'rolebindings.rbac.authorization.k8s.io': validateBinding,
  'clusterrolebindings.rbac.authorization.k8s.io': validateBinding,
  'leases.coordination.k8s.io': validateLease,
}

export function validateKind(id: string, object: ApiObject, old: ApiObject | undefined): Cause[] {
  return byKind[id]?.(object, old) ?? []
}
