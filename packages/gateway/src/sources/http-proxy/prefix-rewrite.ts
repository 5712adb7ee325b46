/** Prefix rewrites of HTTPProxy. */
import type { Route } from '../../ir/model.ts'
import { withoutTrailingSlashes } from '../../ir/path-text.ts'

/**
 * A rewrite of `/foo` becomes two routes, `/foo` and `/foo/`, so that replacing the prefix neither doubles nor drops a
 * slash; unless the user has both.
 */
export function expandPrefixRewrites(routes: readonly Route[]): readonly Route[] {
  if (!routes.some(({ action }) => action.kind === 'forward' && action.rewrite !== undefined)) return routes
  const groups = new Map<string, number>()
  const bare = ({ match: { path } }: Route) => (path.value === '/' ? '/' : withoutTrailingSlashes(path.value))
  for (const route of routes)
    if (route.match.path.kind === 'prefix') groups.set(bare(route), (groups.get(bare(route)) ?? 0) + 1)
  return routes.flatMap((route) => {
    const { action, match } = route
    if (action.kind !== 'forward' || action.rewrite === undefined || match.path.kind !== 'prefix') return [route]
    const prefix = bare(route)
    if (prefix === '/' || (groups.get(prefix) ?? 0) > 1) return [route]
    const replacement = withoutTrailingSlashes(action.rewrite.value)
    const withPath = (value: string, rewrite: string): Route => ({
      ...route,
      match: { ...match, path: { kind: 'prefix', value } },
      action: { ...action, rewrite: { kind: 'prefix', value: rewrite } },
    })
    return [withPath(prefix, replacement === '' ? '/' : replacement), withPath(`${prefix}/`, `${replacement}/`)]
  })
}
