/**
 * How an endpoint of a DNSEndpoint selects which of its targets an answer contains, and the RRset that carries it to our own DNS
 * server. Pure.
 *
 * `providerSpecific` has `seamark.io/weights`, `seamark.io/priorities` and `seamark.io/regions`, each a list of TARGET=VALUE
 * separated by commas (several regions of a target by `+`), and `seamark.io/answer` with `weighted` (the default) or `shuffle`.
 * Only our own server supports policies; to other providers the endpoint is a plain RRset.
 */
import {
  type AnswerPolicy,
  decodePolicy,
  DnsError,
  POLICY_TYPE,
  type PolicyEntry,
  policyText,
  rdataFromText,
} from '@seamark/dns'
import { canonicalValue, type Invalid, isInvalid, type RRset, shown } from './rrset.ts'

/** Type of the RRset beside the one that it covers. */
export const POLICY_SET_TYPE = `TYPE${POLICY_TYPE}`

const PREFIX = 'seamark.io/'
const LISTS = ['weights', 'priorities', 'regions'] as const

/** The value of the policy record, undefined when the endpoint has no policy, or why it is invalid. */
export function policyValue(providerSpecific: unknown, set: RRset): string | Invalid | undefined {
  const settings = readSettings(providerSpecific)
  if (settings.size === 0) return undefined
  const mode = settings.get('answer') ?? 'weighted'
  if (mode !== 'weighted' && mode !== 'shuffle')
    return { invalid: `seamark.io/answer is weighted or shuffle, not '${shown(mode)}'` }
  const entries = new Map<string, { -readonly [K in keyof PolicyEntry]: PolicyEntry[K] }>(
    set.values.map((value) => [value, { value }]),
  )
  for (const list of LISTS) {
    for (const item of (settings.get(list) ?? '').split(',')) {
      if (item.trim() === '') continue
      const at = item.indexOf('=')
      const target = canonicalValue(set.type, item.slice(0, Math.max(at, 0)).trim())
      const entry = isInvalid(target) ? undefined : entries.get(target)
      if (at === -1 || entry === undefined)
        return { invalid: `seamark.io/${list}: '${shown(item)}' is not TARGET=VALUE with a target of the endpoint` }
      const text = item.slice(at + 1).trim()
      if (list === 'regions') entry.regions = text.split('+')
      else entry[list === 'weights' ? 'weight' : 'priority'] = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
    }
  }
  const policy: AnswerPolicy = { type: set.type, mode, entries: [...entries.values()] }
  try {
    return policyText(policy)
  } catch (error) {
    if (!(error instanceof DnsError)) throw error
    return { invalid: shown(error.message) }
  }
}

/** The settings from which `policyValue` gives this value; none for a value that is no policy. */
export function policySettings(value: string): { name: string; value: string }[] {
  const policy = readPolicy(value)
  if (policy === undefined) return []
  const listOf = (list: (typeof LISTS)[number], textOf: (entry: PolicyEntry) => string | undefined) => {
    const items = policy.entries.flatMap((entry) => {
      const text = textOf(entry)
      return text === undefined ? [] : [`${entry.value}=${text}`]
    })
    return items.length === 0 ? [] : [{ name: `${PREFIX}${list}`, value: items.join(',') }]
  }
  return [
    { name: `${PREFIX}answer`, value: policy.mode },
    ...listOf('weights', ({ weight = 1 }) => (weight === 1 ? undefined : String(weight))),
    ...listOf('priorities', ({ priority = 0 }) => (priority === 0 ? undefined : String(priority))),
    ...listOf('regions', ({ regions = [] }) => (regions.length === 0 ? undefined : regions.join('+'))),
  ]
}

/** Of the values of a policy RRset, the one for this type. */
export function policyForType(values: readonly string[], type: string): string | undefined {
  return values.find((value) => readPolicy(value)?.type === type)
}

function readPolicy(value: string): AnswerPolicy | undefined {
  try {
    return decodePolicy(rdataFromText(POLICY_TYPE, value))
  } catch (error) {
    if (error instanceof DnsError) return undefined
    throw error
  }
}

function readSettings(providerSpecific: unknown): Map<string, string> {
  const settings = new Map<string, string>()
  for (const item of Array.isArray(providerSpecific) ? (providerSpecific as unknown[]) : []) {
    if (typeof item !== 'object' || item === null) continue
    const { name, value } = item as { name?: unknown; value?: unknown }
    if (typeof name === 'string' && name.startsWith(PREFIX) && typeof value === 'string')
      settings.set(name.slice(PREFIX.length), value)
  }
  for (const name of settings.keys())
    if (name !== 'answer' && !LISTS.some((list) => list === name)) settings.delete(name)
  return settings
}
