/**
 * The IR prepared for lookups: hosts by name, then by wildcard suffix, then `*`; routes in the order of the IR, with compiled
 * conditions. Immutable: a new configuration is a new table, swapped whole.
 */
import type { HeaderMatch, Ir, Listener, PathMatch, QueryMatch, Route, VirtualHost } from '../../ir/model.ts'
import { listenerIdOf, type ListenerId } from '../../ir/listen-addresses.ts'
import { fullMatcher, requestSteps, Steps, StepsExceeded } from '../../ir/regex.ts'
import { findQuery, type RequestFacts } from './request-facts.ts'

/** Throws StepsExceeded. */
type Predicate = (request: RequestFacts, steps: Steps) => boolean

export interface CompiledRoute {
  readonly route: Route
  readonly matches: Predicate
}

/** The conditions of the host take more steps than one request has; `route` took most of them. */
export interface Exceeded {
  readonly kind: 'exceeded'
  readonly route: Route
}

/**
 * Compiled when the host is first asked for: most hosts of a large fleet are idle. A host that a configuration leaves as it is is
 * the same object in the next one.
 */
const compiled = new WeakMap<VirtualHost, readonly CompiledRoute[]>()

export class HostTable {
  readonly host: VirtualHost

  constructor(host: VirtualHost) {
    this.host = host
  }

  find(request: RequestFacts): Route | Exceeded | undefined {
    const steps = requestSteps()
    let mostTaken = 0
    let mostExpensive: Route | undefined
    for (const { route, matches } of this.routes) {
      const before = steps.left
      try {
        if (matches(request, steps)) return route
      } catch (error) {
        if (!(error instanceof StepsExceeded)) throw error
        return { kind: 'exceeded', route: before > mostTaken ? route : (mostExpensive ?? route) }
      }
      const taken = before - steps.left
      if (taken > mostTaken) [mostTaken, mostExpensive] = [taken, route]
    }
    return undefined
  }

  get routes(): readonly CompiledRoute[] {
    let routes = compiled.get(this.host)
    if (routes === undefined) {
      routes = this.host.routes.map((route) => ({ route, matches: compileMatch(route.match) }))
      compiled.set(this.host, routes)
    }
    return routes
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
  return (request, steps) => predicates.every((matches) => matches(request, steps))
}

/** The first condition of a match that a request does not meet, as a message; undefined if it meets all. */
export function findMismatch(
  { path, method, headers, query }: Route['match'],
  request: RequestFacts,
): string | undefined {
  const steps = new Steps(Infinity)
  if (!compilePath(path)(request, steps)) return `path ${request.path} does not match ${path.kind} ${path.value}`
  if (method !== undefined && request.method !== method) return `method is ${request.method}, not ${method}`
  const header = headers.find((each) => !compileHeader(each)(request, steps))
  if (header !== undefined) {
    const value = header.name === ':authority' ? request.authority : request.header(header.name)
    const wanted = `${header.isInverted === true ? 'not ' : ''}${header.kind} "${header.value}"`
    return `header ${header.name} is ${value === undefined ? 'absent' : `"${value}"`}, wanted ${wanted}`
  }
  const parameter = query.find((each) => !compileQuery(each)(request, steps))
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
      return ({ path }, steps) => matches(path, steps)
    }
  }
}

/** Of a condition, with the look-up of its value. */
const CONDITION_STEPS = 10
/** Of a text that is searched, or whose case is ignored, for a step. */
const CHARACTERS_OF_STEP = 8

function compileHeader(match: HeaderMatch): Predicate {
  const { name, isInverted = false, isMissingEmpty = false } = match
  const test = compileText(match)
  return (request, steps) => {
    steps.take(CONDITION_STEPS)
    const value = name === ':authority' ? request.authority : request.header(name)
    if (match.kind === 'present') return (value !== undefined) !== isInverted
    if (value === undefined) return isInverted && isMissingEmpty
    return test(value, steps) !== isInverted
  }
}

function compileQuery(match: QueryMatch): Predicate {
  const test = compileText(match)
  return ({ search }, steps) => {
    steps.take(CONDITION_STEPS)
    const value = findQuery(search, match.name)
    return value !== undefined && test(value, steps)
  }
}

type TextTest = (text: string, steps: Steps) => boolean

function compileText({ kind, value, ignoresCase = false }: HeaderMatch | QueryMatch): TextTest {
  const wanted = ignoresCase ? value.toLowerCase() : value
  const read = (text: string, steps: Steps) => steps.take(Math.ceil(text.length / CHARACTERS_OF_STEP))
  const of = (text: string, steps: Steps) => {
    if (!ignoresCase) return text
    read(text, steps)
    return text.toLowerCase()
  }
  switch (kind) {
    case 'present':
      return () => true
    case 'exact':
      return (text, steps) => of(text, steps) === wanted
    case 'contains':
      return (text, steps) => {
        read(text, steps)
        return of(text, steps).includes(wanted)
      }
    case 'prefix':
      return (text, steps) => of(text, steps).startsWith(wanted)
    case 'suffix':
      return (text, steps) => of(text, steps).endsWith(wanted)
    case 'regex':
      return fullMatcher(value)
  }
}
