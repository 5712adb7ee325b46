/** The content of a DNSProvider: its type, its scope, the Secret with its settings, or what is wrong with it. Pure. */
import { type Condition, type Immutable, setCondition } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import type { DNSProvider } from '../../api/dns-provider.ts'
import type { Reason } from '../../reasons.ts'
import type { ProviderScope } from './provider-registry.ts'

/** On a DNSProvider and on its Secret. */
export const PROVIDER_FINALIZER = 'loadbalancer.gardener.cloud/dns'

export interface ProviderSettings {
  readonly type: string
  readonly scope: ProviderScope
  /** `namespace/name`; undefined: no settings. */
  readonly secret: string | undefined
}

export function readProvider(object: Immutable<DNSProvider>): ProviderSettings | { readonly invalid: string } {
  const { metadata, spec } = object
  const namespace = metadata.namespace ?? ''
  const key = keyOf(object)
  const scope = readScope(spec.scope, namespace)
  if ('invalid' in scope) return scope
  const type = spec.type ?? ''
  if (type === '') return { invalid: `type field missing for provider ${key}` }
  return { type, scope, secret: secretKeyOf(object) }
}

function readScope(
  scope: Immutable<DNSProvider>['spec']['scope'],
  namespace: string,
): ProviderScope | { readonly invalid: string } {
  const type = scope?.type ?? ''
  switch (type) {
    case '':
    case 'Cluster':
      return { type: 'Cluster' }
    case 'Namespace':
      return { type, namespace }
    case 'Selected':
      return { type, namespaces: scope?.namespaces ?? [] }
    default:
      return { invalid: `invalid provider scope '${type}'` }
  }
}

export function secretKeyOf({ metadata, spec }: Immutable<DNSProvider>): string | undefined {
  const { name = '', namespace = metadata.namespace ?? '' } = spec.secretRef ?? {}
  return name === '' ? undefined : `${namespace === '' ? (metadata.namespace ?? '') : namespace}/${name}`
}

/** Two blanks, as the original writes it. */
export function unknownType(type: string, key: string): string {
  return `unknown provider type '${type}' for  ${key}`
}

export function providerStatus(
  { metadata, status }: Immutable<DNSProvider>,
  outcome: { readonly error?: string; readonly reason: Reason },
  nowMs: number,
): NonNullable<DNSProvider['status']> {
  const { error, reason } = outcome
  const generation = metadata.generation === undefined ? {} : { observedGeneration: metadata.generation }
  const conditions = setCondition(
    status?.conditions,
    {
      type: 'Ready',
      status: error === undefined ? 'True' : 'False',
      reason,
      message: error ?? 'the zones of the provider are served',
      ...generation,
    },
    nowMs,
  )
  return {
    state: error === undefined ? 'Active' : 'Error',
    ...(error !== undefined && { message: error }),
    ...generation,
    conditions: conditions as Condition[],
  }
}
