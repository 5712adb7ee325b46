/** The content of a DNSProvider: its type, its scope, the Secret with its settings, or what is wrong with it. Pure. */
import { type Condition, type Immutable, setCondition } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import type { DNSProvider } from '../../api/dns-provider.ts'
import type { Reason } from '../../reasons.ts'
import type { ProviderScope } from './provider-registry.ts'

/** On a DNSProvider and on its Secret. */
export const PROVIDER_FINALIZER = 'loadbalancer.gardener.cloud/dns'

/** True while another installation writes with our identity. */
const CONFLICT_CONDITION = 'SecondWriter'

export interface ProviderSettings {
  readonly type: string
  readonly scope: ProviderScope
  /** `namespace/name`; undefined: no settings. */
  readonly secret: string | undefined
}

/** Namespaces; empty: all. */
export interface ProviderLimits {
  readonly providerNamespaces?: readonly string[]
  readonly secretNamespaces?: readonly string[]
}

const isIn = (namespace: string, list: readonly string[] = []): boolean => list.length === 0 || list.includes(namespace)

export function readProvider(
  object: Immutable<DNSProvider>,
  limits: ProviderLimits = {},
): ProviderSettings | { readonly invalid: string } {
  const { metadata, spec } = object
  const namespace = metadata.namespace ?? ''
  const key = keyOf(object)
  const { providerNamespaces, secretNamespaces } = limits
  if (!isIn(namespace, providerNamespaces))
    return {
      invalid: `provider ${key}: DNSProviders are taken from the namespaces ${providerNamespaces?.join(', ')} only`,
    }
  const secret = secretKeyOf(object)
  if (secret !== usableSecretOf(object, limits))
    return {
      invalid: `provider ${key}: it names secret ${secret}, and secrets are read in the namespaces ${secretNamespaces?.join(', ')} only`,
    }
  const scope = readScope(spec.scope, namespace)
  if ('invalid' in scope) return scope
  const type = spec.type ?? ''
  if (type === '') return { invalid: `type field missing for provider ${key}` }
  return { type, scope, secret }
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

/** Undefined where this program reads no Secret for the provider, and so has set no finalizer on it. */
export function usableSecretOf(
  object: Immutable<DNSProvider>,
  { providerNamespaces, secretNamespaces }: ProviderLimits = {},
): string | undefined {
  const secret = secretKeyOf(object)
  const isUsable =
    isIn(object.metadata.namespace ?? '', providerNamespaces) && isIn(secret?.split('/')[0] ?? '', secretNamespaces)
  return isUsable ? secret : undefined
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
  outcome: {
    readonly error?: string
    readonly reason: Reason
    /** Another installation uses our identity in its zones. */
    readonly conflict?: string | undefined
  },
  nowMs: number,
): NonNullable<DNSProvider['status']> {
  const { error, reason, conflict } = outcome
  const generation = metadata.generation === undefined ? {} : { observedGeneration: metadata.generation }
  const ready = setCondition(
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
  const known = ready.some(({ type }) => type === CONFLICT_CONDITION)
  // Absent as long as there was none: most providers never have it.
  const conditions =
    conflict === undefined && !known
      ? ready
      : setCondition(
          ready,
          {
            type: CONFLICT_CONDITION,
            status: conflict === undefined ? 'False' : 'True',
            reason: conflict === undefined ? 'Published' : 'SecondWriter',
            message: conflict ?? 'no other installation writes with this identity',
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
