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
  const wrong: Cause[] = []
  if (old === undefined) wrong.push(...annotated(object, spec))
  if (asRecords(rules).length === 0 && !isRecord(defaultBackend)) {
    const why = 'either `defaultBackend` or `rules` must be specified'
    wrong.push(invalidValue('spec', Array.isArray(rules) ? [] : null, why))
  }
  if (isRecord(defaultBackend)) wrong.push(...backendRules(defaultBackend, 'spec.defaultBackend'))
  asRecords(rules).forEach((rule, index) => wrong.push(...ruleOf(rule, `spec.rules[${index}]`)))
  asRecords(spec['tls']).forEach((entry, index) => wrong.push(...certificate(entry, `spec.tls[${index}]`)))
  if (spec['ingressClassName'] !== undefined)
    wrong.push(...named(checkSubdomain, 'spec.ingressClassName', text(spec['ingressClassName'])))
  return [...wrong, ...loadBalancerPoints(object['status'])]
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
  const isRight = host.startsWith('*.') && checkSubdomain(host.slice(2)).length === 0
  return isRight ? [] : [invalidValue(field, host, wildcardRule)]
}

function ruleOf(rule: Json, at: string): Cause[] {
  const host = text(rule['host'])
  const wrong: Cause[] = []
  if (isIP(host) !== 0) wrong.push(invalidValue(`${at}.host`, host, 'must be a DNS name, not an IP address'))
  else if (host !== '') wrong.push(...hostName(host, `${at}.host`))
  if (!isRecord(rule['http'])) return wrong
  const paths = asRecords(rule['http']['paths'])
  if (paths.length === 0) wrong.push(requiredValue(`${at}.http.paths`))
  return [...wrong, ...paths.flatMap((path, index) => pathOf(path, `${at}.http.paths[${index}]`))]
}

function pathOf(entry: Json, at: string): Cause[] {
  const [type, path] = [entry['pathType'], text(entry['path'])]
  // kube-apiserver does not validate a path without a type further.
  if (type === undefined || type === null) return [requiredValue(`${at}.pathType`, 'pathType must be specified')]
  const wrong = oneOf(`${at}.pathType`, type, pathTypes)
  const isFree = type === 'ImplementationSpecific'
  if (wrong.length === 0 && !path.startsWith('/') && !(isFree && path === ''))
    wrong.push(invalidValue(`${at}.path`, path, 'must be an absolute path'))
  else if (wrong.length === 0 && !isFree) {
    for (const part of badParts)
      if (path.includes(part)) wrong.push(invalidValue(`${at}.path`, path, `must not contain '${part}'`))
    for (const end of badEnds)
      if (path.endsWith(end)) wrong.push(invalidValue(`${at}.path`, path, `cannot end with '${end}'`))
  }
  return [...wrong, ...backendRules(entry['backend'], `${at}.backend`)]
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
  const wrong = requiredName(checkLabel, `${at}.service.name`, service['name'])
  if (name !== '' && number !== 0) wrong.push(invalidValue(at, '', 'cannot set both port name & port number'))
  else if (name === '' && number === 0) wrong.push(requiredValue(at, 'port name or number is required'))
  else if (name === '') wrong.push(...portNumber(`${at}.service.port.number`, number))
  else wrong.push(...named(checkPortName, `${at}.service.port.name`, name))
  return wrong
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
  const wrong: Cause[] = []
  if (old === undefined) wrong.push(...controllerName(controller))
  else if (controller !== getPath(old, 'spec', 'controller'))
    wrong.push(invalidValue('spec.controller', controller, immutable))
  return isRecord(parameters) ? [...wrong, ...parameterRules(parameters)] : wrong
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
  const wrong = typedReference(parameters, at)
  if (scope === '') return [...wrong, requiredValue(`${at}.scope`)]
  wrong.push(...oneOf(`${at}.scope`, scope, ['Cluster', 'Namespace']))
  if (scope === 'Namespace' && text(namespace) === '')
    wrong.push(requiredValue(`${at}.namespace`, "`parameters.scope` is set to 'Namespace'"))
  if (scope === 'Cluster' && namespace !== undefined)
    wrong.push(forbiddenValue(`${at}.namespace`, "`parameters.scope` is set to 'Cluster'"))
  return wrong
}
