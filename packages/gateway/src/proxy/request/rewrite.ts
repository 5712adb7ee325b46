/** Paths and locations of rewrites and redirects. */
import type { Action, PathMatch, PathRewrite } from '../../ir/model.ts'
import { withoutTrailingSlashes } from '../../ir/path-text.ts'
import type { RequestFacts } from './request-facts.ts'

export function rewritePath(rewrite: PathRewrite | undefined, match: PathMatch, path: string): string {
  if (rewrite === undefined) return path
  switch (rewrite.kind) {
    case 'full':
      return rewrite.value
    case 'prefix': {
      const rest = path.slice(match.value.length)
      if (match.kind !== 'segment') return `${rewrite.value}${rest}`
      // Gateway API: whole segments are replaced, and a slash stays between them.
      const bare = withoutTrailingSlashes(rewrite.value)
      return `${bare}${rest}` || '/'
    }
  }
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { http: 80, https: 443 }

/**
 * The Location of a redirect. Without a port of its own it keeps the port of the request's Host, unless it names another
 * host; the default port of the scheme is left out of a port that the redirect names.
 */
export function locationOf(
  redirect: Omit<Extract<Action, { kind: 'redirect' }>, 'kind' | 'status'>,
  match: PathMatch,
  { authority, host, path, search }: RequestFacts,
  isTls: boolean,
): string {
  const before = isTls ? 'https' : 'http'
  const scheme = redirect.scheme ?? before
  const port = redirect.port ?? (redirect.host === undefined ? keptPort(authority, host, before, scheme) : undefined)
  const isImplied = port === undefined || (redirect.port !== undefined && port === DEFAULT_PORTS[scheme])
  const suffix = isImplied ? '' : `:${port}`
  return `${scheme}://${redirect.host ?? host}${suffix}${rewritePath(redirect.path, match, path)}${search}`
}

/** The default port of the old scheme would be wrong for the new one. */
function keptPort(authority: string, host: string, before: string, scheme: string): number | undefined {
  const port = portOf(authority, host)
  return scheme !== before && port === DEFAULT_PORTS[before] ? undefined : port
}

function portOf(authority: string, host: string): number | undefined {
  const colon = authority.indexOf(':', host.length)
  const port = colon < 0 ? Number.NaN : Number(authority.slice(colon + 1))
  return Number.isInteger(port) && port > 0 ? port : undefined
}
