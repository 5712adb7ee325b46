/** A GRPCRoute is an HTTPRoute over paths `/service/method`, whose backends use HTTP/2. */
import type { GRPCRoute, HTTPRouteMatch, HTTPRouteRule } from '@seamark/kube/gateway-api'
import type { Immutable } from '@seamark/kube/object'

export function grpcRules(route: Immutable<GRPCRoute>): Immutable<HTTPRouteRule>[] {
  return (route.spec?.rules ?? []).map(({ matches = [{}], filters = [], backendRefs = [] }) => ({
    matches: matches.map(({ method, headers = [] }): Immutable<HTTPRouteMatch> => ({
      path: pathOf(method),
      headers,
      method: 'POST',
    })),
    filters,
    backendRefs,
  }))
}

function pathOf(
  match: { readonly type?: string; readonly service?: string; readonly method?: string } | undefined,
): NonNullable<HTTPRouteMatch['path']> {
  const { type = 'Exact', service = '', method = '' } = match ?? {}
  if (service === '' && method === '') return { type: 'PathPrefix', value: '/' }
  if (type === 'Exact' && service !== '')
    return method === ''
      ? { type: 'PathPrefix', value: `/${service}` }
      : { type: 'Exact', value: `/${service}/${method}` }
  const part = (text: string) => {
    if (text === '') return '[^/]+'
    return type === 'Exact' ? text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`) : text
  }
  return { type: 'RegularExpression', value: `/${part(service)}/${part(method)}` }
}
