/** Services: the fields allowed for each type, and ports. */
import { duplicateValue, forbiddenValue, invalidValue, requiredValue, unsupportedValue } from './metadata.ts'
import { checkLabel, checkQualifiedName, checkSubdomain } from './names.ts'
import {
  type ApiObject,
  asRecords,
  asStrings,
  getPath,
  isRecord,
  isSameJson,
  type Json,
} from '../codec/object-shape.ts'
import type { Cause } from '../schema/model.ts'
import {
  count,
  ipAddress,
  ipRange,
  labels,
  loadBalancerPoints,
  named,
  oneOf,
  oneOfIfSet,
  ordinaryAddress,
  portNumber,
  portOrName,
  protocols,
  text,
} from './field-rules.ts'

const types = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']
const policies = ['Cluster', 'Local']
const onlyBalanced = "may only be used when `type` is 'LoadBalancer'"
const maxAffinitySeconds = 86_400

export function validateService(object: ApiObject, old: ApiObject | undefined): Cause[] {
  const spec: Json = isRecord(object['spec']) ? object['spec'] : {}
  const type = text(spec['type'])
  return [
    ...(old === undefined ? [] : changes(spec, old)),
    ...ports(spec, type),
    ...affinity(spec),
    ...oneOf('spec.type', type, types),
    ...(type === 'ExternalName' ? externalName(spec) : addresses(spec)),
    ...labels('spec.selector', spec['selector']),
    ...asStrings(spec['externalIPs']).flatMap((ip, index) => {
      const at = `spec.externalIPs[${index}]`
      const causes = ipAddress(at, ip)
      return causes.length > 0 ? causes : ordinaryAddress(at, ip)
    }),
    ...balancing(spec, type),
    ...traffic(spec, type),
    ...families(spec),
    ...status(object, type),
  ]
}

function changes(spec: Json, old: ApiObject): Cause[] {
  const before = getPath(old, 'spec', 'loadBalancerClass')
  const isKept = spec['type'] === 'LoadBalancer' && getPath(old, 'spec', 'type') === 'LoadBalancer'
  return isKept && spec['loadBalancerClass'] !== before
    ? [invalidValue('spec.loadBalancerClass', spec['loadBalancerClass'], 'may not change once set')]
    : []
}

function ports(spec: Json, type: string): Cause[] {
  const list = asRecords(spec['ports'])
  const causes: Cause[] = []
  if (list.length === 0 && spec['clusterIP'] !== 'None' && type !== 'ExternalName')
    causes.push(requiredValue('spec.ports'))
  const [names, used] = [new Set<string>(), new Set<string>()]
  for (const [index, port] of list.entries()) {
    const at = `spec.ports[${index}]`
    const [name, protocol] = [text(port['name']), text(port['protocol'])]
    if (name === '') {
      if (list.length > 1) causes.push(requiredValue(`${at}.name`))
    } else {
      causes.push(...named(checkLabel, `${at}.name`, name))
      if (names.has(name)) causes.push(duplicateValue(`${at}.name`, name))
      names.add(name)
    }
    causes.push(...portNumber(`${at}.port`, port['port']))
    causes.push(...oneOf(`${at}.protocol`, protocol, protocols))
    causes.push(...portOrName(`${at}.targetPort`, port['targetPort']))
    if (port['appProtocol'] !== undefined)
      causes.push(...named(checkQualifiedName, `${at}.appProtocol`, text(port['appProtocol'])))
    if (type === 'ClusterIP' && count(port['nodePort']) !== 0)
      causes.push(forbiddenValue(`${at}.nodePort`, "may not be used when `type` is 'ClusterIP'"))
    const key = `${protocol}/${count(port['port'])}`
    if (used.has(key)) causes.push(duplicateValue(at, internalPort(protocol, count(port['port']))))
    used.add(key)
  }
  return causes
}

/** The port in kube-apiserver's error: the key fields of its internal type. */
function internalPort(protocol: string, port: number): Json {
  return { Name: '', Protocol: protocol, AppProtocol: null, Port: port, TargetPort: 0, NodePort: 0 }
}

function affinity(spec: Json): Cause[] {
  const causes = oneOf('spec.sessionAffinity', spec['sessionAffinity'], ['ClientIP', 'None'])
  if (spec['sessionAffinity'] !== 'ClientIP') return causes
  const seconds = getPath(spec, 'sessionAffinityConfig', 'clientIP', 'timeoutSeconds')
  if (typeof seconds === 'number' && (seconds <= 0 || seconds > maxAffinitySeconds)) {
    const field = 'spec.sessionAffinityConfig.clientIP.timeoutSeconds'
    causes.push(invalidValue(field, seconds, `must be greater than 0 and less than ${maxAffinitySeconds}`))
  }
  return causes
}

function externalName(spec: Json): Cause[] {
  const causes: Cause[] = []
  if (text(spec['clusterIP']) !== '' || asStrings(spec['clusterIPs']).length > 0)
    causes.push(forbiddenValue('spec.clusterIPs', 'may not be set for ExternalName services'))
  const name = text(spec['externalName'])
  if (name === '') return [...causes, requiredValue('spec.externalName')]
  return [
    ...causes,
    ...checkSubdomain(name.replace(/\.$/, '')).map((why) => invalidValue('spec.externalName', name, why)),
  ]
}

