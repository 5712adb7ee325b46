/**
 * The IR prepared for lookups: hosts by name, then by wildcard suffix, then `*`; routes in the order of the IR, with compiled
 * conditions. Immutable: a new configuration is a new table, swapped whole.
 */
import type { HeaderMatch, Ir, Listener, PathMatch, QueryMatch, Route, VirtualHost } from '../../ir/model.ts'
import { listenerIdOf, type ListenerId } from '../../ir/listen-addresses.ts'
import { fullMatcher } from '../../ir/regex.ts'
import { findQuery, type RequestFacts } from './request-facts.ts'

type Predicate = (request: RequestFacts) => boolean

export interface CompiledRoute {
  readonly route: Route
  readonly matches: Predicate
}

export class HostTable {
  readonly host: VirtualHost
  /** Compiled when the host is first asked for: most hosts of a large fleet are idle. */
  #routes: readonly CompiledRoute[] | undefined

  constructor(host: VirtualHost) {
    this.host = host
  }

  find(request: RequestFacts): Route | undefined {
    for (const { route, matches } of this.routes) if (matches(request)) return route
    return undefined
  }

  get routes(): readonly CompiledRoute[] {
    this.#routes ??= this.host.routes.map((route) => ({ route, matches: compileMatch(route.match) }))
    return this.#routes
  }
}

export class ListenerTable {
  readonly #exact = new Map<string, HostTable>()
  readonly #wildcards = new Map<string, HostTable>()
  readonly #any: HostTable | undefined

  constructor(listener: Listener) {
    for (const host of listener.hosts) {
      const table = new HostTable(host)
      if (host.host === '*') this.#any = table
      else if (host.host.startsWith('*.')) this.#wildcards.set(host.host.slice(1), table)
      else this.#exact.set(host.host, table)
    }
  }

  get isEmpty(): boolean {
    return this.#exact.size === 0 && this.#wildcards.size === 0 && this.#any === undefined
  }

  find(host: string): HostTable | undefined {
    const exact = this.#exact.get(host)
    if (exact !== undefined) return exact
    if (this.#wildcards.size > 0)
      for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) {
        const found = dot === 0 ? undefined : this.#wildcards.get(host.slice(dot))
        if (found !== undefined) return found
      }
    return this.#any
  }
}

export interface RouteTable {
  readonly http: ListenerTable
  readonly https: ListenerTable
  /** Undefined: the configuration has no such listener any more. */
  find(id: ListenerId): ListenerTable | undefined
}

export function createRouteTable(ir: Ir): RouteTable {
  const tables = new Map<ListenerId, ListenerTable>()
  for (const listener of ir.listeners) tables.set(listenerIdOf(listener), new ListenerTable(listener))
  const mainOf = (protocol: Listener['protocol']) => tables.get(protocol) ?? new ListenerTable({ protocol, hosts: [] })
  return { http: mainOf('http'), https: mainOf('https'), find: (id) => tables.get(id) }
}

function compileMatch({ path, method, headers, query }: Route['match']): Predicate {
  const predicates = [
    compilePath(path),
    ...(method === undefined ? [] : [(request: RequestFacts) => request.method === method]),
    ...headers.map(compileHeader),
    ...query.map(compileQuery),
  ]
  const [first, ...rest] = predicates
  if (first !== undefined && rest.length === 0) return first
  return (request) => predicates.every((matches) => matches(request))
}

/** The first condition of a match that a request does not meet, as a message; undefined if it meets all. */
export function findMismatch(
  { path, method, headers, query }: Route['match'],
  request: RequestFacts,
): string | undefined {
  if (!compilePath(path)(request)) return `path ${request.path} does not match ${path.kind} ${path.value}`
  if (method !== undefined && request.method !== method) return `method is ${request.method}, not ${method}`
  const header = headers.find((each) => !compileHeader(each)(request))
  if (header !== undefined) {
    const value = header.name === ':authority' ? request.authority : request.header(header.name)
    const wanted = `${header.isInverted === true ? 'not ' : ''}${header.kind} "${header.value}"`
    return `header ${header.name} is ${value === undefined ? 'absent' : `"${value}"`}, wanted ${wanted}`
  }
  const parameter = query.find((each) => !compileQuery(each)(request))
  if (parameter === undefined) return undefined
  const value = findQuery(request.search, parameter.name)
  const is = value === undefined ? 'absent' : `"${value}"`
  return `query parameter ${parameter.name} is ${is}, wanted ${parameter.kind} "${parameter.value}"`
}

function compilePath({ kind, value }: PathMatch): Predicate {
  switch (kind) {
    case 'exact':
      return ({ path }) => path === value
    case 'prefix':
      return ({ path }) => path.startsWith(value)
    case 'segment':
      return ({ path }) =>
        path.startsWith(value) && (path.length === value.length || path.charCodeAt(value.length) === 47)
    case 'regex': {
      const matches = fullMatcher(value)
      return ({ path }) => matches(path)
    }
  }
}

function compileHeader(match: HeaderMatch): Predicate {
  const { name, isInverted = false, isMissingEmpty = false } = match
  const test = compileText(match)
  return (request) => {
    const value = name === ':authority' ? request.authority : request.header(name)
    if (match.kind === 'present') return (value !== undefined) !== isInverted
    if (value === undefined) return isInverted && isMissingEmpty
    return test(value) !== isInverted
  }
}

function compileQuery(match: QueryMatch): Predicate {
  const test = compileText(match)
  return ({ search }) => {
    const value = findQuery(search, match.name)
    return value !== undefined && test(value)
  }
}

function compileText({ kind, value, ignoresCase = false }: HeaderMatch | QueryMatch): (text: string) => boolean {
  const wanted = ignoresCase ? value.toLowerCase() : value
  const of = (text: string) => (ignoresCase ? text.toLowerCase() : text)
  switch (kind) {
    case 'present':
      return () => true
    case 'exact':
      return (text) => of(text) === wanted
    case 'contains':
      return (text) => of(text).includes(wanted)
    case 'prefix':
      return (text) => of(text).startsWith(wanted)
    case 'suffix':
      return (text) => of(text).endsWith(wanted)
    case 'regex':
      return fullMatcher(value)
  }
}
