/** Header policies of HTTPProxy and filters of HTTPRoute as mutations of the IR. */
import type { HeadersPolicy } from '@seamark/kube/contour'
import type { HeaderFilter } from '@seamark/kube/gateway-api'
import type { Immutable } from '@seamark/kube/object'
import { isReservedField } from '../ir/field-names.ts'
import type { HeaderMutation } from '../ir/model.ts'
import { compareTexts } from '../ir/route-order.ts'
import { headerValueFault, hostTextFault, MAX_FIELD_BYTES } from './wire-text.ts'

/** A name of a header field. */
export const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** Of one policy; Envoy rejects more. */
const MAX_FIELDS = 1_000

/** Why an object may not set or remove a header field. @param name in any case */
export function fieldNameFault(name: string): string | undefined {
  if (!TOKEN.test(name)) return 'not a valid HTTP header name'
  if (name.length > MAX_FIELD_BYTES) return `longer than ${MAX_FIELD_BYTES} octets`
  return isReservedField(name.toLowerCase())
    ? 'the data plane itself writes the fields of connections, lengths and hosts; remove it from the policy'
    : undefined
}

export interface HeadersResult {
  readonly mutation?: HeaderMutation
  readonly host?: string
}

const UNCHANGED: HeadersResult = {}

/** @param allowsHost `Host` may be set */
export function headersPolicy(
  policy: Immutable<HeadersPolicy> | undefined,
  allowsHost: boolean,
  constants: Readonly<Record<string, string>>,
): HeadersResult | { readonly fault: string } {
  if (policy === undefined) return UNCHANGED
  if ((policy.set?.length ?? 0) > MAX_FIELDS || (policy.remove?.length ?? 0) > MAX_FIELDS)
    return { fault: `more than ${MAX_FIELDS} header fields` }
  const set = new Map<string, string>()
  let host: string | undefined
  for (const { name, value } of policy.set ?? []) {
    const key = name.toLowerCase()
    if (set.has(key)) return { fault: `duplicate header addition: "${canonical(name)}"` }
    if (key === 'host') {
      if (!allowsHost) return { fault: `rewriting "Host" header is not supported` }
      const fault = hostTextFault(value)
      if (fault !== undefined) return { fault: `invalid set header "Host": ${fault}` }
      host = escapeVariables(value, {})
      continue
    }
    const fault = fieldNameFault(key) ?? headerValueFault(value)
    if (fault !== undefined) return { fault: `invalid set header "${canonical(name)}": ${fault}` }
    set.set(key, escapeVariables(value, constants))
  }
  const remove = new Set<string>()
  for (const name of policy.remove ?? []) {
    const key = name.toLowerCase()
    if (remove.has(key)) return { fault: `duplicate header removal: "${canonical(name)}"` }
    const fault = fieldNameFault(key)
    if (fault !== undefined) return { fault: `invalid remove header "${canonical(name)}": ${fault}` }
    remove.add(key)
  }
  return {
    ...(set.size + remove.size > 0 && { mutation: mutationOf({ set, remove }) }),
    ...(host !== undefined && { host }),
  }
}

/** Known when a request is served; the data plane replaces them. */
const REQUEST_VARIABLES = [
  'DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT',
  'DOWNSTREAM_REMOTE_ADDRESS',
  'DOWNSTREAM_LOCAL_ADDRESS',
  'DOWNSTREAM_LOCAL_PORT',
  'PROTOCOL',
  'HOSTNAME',
]

/** As Contour does: every percent sign is literal (`%%`) unless it belongs to a known variable. */
function escapeVariables(value: string, constants: Readonly<Record<string, string>>): string {
  if (!value.includes('%')) return value
  let result = value.replaceAll('%', '%%')
  for (const [name, constant] of Object.entries(constants))
    result = result.replaceAll(`%%${name}%%`, constant.replaceAll('%', '%%'))
  for (const name of REQUEST_VARIABLES) result = result.replaceAll(`%%${name}%%`, `%${name}%`)
  return result.replaceAll(/%(%REQ\(:?[\w-]+(?:\?:?[\w-]+)?\)(?::\d{1,9})?%)%/g, '$1')
}

export function headerFilter(filter: Immutable<HeaderFilter>): HeaderMutation | { readonly fault: string } | undefined {
  for (const { name, value } of [...(filter.set ?? []), ...(filter.add ?? [])]) {
    const fault = fieldNameFault(name) ?? headerValueFault(value)
    if (fault !== undefined) return { fault: `header ${shown(name)}: ${fault}` }
  }
  for (const name of filter.remove ?? []) {
    const fault = fieldNameFault(name)
    if (fault !== undefined) return { fault: `header ${shown(name)}: ${fault}` }
  }
  const entries = (list: Immutable<HeaderFilter['set']>) =>
    new Map((list ?? []).map(({ name, value }) => [name.toLowerCase(), literal(value)]))
  const remove = new Set((filter.remove ?? []).map((name) => name.toLowerCase()))
  const [set, add] = [entries(filter.set), entries(filter.add)]
  return set.size + add.size + remove.size === 0 ? undefined : mutationOf({ set, add, remove })
}

function shown(name: string): string {
  return TOKEN.test(name) ? name : JSON.stringify(name)
}

/** The Gateway API has no variables: a percent sign is a percent sign. */
function literal(value: string): string {
  return value.replaceAll('%', '%%')
}

function mutationOf(parts: {
  set: ReadonlyMap<string, string>
  add?: ReadonlyMap<string, string>
  remove: ReadonlySet<string>
}): HeaderMutation {
  const list = (map: ReadonlyMap<string, string>) =>
    [...map].map(([name, value]) => ({ name, value })).toSorted((a, b) => compareTexts(a.name, b.name))
  return { set: list(parts.set), add: list(parts.add ?? new Map()), remove: [...parts.remove].toSorted() }
}

/** Go's canonical form, as in Contour's messages. */
function canonical(name: string): string {
  return name.toLowerCase().replaceAll(/(^|-)[a-z]/g, (letter) => letter.toUpperCase())
}
