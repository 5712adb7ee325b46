/** EndpointSlices, Endpoints and NetworkPolicies. */
import { isIPv4, isIPv6 } from 'node:net'
import { parseCidr } from '../cel/network.ts'
import { duplicateValue, forbiddenValue, invalidValue, requiredValue } from './metadata.ts'
import { checkLabel, checkQualifiedName, checkSubdomain } from './names.ts'
import { type ApiObject, asRecords, asStrings, isRecord, type Json } from '../codec/object-shape.ts'
import type { Cause } from '../schema/model.ts'
import {
  count,
  immutable,
  ipAddress,
  ipRange,
  labelSelector,
  named,
  oneOf,
  ordinaryAddress,
  portNumber,
  portOrName,
  protocols,
  text,
} from './field-rules.ts'

export function validateEndpointSlice(object: ApiObject, old: ApiObject | undefined): Cause[] {
  const type = text(object['addressType'])
  const field = 'addressType'
  if (old !== undefined && type !== old['addressType']) return [invalidValue(field, type, immutable)]
  const wrong = type === '' ? [requiredValue(field)] : oneOf(field, type, ['FQDN', 'IPv4', 'IPv6'])
  asRecords(object['endpoints']).forEach((endpoint, index) =>
    wrong.push(...endpointRules(endpoint, `endpoints[${index}]`, type)),
  )
  const names = new Set<string>()
  asRecords(object['ports']).forEach((port, index) => {
    const at = `ports[${index}]`
    const name = text(port['name'])
    if (names.has(name)) wrong.push(duplicateValue(`${at}.name`, name))
    names.add(name)
    if (name !== '') wrong.push(...named(checkLabel, `${at}.name`, name))
    wrong.push(...oneOf(`${at}.protocol`, port['protocol'], protocols))
    if (port['appProtocol'] !== undefined)
      wrong.push(...named(checkQualifiedName, `${at}.appProtocol`, text(port['appProtocol'])))
  })
  return wrong
}

function endpointRules(endpoint: Json, at: string, type: string): Cause[] {
  const addresses = asStrings(endpoint['addresses'])
  const wrong: Cause[] = []
  if (addresses.length === 0) wrong.push(requiredValue(`${at}.addresses`, 'must contain at least 1 address'))
  addresses.forEach((address, index) =>
    wrong.push(...endpointAddress(address, `${at}.addresses`, `${at}.addresses[${index}]`, type)),
  )
  if (endpoint['nodeName'] !== undefined)
    wrong.push(...named(checkSubdomain, `${at}.nodeName`, text(endpoint['nodeName'])))
  if (endpoint['hostname'] !== undefined) wrong.push(...named(checkLabel, `${at}.hostname`, text(endpoint['hostname'])))
  return wrong
}

function endpointAddress(address: string, list: string, at: string, type: string): Cause[] {
  if (type === 'FQDN') return named(checkSubdomain, at, address)
  if (type !== 'IPv4' && type !== 'IPv6') return []
  const unreadable = ipAddress(at, address)
  if (unreadable.length > 0) return unreadable
  const isRight = type === 'IPv4' ? isIPv4(address) : isIPv6(address)
  return [
    ...(isRight ? [] : [invalidValue(list, address, `must be an ${type} address`)]),
    ...ordinaryAddress(at, address),
  ]
}

export function validateEndpoints(object: ApiObject): Cause[] {
  return asRecords(object['subsets']).flatMap((subset, index) => {
    const at = `subsets[${index}]`
    const lists = ['addresses', 'notReadyAddresses'] as const
    const ports = asRecords(subset['ports'])
    const isEmpty = lists.every((key) => asRecords(subset[key]).length === 0)
    return [
      ...(isEmpty ? [requiredValue(at, 'must specify `addresses` or `notReadyAddresses`')] : []),
      ...lists.flatMap((key) =>
        asRecords(subset[key]).flatMap((address, position) => subsetAddress(address, `${at}.${key}[${position}]`)),
      ),
      ...ports.flatMap((port, position) => subsetPort(port, `${at}.ports[${position}]`, ports.length > 1)),
    ]
  })
}

