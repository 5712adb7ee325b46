/** One HTTPProxy in, the objects wanted and the findings out: for those who want the decision without a cluster. */
import type { Immutable } from '@seamark/kube/object'
import { sortAddresses } from '../../address.ts'
import type { HTTPProxy } from '../../api/http-proxy.ts'
import type { Finding } from '../../finding.ts'
import type { Wanted } from './child.ts'
import { decide, findingsOf, wantedOf } from './decide.ts'
import type { PublishOptions } from '../options.ts'
import { fromHTTPProxy } from '../sources/http-proxy.ts'

export function decideSource(
  proxy: Immutable<HTTPProxy>,
  loadBalancer: readonly { readonly ip?: string; readonly hostname?: string }[],
  options: PublishOptions,
): { objects: Wanted['object'][]; findings: readonly Finding[] } {
  const target = { state: 'known', addresses: sortAddresses(loadBalancer), from: 'the load balancer' } as const
  const decision = decide({ source: fromHTTPProxy(proxy), target, claims: new Map() }, options)
  return { objects: wantedOf(decision).map((wanted) => wanted.object), findings: findingsOf(decision) }
}
