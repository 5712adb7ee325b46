/** Which objects the gateway of a configuration serves: for the gateway, and for `seamark explain URL`. */
import { BUILD_DEFAULTS, type BuildSettings } from '@seamark/gateway'
import type { GatewayConfig } from '@seamark/operator'

export type GatewayRules = Pick<
  BuildSettings,
  'ingressClassNames' | 'servesUnclassified' | 'rootNamespaces' | 'grants' | 'allowsExternalNames' | 'gateway'
>

export function gatewayRules(config: GatewayConfig, grants: BuildSettings['grants']): GatewayRules {
  const { ingressClassNames, rootNamespaces, gateway, externalNames } = config
  const isNamed = ingressClassNames.length > 0
  return {
    ingressClassNames: isNamed ? ingressClassNames : BUILD_DEFAULTS.ingressClassNames,
    servesUnclassified: !isNamed,
    rootNamespaces,
    grants,
    ...(gateway !== '' && { gateway }),
    allowsExternalNames: externalNames,
  }
}
