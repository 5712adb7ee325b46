/** The kinds of roots. */
import type { Kind } from '@seamark/kube/object'
import { httpRouteRoot } from './http-route.ts'
import { ingressRoot } from './ingress.ts'
import type { RootKind } from './root-kind.ts'
import { routeRoot } from './route.ts'

export const ROOT_KINDS: readonly RootKind[] = [ingressRoot, httpRouteRoot, routeRoot]

/** Undefined: roots are not of this kind. */
export function kindOfRoot(name: string): Kind | undefined {
  return ROOT_KINDS.find(({ kind }) => kind.kind === name)?.kind
}