function addresses(spec: Json): Cause[] {
  const first = text(spec['clusterIP'])
  const list = asStrings(spec['clusterIPs'])
  if (first === '' && list.length > 0) {
    const causes = [invalidValue('spec.clusterIPs', list, 'must be empty when `clusterIP` is not specified')]
    if (list.length > 1 && list.includes('None'))
      causes.push(invalidValue('spec.clusterIPs', list, "'None' must be the first and only value"))
    return causes
  }
  if (first === '' || first === 'None') return []
  return ipAddress('spec.clusterIPs[0]', first)
}

function balancing(spec: Json, type: string): Cause[] {
  const isBalanced = type === 'LoadBalancer'
  const causes: Cause[] = []
  const ranges = asStrings(spec['loadBalancerSourceRanges'])
  if (ranges.length > 0 && !isBalanced) causes.push(forbiddenValue('spec.LoadBalancerSourceRanges', onlyBalanced))
  else causes.push(...ranges.flatMap((range, index) => ipRange(`spec.LoadBalancerSourceRanges[${index}]`, range)))
  if (spec['allocateLoadBalancerNodePorts'] !== undefined && !isBalanced)
    causes.push(forbiddenValue('spec.allocateLoadBalancerNodePorts', onlyBalanced))
  const balancer = spec['loadBalancerClass']
  if (balancer !== undefined) {
    if (isBalanced) causes.push(...named(checkQualifiedName, 'spec.loadBalancerClass', text(balancer)))
    else causes.push(forbiddenValue('spec.loadBalancerClass', onlyBalanced))
  }
  return causes
}

function traffic(spec: Json, type: string): Cause[] {
  const outside = text(spec['externalTrafficPolicy'])
  const isOutside =
    type === 'LoadBalancer' ||
    type === 'NodePort' ||
    (type === 'ClusterIP' && asStrings(spec['externalIPs']).length > 0)
  const health = count(spec['healthCheckNodePort'])
  const causes: Cause[] = []
  if (outside !== '') {
    const field = 'spec.externalTrafficPolicy'
    if (isOutside) causes.push(...oneOf(field, outside, policies))
    else causes.push(invalidValue(field, outside, 'may only be set for externally-accessible services'))
  }
  if (health !== 0 && !(type === 'LoadBalancer' && outside === 'Local')) {
    const why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
    causes.push(invalidValue('spec.healthCheckNodePort', health, why))
  }
  causes.push(...oneOfIfSet('spec.internalTrafficPolicy', spec['internalTrafficPolicy'], policies))
  const near = ['PreferClose', 'PreferSameZone', 'PreferSameNode']
  return [...causes, ...oneOfIfSet('spec.trafficDistribution', spec['trafficDistribution'], near)]
}

/** This cluster is IPv4 only, like kube-apiserver with one service range. */
function families(spec: Json): Cause[] {
  const policy = spec['ipFamilyPolicy']
  const known = ['PreferDualStack', 'RequireDualStack', 'SingleStack']
  const list = asStrings(spec['ipFamilies'])
  const isOpen = spec['clusterIP'] === 'None' && !isRecord(spec['selector'])
  const causes = list.flatMap((family, index): Cause[] => {
    const field = `spec.ipFamilies[${index}]`
    if (family !== 'IPv4' && family !== 'IPv6') return [unsupportedValue(field, family, ['IPv4', 'IPv6'])]
    return family === 'IPv6' && !isOpen ? [invalidValue(field, family, 'not configured on this cluster')] : []
  })
  causes.push(...oneOfIfSet('spec.ipFamilyPolicy', policy, known))
  if (policy === 'RequireDualStack' && !isOpen) {
    const why = 'this cluster is not configured for dual-stack services'
    causes.push(invalidValue('spec.ipFamilyPolicy', policy, why))
  }
  return causes
}

function status(object: ApiObject, type: string): Cause[] {
  const points = asRecords(getPath(object, 'status', 'loadBalancer', 'ingress'))
  if (points.length === 0) return []
  if (type !== 'LoadBalancer')
    return [forbiddenValue('status.loadBalancer.ingress', "may only be used when `spec.type` is 'LoadBalancer'")]
  return loadBalancerPoints(object['status'])
}

/** Drops fields that only the old type of a Service used, unless the request sets them. In place. */
export function dropOldTypeFields(spec: Json, old: Json): void {
  const [type, before] = [text(spec['type']), text(old['type'])]
  if (type === before) return
  const drop = (keys: readonly string[]): void => {
    for (const key of keys) if (isSameJson(spec[key], old[key])) delete spec[key]
  }
  if (type === 'ExternalName')
    drop(['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy', 'internalTrafficPolicy'])
  if (before === 'LoadBalancer') drop(['allocateLoadBalancerNodePorts', 'loadBalancerClass', 'healthCheckNodePort'])
  if (type === 'ClusterIP' || type === 'ExternalName') {
    if (asStrings(spec['externalIPs']).length === 0) drop(['externalTrafficPolicy'])
    const used = new Set(asRecords(old['ports']).map((port) => count(port['nodePort'])))
    for (const port of asRecords(spec['ports'])) if (used.has(count(port['nodePort']))) delete port['nodePort']
  }
}

export function warnOfService(object: ApiObject): string[] {
  return getPath(object, 'spec', 'trafficDistribution') === 'PreferClose'
    ? ['spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"']
    : []
}
