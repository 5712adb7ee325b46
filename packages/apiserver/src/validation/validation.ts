/**
 * Validation of built-in kinds: the rules that kubectl users encounter and that controllers rely on, with the messages
 * and order of kube-apiserver. Not every rule of every kind; what is not checked is accepted (docs/apiserver.md).
 */
import { findEngine } from '../cel/engine.ts'
import { type ApiObject, getPath } from '../codec/object-shape.ts'
import type { Cause } from '../schema/model.ts'
import * as cluster from './cluster-kinds.ts'
import { validateConfigMap, validateSecret } from './data-kinds.ts'
import { validateIngress, validateIngressClass, warnOfIngress } from './ingress-rules.ts'
import { validateEndpoints, validateEndpointSlice, validateNetworkPolicy } from './network-rules.ts'
import { validatePod, warnOfPodSpec } from './pod-rules.ts'
import { validateBinding, validateRole } from './rbac-rules.ts'
import { validateService, warnOfService } from './service-rules.ts'
import { validateWebhooks } from './webhook-rules.ts'
import {
  validateCronJob,
  validateDaemonSet,
  validateDeployment,
  validateJob,
  validateReplicaSet,
  validateStatefulSet,
} from './workload-rules.ts'

type Validate = (object: ApiObject, old: ApiObject | undefined) => Cause[]

/** The engine is loaded: the strategy loads it for a configuration with match conditions. */
const validateHooks: Validate = (object) =>
  validateWebhooks(object, (expression) => findEngine()?.explainCondition(expression))

const byKind: ReadonlyMap<string, Validate> = new Map<string, Validate>([
  ['configmaps', validateConfigMap],
  ['secrets', validateSecret],
  ['services', validateService],
  ['pods', validatePod],
  ['endpoints', validateEndpoints],
  ['events', cluster.validateEvent],
  ['namespaces', cluster.validateNamespace],
  ['nodes', cluster.validateNode],
  ['limitranges', cluster.validateLimitRange],
  ['resourcequotas', cluster.validateQuota],
  ['persistentvolumeclaims', cluster.validateClaim],
  ['events.events.k8s.io', cluster.validateEvent],
  ['ingresses.networking.k8s.io', validateIngress],
  ['ingressclasses.networking.k8s.io', validateIngressClass],
  ['networkpolicies.networking.k8s.io', validateNetworkPolicy],
  ['endpointslices.discovery.k8s.io', validateEndpointSlice],
  ['deployments.apps', validateDeployment],
  ['replicasets.apps', validateReplicaSet],
  ['daemonsets.apps', validateDaemonSet],
  ['statefulsets.apps', validateStatefulSet],
  ['jobs.batch', validateJob],
  ['cronjobs.batch', validateCronJob],
  ['roles.rbac.authorization.k8s.io', validateRole],
  ['clusterroles.rbac.authorization.k8s.io', validateRole],
  ['rolebindings.rbac.authorization.k8s.io', validateBinding],
  ['clusterrolebindings.rbac.authorization.k8s.io', validateBinding],
  ['leases.coordination.k8s.io', cluster.validateLease],
  ['mutatingwebhookconfigurations.admissionregistration.k8s.io', validateHooks],
  ['validatingwebhookconfigurations.admissionregistration.k8s.io', validateHooks],
  ['poddisruptionbudgets.policy', cluster.validateBudget],
  ['horizontalpodautoscalers.autoscaling', cluster.validateAutoscaler],
  ['storageclasses.storage.k8s.io', cluster.validateStorageClass],
  ['priorityclasses.scheduling.k8s.io', cluster.validatePriorityClass],
])

export function validateKind(id: string, object: ApiObject, old: ApiObject | undefined): Cause[] {
  return byKind.get(id)?.(object, old) ?? []
}

/** Warnings for valid objects, returned as Warning headers. */
export function warnOfKind(id: string, object: ApiObject, old: ApiObject | undefined): string[] {
  switch (id) {
    case 'pods':
      return warnOfPodSpec(object['spec'], 'spec')
    case 'services':
      return warnOfService(object)
    case 'ingresses.networking.k8s.io':
      return warnOfIngress(object, old)
    default: {
      const template = getPath(object, 'spec', 'template', 'spec')
      return template === undefined ? [] : warnOfPodSpec(template, 'spec.template.spec')
    }
  }
}
