/** Ingresses and IngressClasses. */
import { isIP } from 'node:net'
import { forbiddenValue, invalidValue, requiredValue } from './metadata.ts'
import { checkLabel, checkPathSegment, checkSubdomain } from './names.ts'
import { type ApiObject, asRecords, asStrings, getPath, isRecord, type Json } from '../codec/object-shape.ts'
import type { Cause } from '../schema/model.ts'
import {
  checkPortName,
  count,
  immutable,
  loadBalancerPoints,
  named,
  oneOf,
  portNumber,
  requiredName,
  text,
} from './field-rules.ts'

const pathTypes = ['Exact', 'ImplementationSpecific', 'Prefix']
const classAnnotation = 'kubernetes.io/ingress.class'
const wildcardRule =
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

/** Sequences that a path must not contain, and suffixes it must not have. */
const badParts = ['//', '/./', '/../', '%2f', '%2F']
const badEnds = ['/..', '/.']

export function validateIngress(object: ApiObject, old: ApiObject | undefined): Cause[] {
  const spec: Json = isRecord(object['spec']) ? object['spec'] : {}
  const { rules, defaultBackend } = spec
  const causes: Cause[] = []
  if (old === undefined) causes.push(...annotated(object, spec))
  if (asRecords(rules).length === 0 && !isRecord(defaultBackend)) {
    const why = 'either `defaultBackend` or `rules` must be specified'
    causes.push(invalidValue('spec', Array.isArray(rules) ? [] : null, why))
  }
  if (isRecord(defaultBackend)) causes.push(...backendRules(defaultBackend, 'spec.defaultBackend'))
  asRecords(rules).forEach((rule, index) => causes.push(...ruleOf(rule, `spec.rules[${index}]`)))
  asRecords(spec['tls']).forEach((entry, index) => causes.push(...certificate(entry, `spec.tls[${index}]`)))
  if (spec['ingressClassName'] !== undefined)
    causes.push(...named(checkSubdomain, 'spec.ingressClassName', text(spec['ingressClassName'])))
  return [...causes, ...loadBalancerPoints(object['status'])]
}

/** The deprecated annotation of the class, which preceded the field. */
function annotated({ metadata }: ApiObject, spec: Json): Cause[] {
  const [given, field] = [metadata.annotations?.[classAnnotation], spec['ingressClassName']]
  if (given === undefined || field === undefined || given === field) return []
  const why = 'must match `ingressClassName` when both are specified'
  return [invalidValue(`annotations.${classAnnotation}`, given, why)]
}

export function warnOfIngress({ metadata, spec }: ApiObject, old: ApiObject | undefined): string[] {
  const isNew = metadata.annotations?.[classAnnotation] !== undefined && old === undefined
  return isNew && getPath(spec, 'ingressClassName') === undefined
    ? [`annotation "${classAnnotation}" is deprecated, please use 'spec.ingressClassName' instead`]
    : []
}

function hostName(host: string, field: string): Cause[] {
  if (!host.includes('*')) return named(checkSubdomain, field, host)
  const isValid = host.startsWith('*.') && checkSubdomain(host.slice(2)).length === 0
  return isValid ? [] : [invalidValue(field, host, wildcardRule)]
}

function ruleOf(rule: Json, at: string): Cause[] {
  const host = text(rule['host'])
  const causes: Cause[] = []
  if (isIP(host) !== 0) causes.push(invalidValue(`${at}.host`, host, 'must be a DNS name, not an IP address'))
  else if (host !== '') causes.push(...hostName(host, `${at}.host`))
  if (!isRecord(rule['http'])) return causes
  const paths = asRecords(rule['http']['paths'])
  if (paths.length === 0) causes.push(requiredValue(`${at}.http.paths`))
  return [...causes, ...paths.flatMap((path, index) => pathOf(path, `${at}.http.paths[${index}]`))]
}

