/** Root HTTPProxies that may not have their host: they contribute nothing, and are no duplicates of others. */
import { findGrantFault } from '@seamark/dialects'
import type { HTTPProxy } from '@seamark/kube/contour'
import type { Immutable } from '@seamark/kube/object'
import type { BuildSettings } from '../../draft/input.ts'
import { hostName } from '../wildcard-host.ts'
import type { ErrorType } from './verdict.ts'

interface NameRefusal {
  readonly type: ErrorType
  readonly reason: string
  readonly message: string
}

export function nameRefusal(
  { metadata: { namespace = '' }, spec }: Immutable<HTTPProxy>,
  { rootNamespaces, grants }: BuildSettings,
): NameRefusal | undefined {
  if (rootNamespaces.length > 0 && !rootNamespaces.includes(namespace)) {
    const message = 'root HTTPProxy cannot be defined in this namespace'
    return { type: 'RootNamespaceError', reason: 'RootProxyNotAllowedInNamespace', message }
  }
  if (grants.length === 0) return undefined
  const fqdn: unknown = spec?.virtualhost?.fqdn
  const host = typeof fqdn === 'string' ? hostName(fqdn) : undefined
  const fault = host === undefined ? undefined : findGrantFault(grants, namespace, host)
  return fault === undefined ? undefined : { type: 'VirtualHostError', reason: 'NameNotGranted', message: fault }
}
