/**
 * The order of the routes of a virtual host: data planes take the first that matches. Exact before regex before prefix;
 * longer paths first; then routes with more conditions. The order is total over different matches, so that a build does
 * not depend on the order of its input.
 */
import type { HeaderMatch, Match, PathMatch, QueryMatch, Route } from './model.ts'

const PATH_RANK: Record<PathMatch['kind'], number> = { exact: 0, regex: 1, prefix: 2, segment: 2 }
const HEADER_RANK: Record<HeaderMatch['kind'], number> = { exact: 0, regex: 1, contains: 2, present: 3 }
const QUERY_RANK: Record<QueryMatch['kind'], number> = {
  exact: 0,
  regex: 1,
  prefix: 2,
  suffix: 3,
  contains: 4,
  present: 5,
}

export function compareRoutes(a: Route, b: Route): number {
  return (
    comparePaths(a.match.path, b.match.path) ||
    Number(a.match.method === undefined) - Number(b.match.method === undefined) ||
    b.match.headers.length - a.match.headers.length ||
    b.match.query.length - a.match.query.length ||
    compareTexts(a.order, b.order) ||
    compareConditions(a.match, b.match) ||
    compareTexts(matchKey(a.match), matchKey(b.match))
  )
}

/** Equal for two matches that take the same requests. */
export function matchKey({ path, method = '', headers, query }: Match): string {
  // A regex over all paths of one prefix is still another match; only identical texts are equal.
  if (headers.length === 0 && query.length === 0) return `${path.kind} ${method} ${path.value}`
  return JSON.stringify([path.kind, path.value, method, headers, query])
}

export function sortHeaderMatches(matches: readonly HeaderMatch[]): HeaderMatch[] {
  return matches.toSorted(compareHeaders)
}

export function sortQueryMatches(matches: readonly QueryMatch[]): QueryMatch[] {
  return matches.toSorted(compareQueries)
}

export function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function comparePaths(a: PathMatch, b: PathMatch): number {
  return (
    PATH_RANK[a.kind] - PATH_RANK[b.kind] ||
    b.value.length - a.value.length ||
    compareTexts(b.value, a.value) ||
    Number(a.kind === 'prefix') - Number(b.kind === 'prefix')
  )
}

function compareConditions(a: Match, b: Match): number {
  for (let at = 0; at < a.headers.length; at++) {
    const [left, right] = [a.headers[at], b.headers[at]]
    const order = left === undefined || right === undefined ? 0 : compareHeaders(left, right)
    if (order !== 0) return order
  }
  for (let at = 0; at < a.query.length; at++) {
    const [left, right] = [a.query[at], b.query[at]]
    const order = left === undefined || right === undefined ? 0 : compareQueries(left, right)
    if (order !== 0) return order
  }
  return 0
}

function compareHeaders(a: HeaderMatch, b: HeaderMatch): number {
  return (
    compareTexts(a.name, b.name) ||
    HEADER_RANK[a.kind] - HEADER_RANK[b.kind] ||
    compareTexts(a.value, b.value) ||
    Number(a.ignoresCase === true) - Number(b.ignoresCase === true) ||
    Number(a.isInverted === true) - Number(b.isInverted === true)
  )
}

function compareQueries(a: QueryMatch, b: QueryMatch): number {
  return (
    compareTexts(a.name, b.name) ||
    QUERY_RANK[a.kind] - QUERY_RANK[b.kind] ||
    compareTexts(a.value, b.value) ||
    Number(a.ignoresCase === true) - Number(b.ignoresCase === true)
  )
}
