/**
 * Which clusters are registered: Secrets with the label `seamark.io/cluster=<name>` and the key `kubeconfig` in the manager's
 * namespace. Pure; of two Secrets for one name the older registers it. Shared by wildcard and fleet.
 */
import { byAge } from '@seamark/dialects'
import { Secret } from '@seamark/kube'
import type { Immutable } from '@seamark/kube/object'

/** On a Secret: the name of the cluster that it registers. */
export const CLUSTER_LABEL = 'seamark.io/cluster'
/** On a Secret: the zone of the cluster's wildcard. */
const ZONE_ANNOTATION = 'seamark.io/zone'

export interface Registration {
  readonly cluster: string
  /** Undefined for the local cluster, which needs no registration. */
  readonly secret: { readonly name: string; readonly uid: string } | undefined
  readonly namespace: string
  /** '' uses the installation's. */
  readonly zone: string
  /** Text; undefined when the Secret has none. */
  readonly kubeconfig: string | undefined
}

function readRegistration(secret: Immutable<Secret>): Registration | undefined {
  const { name = '', namespace = '', uid = '', labels, annotations, deletionTimestamp } = secret.metadata
  const cluster = labels !== undefined && Object.hasOwn(labels, CLUSTER_LABEL) ? (labels[CLUSTER_LABEL] ?? '') : ''
  if (cluster === '' || deletionTimestamp !== undefined) return undefined
  const data = secret.data?.['kubeconfig']
  const zone =
    annotations !== undefined && Object.hasOwn(annotations, ZONE_ANNOTATION) ? (annotations[ZONE_ANNOTATION] ?? '') : ''
  return {
    cluster,
    secret: { name, uid },
    namespace,
    zone,
    kubeconfig: data === undefined ? undefined : Buffer.from(data, 'base64').toString('utf8'),
  }
}

/** The cluster that the manager itself runs in. */
export function localRegistration(cluster: string, namespace: string): Registration {
  return { cluster, namespace, secret: undefined, zone: '', kubeconfig: undefined }
}

/** By cluster name; a second Secret of one name waits until the first is gone. */
export function readRegistry(secrets: readonly Immutable<Secret>[]): Map<string, Registration> {
  const registry = new Map<string, Registration>()
  for (const secret of secrets.toSorted(byAge(Secret))) {
    const registration = readRegistration(secret)
    if (registration === undefined || registry.has(registration.cluster)) continue
    registry.set(registration.cluster, registration)
  }
  return registry
}