function subsetAddress(address: Json, at: string): Cause[] {
  const ip = text(address['ip'])
  const unreadable = ipAddress(`${at}.ip`, ip)
  return [
    ...unreadable,
    ...(address['hostname'] === undefined ? [] : named(checkLabel, `${at}.hostname`, text(address['hostname']))),
    // The rule for endpoint addresses parses the address again, and reports the error again.
    ...(unreadable.length > 0
      ? [invalidValue(`${at}.ip`, ip, 'must be a valid IP address')]
      : ordinaryAddress(`${at}.ip`, ip)),
  ]
}

function subsetPort(port: Json, at: string, needsName: boolean): Cause[] {
  const name = text(port['name'])
  return [
    ...(name === '' ? (needsName ? [requiredValue(`${at}.name`)] : []) : named(checkLabel, `${at}.name`, name)),
    ...portNumber(`${at}.port`, port['port']),
    ...oneOf(`${at}.protocol`, port['protocol'], protocols),
  ]
}

export function validateNetworkPolicy(object: ApiObject): Cause[] {
  const spec: Json = isRecord(object['spec']) ? object['spec'] : {}
  const types = asStrings(spec['policyTypes'])
  const wrong = labelSelector('spec.podSelector', spec['podSelector'])
  for (const [key, peers] of [
    ['ingress', 'from'],
    ['egress', 'to'],
  ] as const) {
    asRecords(spec[key]).forEach((rule, index) => {
      const at = `spec.${key}[${index}]`
      asRecords(rule['ports']).forEach((port, position) => wrong.push(...policyPort(port, `${at}.ports[${position}]`)))
      asRecords(rule[peers]).forEach((peer, position) => wrong.push(...policyPeer(peer, `${at}.${peers}[${position}]`)))
    })
  }
  if (types.length > 2)
    return [...wrong, invalidValue('spec.policyTypes', types, 'may not specify more than two policyTypes')]
  types.forEach((type, index) => wrong.push(...oneOf(`spec.policyTypes[${index}]`, type, ['Ingress', 'Egress'])))
  return wrong
}

function policyPort(port: Json, at: string): Cause[] {
  const { endPort } = port
  const wrong = oneOf(`${at}.protocol`, port['protocol'], ['TCP', 'UDP', 'SCTP'])
  if (port['port'] === undefined) {
    const why = 'may not be specified when `port` is not specified'
    return endPort === undefined ? wrong : [...wrong, invalidValue(`${at}.endPort`, endPort, why)]
  }
  wrong.push(...portOrName(`${at}.port`, port['port']))
  if (endPort === undefined) return wrong
  if (typeof port['port'] === 'string')
    wrong.push(invalidValue(`${at}.endPort`, endPort, 'may not be specified when `port` is non-numeric'))
  else if (count(endPort) < count(port['port']))
    wrong.push(invalidValue(`${at}.endPort`, port['port'], 'must be greater than or equal to `port`'))
  return [...wrong, ...portNumber(`${at}.endPort`, endPort)]
}

function policyPeer(peer: Json, at: string): Cause[] {
  const { ipBlock, podSelector, namespaceSelector } = peer
  const wrong = [
    ...(podSelector === undefined ? [] : labelSelector(`${at}.podSelector`, podSelector)),
    ...(namespaceSelector === undefined ? [] : labelSelector(`${at}.namespaceSelector`, namespaceSelector)),
    ...(isRecord(ipBlock) ? block(ipBlock, `${at}.ipBlock`) : []),
  ]
  const selectors = [podSelector, namespaceSelector].filter(isRecord).length
  if (isRecord(ipBlock) && selectors > 0)
    wrong.push(forbiddenValue(at, 'may not specify both ipBlock and another peer'))
  if (!isRecord(ipBlock) && selectors === 0) wrong.push(requiredValue(at, 'must specify a peer'))
  return wrong
}

function block(value: Json, at: string): Cause[] {
  const cidr = text(value['cidr'])
  const wrong = cidr === '' ? [requiredValue(`${at}.cidr`)] : ipRange(`${at}.cidr`, cidr)
  if (wrong.length > 0) return wrong
  return asStrings(value['except']).flatMap((except, index) => {
    const field = `${at}.except[${index}]`
    const unreadable = ipRange(field, except)
    if (unreadable.length > 0) return unreadable
    return isInside(except, cidr) ? [] : [invalidValue(field, except, 'must be a strict subset of `cidr`')]
  })
}

function isInside(inner: string, outer: string): boolean {
  const [a, b] = [parseCidr(inner), parseCidr(outer)]
  return a !== undefined && b !== undefined && a.prefix > b.prefix && b.containsCidr(a)
}