function pathOf(entry: Json, at: string): Cause[] {
  const [type, path] = [entry['pathType'], text(entry['path'])]
  // kube-apiserver does not validate a path without a type further.
  if (type === undefined || type === null) return [requiredValue(`${at}.pathType`, 'pathType must be specified')]
  const causes = oneOf(`${at}.pathType`, type, pathTypes)
  const isFree = type === 'ImplementationSpecific'
  if (causes.length === 0 && !path.startsWith('/') && !(isFree && path === ''))
    causes.push(invalidValue(`${at}.path`, path, 'must be an absolute path'))
  else if (causes.length === 0 && !isFree) {
    for (const part of badParts)
      if (path.includes(part)) causes.push(invalidValue(`${at}.path`, path, `must not contain '${part}'`))
    for (const end of badEnds)
      if (path.endsWith(end)) causes.push(invalidValue(`${at}.path`, path, `cannot end with '${end}'`))
  }
  return [...causes, ...backendRules(entry['backend'], `${at}.backend`)]
}

function backendRules(backend: unknown, at: string): Cause[] {
  const [service, resource] = [getPath(backend, 'service'), getPath(backend, 'resource')]
  if (isRecord(resource)) {
    return isRecord(service)
      ? [invalidValue(at, '', 'cannot set both resource and service backends')]
      : typedReference(resource, `${at}.resource`)
  }
  if (!isRecord(service)) return [invalidValue(at, '', 'resource or service backend is required')]
  const [name, number] = [text(getPath(service, 'port', 'name')), count(getPath(service, 'port', 'number'))]
  const causes = requiredName(checkLabel, `${at}.service.name`, service['name'])
  if (name !== '' && number !== 0) causes.push(invalidValue(at, '', 'cannot set both port name & port number'))
  else if (name === '' && number === 0) causes.push(requiredValue(at, 'port name or number is required'))
  else if (name === '') causes.push(...portNumber(`${at}.service.port.number`, number))
  else causes.push(...named(checkPortName, `${at}.service.port.name`, name))
  return causes
}

function typedReference(reference: Json, at: string): Cause[] {
  const group = text(reference['apiGroup'])
  return [
    ...(group === '' ? [] : named(checkSubdomain, `${at}.apiGroup`, group)),
    ...requiredName(checkPathSegment, `${at}.kind`, reference['kind']),
    ...requiredName(checkPathSegment, `${at}.name`, reference['name']),
  ]
}

function certificate(entry: Json, at: string): Cause[] {
  const secret = text(entry['secretName'])
  return [
    ...asStrings(entry['hosts']).flatMap((host, index) => hostName(host, `${at}.hosts[${index}]`)),
    ...(secret === '' ? [] : named(checkSubdomain, `${at}.secretName`, secret)),
  ]
}

export function validateIngressClass(object: ApiObject, old: ApiObject | undefined): Cause[] {
  const controller = text(getPath(object, 'spec', 'controller'))
  const parameters = getPath(object, 'spec', 'parameters')
  const causes: Cause[] = []
  if (old === undefined) causes.push(...controllerName(controller))
  else if (controller !== getPath(old, 'spec', 'controller'))
    causes.push(invalidValue('spec.controller', controller, immutable))
  return isRecord(parameters) ? [...causes, ...parameterRules(parameters)] : causes
}

function controllerName(controller: string): Cause[] {
  const field = 'spec.controller'
  if (controller === '') return [requiredValue(field)]
  const [domain = '', ...path] = controller.split('/')
  if (domain === '' || path.join('/') === '')
    return [invalidValue(field, controller, 'must be a domain-prefixed path (such as "acme.io/foo")')]
  return named(checkSubdomain, field, domain)
}

function parameterRules(parameters: Json): Cause[] {
  const at = 'spec.parameters'
  const [scope, namespace] = [text(parameters['scope']), parameters['namespace']]
  const causes = typedReference(parameters, at)
  if (scope === '') return [...causes, requiredValue(`${at}.scope`)]
  causes.push(...oneOf(`${at}.scope`, scope, ['Cluster', 'Namespace']))
  if (scope === 'Namespace' && text(namespace) === '')
    causes.push(requiredValue(`${at}.namespace`, "`parameters.scope` is set to 'Namespace'"))
  if (scope === 'Cluster' && namespace !== undefined)
    causes.push(forbiddenValue(`${at}.namespace`, "`parameters.scope` is set to 'Cluster'"))
  return causes
}
