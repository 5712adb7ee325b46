/** The kinds of roots. */
import { httpRouteRoot } from './http-route.ts'
import { ingressRoot } from './ingress.ts'
import type { RootKind } from './root-kind.ts'
import { routeRoot } from './route.ts'

export const ROOT_KINDS: readonly RootKind[] = [ingressRoot, httpRouteRoot, routeRoot]
