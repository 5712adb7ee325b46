/** Match conditions of HTTPProxy: the rules about what may be combined, and how a chain of includes is merged. */
import type { MatchCondition } from '@seamark/kube/contour'
import type { Immutable } from '@seamark/kube/object'
import type { HeaderMatch, Match, PathMatch, QueryMatch } from '../../ir/model.ts'
import { TOKEN } from '../../draft/headers.ts'
import { regexFault } from '../../ir/regex.ts'
import { matchKey, sortHeaderMatches, sortQueryMatches } from '../../ir/route-order.ts'

type Conditions = readonly Immutable<MatchCondition>[]

/** Path conditions are concatenated; the last one decides the kind, unless one is a regex. */
export function mergeConditions(conditions: Conditions): Match {
  const path = mergePaths(conditions)
  if (!conditions.some(({ header, queryParameter }) => header !== undefined || queryParameter !== undefined))
    return { path, headers: NONE, query: NONE }
  return {
    path,
    headers: sortHeaderMatches(conditions.flatMap(({ header }) => (header === undefined ? [] : headerMatch(header)))),
    query: sortQueryMatches(
      conditions.flatMap(({ queryParameter }) => (queryParameter === undefined ? [] : queryMatch(queryParameter))),
    ),
  }
}

/** Shared: most routes have no conditions but a path, and a cluster has thousands of routes. */
const NONE: readonly never[] = []

function mergePaths(conditions: Conditions): PathMatch {
  let text = ''
  for (const { prefix, exact, regex } of conditions) text += prefix || exact || regex || ''
  const value = text.includes('//') ? text.replaceAll(/\/\/+/g, '/') : text
  if (value === '') return { kind: 'prefix', value: '/' }
  if (conditions.some(({ prefix = '', exact = '', regex = '' }) => prefix + exact === '' && regex !== ''))
    return { kind: 'regex', value }
  // Contour uses the last condition of any sort, so that a header condition after an exact path makes it a prefix; its
  // documentation says that the path stays exact.
  const last = conditions.findLast(({ prefix = '', exact = '' }) => prefix + exact !== '')
  return { kind: (last?.prefix ?? '') === '' ? 'exact' : 'prefix', value }
}

const PATH_KINDS = ['prefix', 'exact', 'regex'] as const

/** Why the path conditions of one block cannot be used. */
export function pathFault(conditions: Conditions): string | undefined {
  let count = 0
  for (const condition of conditions)
    for (const kind of PATH_KINDS) {
      const value = condition[kind] ?? ''
      if (value === '') continue
      count++
      if (!value.startsWith('/')) return `${kind} conditions must start with /, ${value} was supplied`
      const fault = kind === 'regex' ? regexFault(value) : undefined
      if (fault !== undefined) return `supplied regex: ${value} invalid. error: ${fault}`
    }
  return count > 1 ? 'more than one prefix, exact or regex is not allowed in a condition block' : undefined
}

export function includePathFault(conditions: Conditions): string | undefined {
  for (const { exact = '', regex = '' } of conditions) {
    if (exact !== '') return 'exact conditions are not allowed in includes block'
    if (regex !== '') return 'regex conditions are not allowed in includes block'
  }
  return undefined
}

/** Header conditions of the whole chain: contradictions can never match. */
export function headerFault(conditions: Conditions): string | undefined {
  if (!conditions.some(({ header }) => header !== undefined)) return undefined
  const seen = new Set<string>()
  for (const { header } of conditions) {
    if (header === undefined) continue
    if (!TOKEN.test(header.name.replace(/^:/, ''))) return `${JSON.stringify(header.name)} is no name of a header field`
    const name = header.name.toLowerCase()
    const contradicts = (kind: string, value = '') => seen.has(`${name} ${kind} ${value}`)
    const remember = (kind: string, value = '') => seen.add(`${name} ${kind} ${value}`)
    const contradiction = (positive: string) =>
      `cannot specify contradictory '${positive}' and 'not${positive}' conditions for the same route and header`
    if (header.present === true) {
      if (contradicts('notpresent')) return contradiction('present')
      remember('present')
    } else if (header.notpresent === true) {
      if (contradicts('present')) return contradiction('present')
      remember('notpresent')
    } else if (header.exact !== undefined && header.exact !== '') {
      if (contradicts('anyexact')) return "cannot specify duplicate header 'exact match' conditions in the same route"
      if (contradicts('notexact', header.exact)) return contradiction('exact')
      remember('anyexact')
      remember('exact', header.exact)
    } else if (header.notexact !== undefined && header.notexact !== '') {
      if (contradicts('exact', header.notexact)) return contradiction('exact')
      remember('notexact', header.notexact)
    } else if (header.contains !== undefined && header.contains !== '') {
      if (contradicts('notcontains', header.contains)) return contradiction('contains')
      remember('contains', header.contains)
    } else if (header.notcontains !== undefined && header.notcontains !== '') {
      if (contradicts('contains', header.notcontains)) return contradiction('contains')
      remember('notcontains', header.notcontains)
    } else if (header.regex !== undefined && header.regex !== '') {
      if (regexFault(header.regex) !== undefined) return "invalid regular expression specified for 'regex' condition"
    }
  }
  return undefined
}

