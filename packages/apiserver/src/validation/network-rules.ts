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
  const causes = type === '' ? [requiredValue(field)] : oneOf(field, type, ['FQDN', 'IPv4', 'IPv6'])
  asRecords(object['endpoints']).forEach((endpoint, index) =>
    causes.push(...endpointRules(endpoint, `endpoints[${index}]`, type)),
  )
  const names = new Set<string>()
  asRecords(object['ports']).forEach((port, index) => {
    const at = `ports[${index}]`
    const name = text(port['name'])
    if (names.has(name)) causes.push(duplicateValue(`${at}.name`, name))
    names.add(name)
    if (name !== '') causes.push(...named(checkLabel, `${at}.name`, name))
    causes.push(...oneOf(`${at}.protocol`, port['protocol'], protocols))
    if (port['appProtocol'] !== undefined)
      causes.push(...named(checkQualifiedName, `${at}.appProtocol`, text(port['appProtocol'])))
  })
  return causes
}

function endpointRules(endpoint: Json, at: string, type: string): Cause[] {
  const addresses = asStrings(endpoint['addresses'])
  const causes: Cause[] = []
  if (addresses.length === 0) causes.push(requiredValue(`${at}.addresses`, 'must contain at least 1 address'))
  addresses.forEach((address, index) =>
    causes.push(...endpointAddress(address, `${at}.addresses`, `${at}.addresses[${index}]`, type)),
  )
  if (endpoint['nodeName'] !== undefined)
    causes.push(...named(checkSubdomain, `${at}.nodeName`, text(endpoint['nodeName'])))
  if (endpoint['hostname'] !== undefined)
    causes.push(...named(checkLabel, `${at}.hostname`, text(endpoint['hostname'])))
  return causes
}

function endpointAddress(address: string, list: string, at: string, type: string): Cause[] {
  if (type === 'FQDN') return named(checkSubdomain, at, address)
  if (type !== 'IPv4' && type !== 'IPv6') return []
  const unreadable = ipAddress(at, address)
  if (unreadable.length > 0) return unreadable
  const isValid = type === 'IPv4' ? isIPv4(address) : isIPv6(address)
  return [
    ...(isValid ? [] : [invalidValue(list, address, `must be an ${type} address`)]),
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
  const causes = labelSelector('spec.podSelector', spec['podSelector'])
  for (const [key, peers] of [
    ['ingress', 'from'],
    ['egress', 'to'],
  ] as const) {
    asRecords(spec[key]).forEach((rule, index) => {
      const at = `spec.${key}[${index}]`
      asRecords(rule['ports']).forEach((port, position) => causes.push(...policyPort(port, `${at}.ports[${position}]`)))
      asRecords(rule[peers]).forEach((peer, position) =>
        causes.push(...policyPeer(peer, `${at}.${peers}[${position}]`)),
      )
    })
  }
  if (types.length > 2)
    return [...causes, invalidValue('spec.policyTypes', types, 'may not specify more than two policyTypes')]
  types.forEach((type, index) => causes.push(...oneOf(`spec.policyTypes[${index}]`, type, ['Ingress', 'Egress'])))
  return causes
}

function policyPort(port: Json, at: string): Cause[] {
  const { endPort } = port
  const causes = oneOf(`${at}.protocol`, port['protocol'], ['TCP', 'UDP', 'SCTP'])
  if (port['port'] === undefined) {
    const why = 'may not be specified when `port` is not specified'
    return endPort === undefined ? causes : [...causes, invalidValue(`${at}.endPort`, endPort, why)]
  }
  causes.push(...portOrName(`${at}.port`, port['port']))
  if (endPort === undefined) return causes
  if (typeof port['port'] === 'string')
    causes.push(invalidValue(`${at}.endPort`, endPort, 'may not be specified when `port` is non-numeric'))
  else if (count(endPort) < count(port['port']))
    causes.push(invalidValue(`${at}.endPort`, port['port'], 'must be greater than or equal to `port`'))
  return [...causes, ...portNumber(`${at}.endPort`, endPort)]
}

function policyPeer(peer: Json, at: string): Cause[] {
  const { ipBlock, podSelector, namespaceSelector } = peer
  const causes = [
    ...(podSelector === undefined ? [] : labelSelector(`${at}.podSelector`, podSelector)),
    ...(namespaceSelector === undefined ? [] : labelSelector(`${at}.namespaceSelector`, namespaceSelector)),
    ...(isRecord(ipBlock) ? block(ipBlock, `${at}.ipBlock`) : []),
  ]
  const selectors = [podSelector, namespaceSelector].filter(isRecord).length
  if (isRecord(ipBlock) && selectors > 0)
    causes.push(forbiddenValue(at, 'may not specify both ipBlock and another peer'))
  if (!isRecord(ipBlock) && selectors === 0) causes.push(requiredValue(at, 'must specify a peer'))
  return causes
}

function block(value: Json, at: string): Cause[] {
  const cidr = text(value['cidr'])
  const causes = cidr === '' ? [requiredValue(`${at}.cidr`)] : ipRange(`${at}.cidr`, cidr)
  if (causes.length > 0) return causes
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
