/**
 * The properties of a request that routing uses, the same for every protocol. Paths are normalised before they are matched and
 * forwarded, so that no spelling of a path escapes a route: percent-encoded unreserved characters are decoded, dot segments
 * are resolved and slashes merged; an encoded slash stays encoded.
 */

export interface RequestFacts {
  readonly method: string
  /** Host header or `:authority`, lower case, as sent. */
  readonly authority: string
  /** Without port and trailing dot. */
  readonly host: string
  /** Normalised, without the query. */
  readonly path: string
  /** With its question mark, or empty. */
  readonly search: string
  readonly header: (name: string) => string | undefined
}

const UNRESERVED = /[A-Za-z0-9\-._~]/

/** Undefined if the target is not a path that can be served. */
export function normalizePath(target: string): { path: string; search: string } | undefined {
  const mark = target.indexOf('?')
  const search = mark < 0 ? '' : target.slice(mark)
  const raw = mark < 0 ? target : target.slice(0, mark)
  if (!raw.startsWith('/')) return undefined
  if (isPlain(raw)) return { path: raw, search }
  let path = ''
  for (let at = 0; at < raw.length; at++) {
    const char = raw[at] ?? ''
    if (char !== '%') {
      path += char === '\\' ? '/' : char
      continue
    }
    const code = raw.slice(at + 1, at + 3)
    if (!/^[0-9A-Fa-f]{2}$/.test(code)) return undefined
    const decoded = String.fromCharCode(Number.parseInt(code, 16))
    if (decoded === '\0') return undefined
    path += UNRESERVED.test(decoded) ? decoded : `%${code.toUpperCase()}`
    at += 2
  }
  const segments: string[] = []
  const parts = path.split('/').slice(1)
  for (const [index, part] of parts.entries()) {
    const isLast = index === parts.length - 1
    if (part === '.' || part === '..') {
      if (part === '..') segments.pop()
      if (isLast) segments.push('')
    } else if (part !== '' || isLast) segments.push(part)
  }
  return { path: `/${segments.join('/')}`, search }
}

/** The common case is decided without building a new string. */
function isPlain(path: string): boolean {
  for (let at = 0; at < path.length; at++) {
    const code = path.charCodeAt(at)
    if (code === 37 || code === 92) return false
    const next = path.charCodeAt(at + 1)
    // `//` and `/.`
    if (code === 47 && (next === 47 || next === 46)) return false
  }
  return true
}

/** `example.com:8080` → `example.com`; undefined if it is no host. */
export function hostOf(authority: string): string | undefined {
  if (authority.startsWith('[')) {
    const end = authority.indexOf(']')
    return end < 0 ? undefined : authority.slice(0, end + 1)
  }
  const colon = authority.indexOf(':')
  const host = colon < 0 ? authority : authority.slice(0, colon)
  if (colon >= 0 && !/^\d{0,5}$/.test(authority.slice(colon + 1))) return undefined
  return host.endsWith('.') ? host.slice(0, -1) : host
}

/** Values are compared as sent, without percent-decoding; the first of a repeated name counts. */
export function findQuery(search: string, name: string): string | undefined {
  if (parsed?.search !== search) parsed = { search, values: parseQuery(search) }
  return parsed.values.get(name)
}

/** Of the last request: all routes of a host are compared with the same query, one after another. */
let parsed: { readonly search: string; readonly values: ReadonlyMap<string, string> } | undefined

function parseQuery(search: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>()
  for (const pair of search.slice(1).split('&')) {
    const equals = pair.indexOf('=')
    const name = equals < 0 ? pair : pair.slice(0, equals)
    if (!values.has(name)) values.set(name, equals < 0 ? '' : pair.slice(equals + 1))
  }
  return values
}
