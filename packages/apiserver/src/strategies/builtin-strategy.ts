/**
 * The strategy of each built-in kind. Most kinds differ in data only: whether they have a generation, whether an update
 * requires a resourceVersion, the syntax of their names.
 */
import type { BuiltinKind } from '../builtin/builtin.ts'
import { applyBuiltinDefaults } from '../builtin/defaults.ts'
import { definitionStrategy } from '../crd/definition-strategy.ts'
import { loadEngine } from '../cel/engine.ts'
import { checkFinalizerNames } from '../validation/metadata.ts'
import { checkPathSegment } from '../validation/names.ts'
import { type ApiObject, asRecords } from '../codec/object-shape.ts'
import type { Strategy } from '../resource/resource.ts'
import type { Collection } from '../store/collection.ts'
import { namespaceStrategy } from './namespace.ts'
import { daemonSetStrategy } from './daemon-set.ts'
import { nodeStrategy } from './node.ts'
import { podStrategy } from './pod.ts'
import { serviceStrategy } from './service.ts'
import { validateKind, warnOfKind } from '../validation/validation.ts'

/** Kinds with metadata.generation. */
const withGeneration = new Set([
  'deployments.apps',
  'replicasets.apps',
  'daemonsets.apps',
  'statefulsets.apps',
  'ingresses.networking.k8s.io',
  'ingressclasses.networking.k8s.io',
  'networkpolicies.networking.k8s.io',
  'endpointslices.discovery.k8s.io',
  'mutatingwebhookconfigurations.admissionregistration.k8s.io',
  'validatingwebhookconfigurations.admissionregistration.k8s.io',
  'customresourcedefinitions.apiextensions.k8s.io',
  'poddisruptionbudgets.policy',
  'cronjobs.batch',
  'jobs.batch',
  'replicationcontrollers',
  'priorityclasses.scheduling.k8s.io',
  'pods',
])

/** Kinds whose update must contain a resourceVersion. */
const conditional = new Set(['leases.coordination.k8s.io', 'customresourcedefinitions.apiextensions.k8s.io'])

/** Kinds that a PUT can create. */
const creatable = new Set([
  'endpoints',
  'events',
  'events.events.k8s.io',
  'limitranges',
  'leases.coordination.k8s.io',
  'services',
  'roles.rbac.authorization.k8s.io',
  'rolebindings.rbac.authorization.k8s.io',
  'clusterroles.rbac.authorization.k8s.io',
  'clusterrolebindings.rbac.authorization.k8s.io',
])

/** Kinds whose delete returns the object. */
const returnedOnDelete = new Set([
  'namespaces',
  'services',
  'pods',
  'serviceaccounts',
  'persistentvolumeclaims',
  'persistentvolumes',
  'resourcequotas',
  'podtemplates',
])

/** Loads the engine for match conditions, which are compiled on write so that errors are returned to their author. */
async function loadForConditions(object: ApiObject): Promise<void> {
  const hasConditions = asRecords(object['webhooks']).some((webhook) => webhook['matchConditions'] !== undefined)
  if (hasConditions) await loadEngine()
}

export function builtinStrategy(kind: BuiltinKind, collection: Collection): Strategy {
  const id = kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`
  const common: Strategy = {
    hasGeneration: withGeneration.has(id),
    allowsUnconditionalUpdate: !conditional.has(id),
    allowsCreateOnUpdate: creatable.has(id),
    returnsDeletedObject: returnedOnDelete.has(id),
    applyDefaults: (object) => applyBuiltinDefaults(kind.schema, object),
    validate: (object, old, context) => {
      for (const warning of warnOfKind(id, object, old)) context.warn(warning)
      return [...checkFinalizerNames(object.metadata), ...validateKind(id, object, old)]
    },
  }
  if (id === 'customresourcedefinitions.apiextensions.k8s.io') return definitionStrategy(common)
  if (id === 'namespaces') return namespaceStrategy(common)
  if (id === 'services') return serviceStrategy(common, collection)
  if (id === 'pods') return podStrategy(common)
  if (kind.plural === 'events') return { ...common, checkName: checkPathSegment, namedAs: { group: '', kind: 'Event' } }
  if (id === 'daemonsets.apps') return daemonSetStrategy(common)
  if (id === 'nodes') return nodeStrategy(common)
  if (kind.group === 'admissionregistration.k8s.io') return { ...common, prepare: loadForConditions }
  if (kind.group === 'rbac.authorization.k8s.io') return { ...common, checkName: checkPathSegment }
  return common
}
