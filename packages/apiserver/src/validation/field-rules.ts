/**
 * Rules shared by fields of many built-in kinds, with the messages of kube-apiserver. Each function takes the field's
 * path and value and returns causes; an empty list means valid.
 */
import { isIP } from 'node:net'
import {
  isLinkLocalMulticast,
  isLinkLocalUnicast,
  isLoopback,
  isUnspecified,
  parseCidr,
  parseIp,
} from '../cel/network.ts'
import { forbiddenValue, invalidValue, requiredValue, unsupportedValue } from './metadata.ts'
import { type Check, checkLabelValue, checkQualifiedName, checkSubdomain } from './names.ts'
import { asRecords, asStrings, getPath, isRecord } from '../codec/object-shape.ts'
import type { Cause } from '../schema/model.ts'

export const text = (value: unknown): string => (typeof value === 'string' ? value : '')
export const count = (value: unknown): number => (typeof value === 'number' ? value : 0)
export const immutable = 'field is immutable'
export const protocols = ['SCTP', 'TCP', 'UDP']

const ipExample = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'
const cidrExample = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'

/** Errors of a name check as causes. */
export function named(check: Check, field: string, value: string): Cause[] {
  return check(value).map((why) => invalidValue(field, value, why))
}

export function requiredName(check: Check, field: string, value: unknown): Cause[] {
  return text(value) === '' ? [requiredValue(field)] : named(check, field, text(value))
}

export function atLeastZero(field: string, value: unknown): Cause[] {
  return typeof value === 'number' && value < 0
    ? [invalidValue(field, value, 'must be greater than or equal to 0')]
    : []
}

export function within(field: string, value: unknown, low: number, high: number): Cause[] {
  return typeof value === 'number' && (value < low || value > high)
    ? [invalidValue(field, value, `must be between ${low} and ${high}, inclusive`)]
    : []
}

export function portNumber(field: string, value: unknown): Cause[] {
  return within(field, count(value), 1, 65_535)
}

export function oneOf(field: string, value: unknown, supported: readonly string[]): Cause[] {
  return supported.includes(text(value)) ? [] : [unsupportedValue(field, text(value), supported)]
}

/** An absent value is valid. */
export function oneOfIfSet(field: string, value: unknown, supported: readonly string[]): Cause[] {
  return value === undefined || value === null ? [] : oneOf(field, value, supported)
}

/** IANA service names: named ports. */
export const checkPortName: Check = (value) => {
  const errors: string[] = []
  if (value.length > 15) errors.push('must be no more than 15 characters')
  if (!/^[-a-z0-9]+$/.test(value)) errors.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)')
  if (!/[a-z]/.test(value)) errors.push('must contain at least one letter (a-z)')
  if (value.includes('--')) errors.push('must not contain consecutive hyphens')
  if (value.startsWith('-') || value.endsWith('-')) errors.push('must not begin or end with a hyphen')
  return errors
}

/** A number or the name of a port. */
export function portOrName(field: string, value: unknown): Cause[] {
  return typeof value === 'string' ? named(checkPortName, field, value) : portNumber(field, value)
}

export function ipAddress(field: string, value: string): Cause[] {
  return isIP(value) === 0 ? [invalidValue(field, value, ipExample)] : []
}

export function ipRange(field: string, value: string): Cause[] {
  return parseCidr(value) === undefined ? [invalidValue(field, value, cidrExample)] : []
}

/** Rejects addresses that cannot belong to an endpoint. */
export function ordinaryAddress(field: string, value: string): Cause[] {
  const ip = parseIp(value)
  if (ip === undefined) return []
  const invalidAddress = (why: string): Cause[] => [invalidValue(field, value, why)]
  if (isUnspecified(ip)) return invalidAddress(`may not be unspecified (${value})`)
  if (isLoopback(ip)) return invalidAddress('may not be in the loopback range (127.0.0.0/8, ::1/128)')
  if (isLinkLocalUnicast(ip)) return invalidAddress('may not be in the link-local range (169.254.0.0/16, fe80::/10)')
  if (isLinkLocalMulticast(ip))
    return invalidAddress('may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)')
  return []
}

export function labels(field: string, value: unknown): Cause[] {
  if (!isRecord(value)) return []
  return Object.entries(value).flatMap(([key, item]) => [
    ...named(checkQualifiedName, field, key),
    ...named(checkLabelValue, field, text(item)),
  ])
}

/** `{ matchLabels, matchExpressions }`. */
export function labelSelector(field: string, selector: unknown): Cause[] {
  return [
    ...labels(`${field}.matchLabels`, getPath(selector, 'matchLabels')),
    ...asRecords(getPath(selector, 'matchExpressions')).flatMap((expression, index) => {
      const at = `${field}.matchExpressions[${index}]`
      const values = asStrings(expression['values'])
      return [
        ...selectorOperator(at, text(expression['operator']), values),
        ...named(checkQualifiedName, `${at}.key`, text(expression['key'])),
        ...values.flatMap((value, position) => named(checkLabelValue, `${at}.values[${position}]`, value)),
      ]
    }),
  ]
}

function selectorOperator(at: string, operator: string, values: readonly string[]): Cause[] {
  if (operator === 'In' || operator === 'NotIn') {
    const why = "must be specified when `operator` is 'In' or 'NotIn'"
    return values.length === 0 ? [requiredValue(`${at}.values`, why)] : []
  }
  if (operator === 'Exists' || operator === 'DoesNotExist') {
    const why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
    return values.length > 0 ? [forbiddenValue(`${at}.values`, why)] : []
  }
  return [invalidValue(`${at}.operator`, operator, 'not a valid selector operator')]
}

/** Load balancer ingress points: status of Services and Ingresses. */
export function loadBalancerPoints(status: unknown): Cause[] {
  return asRecords(getPath(status, 'loadBalancer', 'ingress')).flatMap((point, index) => {
    const at = `status.loadBalancer.ingress[${index}]`
    const [ip, hostname] = [text(point['ip']), text(point['hostname'])]
    return [
      ...(ip === '' ? [] : ipAddress(`${at}.ip`, ip)),
      ...(hostname === '' ? [] : named(checkSubdomain, `${at}.hostname`, hostname)),
      ...(isIP(hostname) === 0
        ? []
        : [invalidValue(`${at}.hostname`, hostname, 'must be a DNS name, not an IP address')]),
    ]
  })
}