/** Envoy rejects longer ones. */
const MAX_PARAMETER_NAME = 1_024

export function queryFault(conditions: Conditions): string | undefined {
  if (!conditions.some(({ queryParameter }) => queryParameter !== undefined)) return undefined
  const exactNames = new Set<string>()
  for (const { queryParameter } of conditions) {
    if (queryParameter === undefined) continue
    const { exact = '', prefix = '', suffix = '', regex = '', contains = '', present = false } = queryParameter
    const count = [exact, prefix, suffix, regex, contains, present ? 'true' : ''].filter((each) => each !== '').length
    if (count === 0) return 'must specify at least one query parameter condition'
    if (count > 1) return 'cannot specify more than one condition in the same match condition branch'
    if (queryParameter.name === '' || queryParameter.name.length > MAX_PARAMETER_NAME)
      return `the name of a query parameter must have 1 to ${MAX_PARAMETER_NAME} characters`
    const name = queryParameter.name.toLowerCase()
    if (exact !== '') {
      if (exactNames.has(name))
        return "cannot specify duplicate query parameter 'exact match' conditions in the same route"
      exactNames.add(name)
    }
    if (regex !== '' && regexFault(regex) !== undefined)
      return "invalid regular expression specified for 'regex' condition"
  }
  return undefined
}

/** Identifies conditions of an include; undefined for those that never count as duplicates (`/` or none). */
export function includeKey(conditions: Conditions): string | undefined {
  const match = mergeConditions(conditions)
  const isDefault = match.path.value === '/' && match.headers.length === 0 && match.query.length === 0
  return isDefault ? undefined : matchKey(match)
}

function headerMatch(header: Immutable<NonNullable<MatchCondition['header']>>): HeaderMatch[] {
  const name = header.name.toLowerCase()
  const ignores = header.ignoreCase === true ? { ignoresCase: true } : {}
  const inverted = {
    isInverted: true,
    ...ignores,
    ...(header.treatMissingAsEmpty === true && { isMissingEmpty: true }),
  }
  if (header.present === true) return [{ name, kind: 'present', value: '' }]
  if (header.notpresent === true) return [{ name, kind: 'present', value: '', isInverted: true }]
  if (header.contains) return [{ name, kind: 'contains', value: header.contains, ...ignores }]
  if (header.notcontains) return [{ name, kind: 'contains', value: header.notcontains, ...inverted }]
  if (header.exact) return [{ name, kind: 'exact', value: header.exact, ...ignores }]
  if (header.notexact) return [{ name, kind: 'exact', value: header.notexact, ...inverted }]
  if (header.regex) return [{ name, kind: 'regex', value: header.regex }]
  return []
}

function queryMatch(query: Immutable<NonNullable<MatchCondition['queryParameter']>>): QueryMatch[] {
  const { name } = query
  const ignores = query.ignoreCase === true ? { ignoresCase: true } : {}
  for (const kind of ['exact', 'prefix', 'suffix', 'contains'] as const) {
    const value = query[kind]
    if (value) return [{ name, kind, value, ...ignores }]
  }
  if (query.regex) return [{ name, kind: 'regex', value: query.regex }]
  return query.present === true ? [{ name, kind: 'present', value: '' }] : []
}
