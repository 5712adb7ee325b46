/** Paths and locations of rewrites and redirects. */
import type { Action, PathMatch, PathRewrite } from '../ir/model.ts'
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
      const bare = rewrite.value.replace(/\/+$/, '')
      return `${bare}${rest}` || '/'
    }
  }
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { http: 80, https: 443 }

/** The Location of a redirect. The port of the request's Host is kept unless the redirect names one. */
export function locationOf(
  redirect: Omit<Extract<Action, { kind: 'redirect' }>, 'kind' | 'status'>,
  match: PathMatch,
  { authority, host, path, search }: RequestFacts,
  isTls: boolean,
): string {
  const before = isTls ? 'https' : 'http'
  const scheme = redirect.scheme ?? before
  const given = redirect.port ?? portOf(authority, host)
  // The default port of the old scheme would be wrong for the new one.
  const port = redirect.port === undefined && scheme !== before && given === DEFAULT_PORTS[before] ? undefined : given
  const suffix = port === undefined || port === DEFAULT_PORTS[scheme] ? '' : `:${port}`
  return `${scheme}://${redirect.host ?? host}${suffix}${rewritePath(redirect.path, match, path)}${search}`
}

function portOf(authority: string, host: string): number | undefined {
  const colon = authority.indexOf(':', host.length)
  const port = colon < 0 ? Number.NaN : Number(authority.slice(colon + 1))
  return Number.isInteger(port) && port > 0 ? port : undefined
}
