/** The desired objects and the findings of one HTTPProxy: for callers that need the decision without a cluster. */
import type { Immutable } from '@seamark/kube/object'
import { sortAddresses } from '@seamark/dialects'
import type { HTTPProxy } from '@seamark/kube/contour'
import type { Finding } from '../../finding.ts'
import type { DesiredChild } from './child.ts'
import { decide, findingsOf, desiredChildren } from './decide.ts'
import type { PublishOptions } from '../options.ts'
import { fromHTTPProxy } from '../sources/http-proxy.ts'

export function decideSource(
  proxy: Immutable<HTTPProxy>,
  loadBalancer: readonly { readonly ip?: string; readonly hostname?: string }[],
  options: PublishOptions,
): { objects: DesiredChild['object'][]; findings: readonly Finding[] } {
  const target = { state: 'known', addresses: sortAddresses(loadBalancer), from: 'the load balancer' } as const
  const decision = decide(
    { source: fromHTTPProxy(proxy), target, claims: new Map(), publications: new Map(), published: [] },
    options,
  )
  return { objects: desiredChildren(decision).map((desired) => desired.object), findings: findingsOf(decision) }
}
