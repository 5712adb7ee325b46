/** Header values of policies: `%%` is a percent sign, `%REQ(name)%` and the variables below are replaced. */
import { isReservedField } from '../../ir/field-names.ts'
import type { HeaderMutation } from '../../ir/model.ts'
import type { RequestFacts } from './request-facts.ts'

export interface RequestVariables {
  readonly facts: RequestFacts
  readonly remoteAddress: string
  readonly remotePort: number
  readonly localAddress: string
  readonly localPort: number
  /** `HTTP/1.1` or `HTTP/2`. */
  readonly protocol: string
}

const VARIABLE = /%(?:%|REQ\((:?[\w-]+)(?:\?(:?[\w-]+))?\)(?::(\d{1,9}))?%|([A-Z_]+)%)/g

export function expandVariables(policy: string, request: RequestVariables): string {
  const value = octetsOf(policy)
  if (!value.includes('%')) return value
  return value.replaceAll(VARIABLE, (whole, name: string, other: string, length: string, variable: string) => {
    if (whole === '%%') return '%'
    if (name !== undefined) {
      const found = headerOf(name, request.facts) ?? (other === undefined ? undefined : headerOf(other, request.facts))
      return (found ?? '').slice(0, length === undefined ? undefined : Number(length))
    }
    return variableOf(variable, request) ?? whole
  })
}

/** Header fields are octets: Node has one character for each. A text of an object is sent as UTF-8, as Envoy sends it. */
export function octetsOf(text: string): string {
  // eslint-disable-next-line no-control-regex
  return /^[\u0000-\u007F]*$/.test(text) ? text : Buffer.from(text).toString('latin1')
}

function headerOf(name: string, facts: RequestFacts): string | undefined {
  switch (name.toLowerCase()) {
    case ':authority':
      return facts.authority
    case ':path':
      return `${facts.path}${facts.search}`
    case ':method':
      return facts.method
    default:
      return facts.header(name.toLowerCase())
  }
}

function variableOf(name: string, request: RequestVariables): string | undefined {
  switch (name) {
    case 'DOWNSTREAM_REMOTE_ADDRESS':
      return `${request.remoteAddress}:${request.remotePort}`
    case 'DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT':
      return request.remoteAddress
    case 'DOWNSTREAM_LOCAL_ADDRESS':
      return `${request.localAddress}:${request.localPort}`
    case 'DOWNSTREAM_LOCAL_PORT':
      return String(request.localPort)
    case 'PROTOCOL':
      return request.protocol
    default:
      return undefined
  }
}

/** Names are lower case. A value that expands to nothing adds no header. */
export type HeaderMap = Record<string, string | string[] | number | undefined>

export function mutateHeaders(
  headers: HeaderMap,
  mutation: HeaderMutation | undefined,
  expand: (value: string) => string,
): void {
  if (mutation === undefined) return
  // The sources refuse reserved names; a message with one could have another end, or could not be sent at all.
  for (const name of mutation.remove) if (!isReservedField(name)) delete headers[name]
  for (const { name, value } of mutation.set) {
    if (isReservedField(name)) continue
    const text = expand(value)
    if (text === '') delete headers[name]
    else headers[name] = text
  }
  for (const { name, value } of mutation.add) {
    if (isReservedField(name)) continue
    const before = Object.hasOwn(headers, name) ? headers[name] : undefined
    if (before === undefined) headers[name] = expand(value)
    else headers[name] = [...(Array.isArray(before) ? before : [String(before)]), expand(value)]
  }
}

/** Node refuses several values of a field that has one value in HTTP/2; a list in one field is the same (RFC 9110 §5.3). */
export function joinedForHttp2(headers: HeaderMap): HeaderMap {
  const result: HeaderMap = {}
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined) continue
    result[name] = Array.isArray(value) && name !== 'set-cookie' ? value.join(', ') : value
  }
  return result
}
