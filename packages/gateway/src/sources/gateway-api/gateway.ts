/** GatewayClass and Gateway: those of this controller, and their statuses. Listeners are in listener.ts. */
import { byAge } from '@seamark/dialects'
import { Namespace } from '@seamark/kube'
import { Gateway, GatewayClass, type Listener as ListenerSpec } from '@seamark/kube/gateway-api'
import { keyOf, matchesLabelSelector, type Immutable } from '@seamark/kube/object'
import type { Draft } from '../../draft/draft.ts'
import type { BuildSettings, Objects } from '../../draft/input.ts'
import { condition, identify, type StatusIntent } from '../../draft/status-intent.ts'
import { ListenerPorts } from './listener-port.ts'
import { GATEWAY_GROUP, hasInsecureValidation, readListeners, type ServedListener } from './listener.ts'

export interface ServedGateway {
  readonly gateway: Immutable<Gateway>
  readonly key: string
  readonly listeners: readonly ServedListener[]
}

/** Gateways of our classes, or the one that is named in the settings. */
export function readGateways(draft: Draft, objects: Objects, settings: BuildSettings): ServedGateway[] {
  const classes = new Set(ownClasses(objects, settings).map(keyOf))
  const ports = new ListenerPorts(settings.listen)
  return objects
    .list(Gateway)
    .filter((gateway) => {
      if (settings.gateway !== undefined) return keyOf(gateway) === settings.gateway
      return classes.has(gateway.spec?.gatewayClassName ?? '')
    })
    .toSorted(byAge(Gateway))
    .flatMap((gateway, order) => {
      try {
        return [{ gateway, key: keyOf(gateway), listeners: readListeners(draft, objects, ports, gateway, order) }]
      } catch {
        // Only where the schema of the CRD is not enforced; such a Gateway has no listeners to report on.
        return []
      }
    })
}

function ownClasses(objects: Objects, { controllerName }: BuildSettings): Immutable<GatewayClass>[] {
  return objects.list(GatewayClass).filter(({ spec }) => spec?.controllerName === controllerName)
}

/** Whether a listener lets routes of this namespace attach. */
export function allowsNamespace(
  objects: Objects,
  { allowedRoutes }: Immutable<ListenerSpec>,
  gatewayNamespace: string,
  namespace: string,
): boolean {
  const { from = 'Same', selector } = allowedRoutes?.namespaces ?? {}
  switch (from) {
    case 'All':
      return true
    case 'Same':
      return namespace === gatewayNamespace
    case 'Selector': {
      const labels = objects.get(Namespace, namespace)?.metadata.labels
      return selector !== undefined && matchesLabelSelector(selector, labels ?? {})
    }
    default:
      return false
  }
}

export function gatewayIntents(
  objects: Objects,
  settings: BuildSettings,
  gateways: readonly ServedGateway[],
): StatusIntent[] {
  const classes = ownClasses(objects, settings).map((each): StatusIntent => {
    return {
      kind: 'GatewayClass',
      ...identify(each),
      status: { conditions: [condition('Accepted', true, 'Accepted', 'the class is served by this controller')] },
    }
  })
  return [...classes, ...gateways.map(gatewayIntent)]
}

function gatewayIntent({ gateway, listeners }: ServedGateway): StatusIntent {
  const isServing = listeners.some((each) => each.isServing)
  const areAllValid = listeners.every((each) => each.isServing)
  return {
    kind: 'Gateway',
    ...identify(gateway),
    status: {
      conditions: [
        areAllValid
          ? condition('Accepted', true, 'Accepted', 'the Gateway is accepted')
          : condition(
              'Accepted',
              isServing,
              'ListenersNotValid',
              'at least one listener is not valid; see their conditions',
            ),
        isServing
          ? condition('Programmed', true, 'Programmed', 'the data plane serves the Gateway')
          : condition('Programmed', false, 'Invalid', 'no listener is served; see their conditions'),
        ...(hasInsecureValidation(gateway)
          ? [
              condition(
                'InsecureFrontendValidationMode',
                true,
                'ConfigurationChanged',
                'AllowInsecureFallback: clients without a valid certificate are accepted',
              ),
            ]
          : []),
      ],
      listeners: listeners.map(({ spec, kinds, attached, conditions }) => ({
        name: spec.name,
        supportedKinds: kinds.map((kind) => ({ group: GATEWAY_GROUP, kind })),
        attachedRoutes: attached.size,
        conditions,
      })),
    },
  }
}
