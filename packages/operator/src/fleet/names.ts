/** Labels, annotations, finalizers and generated names of the fleet. Names are deterministic, so that diffs are trivial. */
import { createHash } from 'node:crypto'
import { FLEET_GROUP } from '../api/cluster.ts'

/** On leaves: identity of the hub that wrote them (`fleet.hubId`). */
export const HUB_LABEL = `${FLEET_GROUP}/hub`
export const ROOT_KIND_LABEL = `${FLEET_GROUP}/root-kind`
export const LEAF_CLUSTER_LABEL = `${FLEET_GROUP}/cluster`
/** On a TLS Secret of the hub: it may be copied to clusters whose leaves name it. */
export const SYNC_LABEL = `${FLEET_GROUP}/sync`
/** On hub Services: the cluster that has the workload, as in the KCP proof of concept. */
export const KCP_CLUSTER_LABEL = 'kcp.dev/cluster'

/** On generated objects of the hub: the name of the root, in the same namespace. */
export const ROOT_ANNOTATION = `${FLEET_GROUP}/root`
/** On a remote object: the name of its LeafIngress, in the same namespace of the hub. */
export const LEAF_ANNOTATION = `${FLEET_GROUP}/leaf`
export const HASH_ANNOTATION = `${FLEET_GROUP}/spec-hash`
export const SUMMARY_ANNOTATION = `${FLEET_GROUP}/summary`
/** `Immediate` skips the wait for caches of resolvers. */
export const DELETE_ANNOTATION = `${FLEET_GROUP}/delete`
/** Removes finalizers after one attempt; what may be left behind is in an Event. */
export const FORCE_DELETE_ANNOTATION = `${FLEET_GROUP}/force-delete`
export const FORCE_DETACH_ANNOTATION = `${FLEET_GROUP}/force-detach`
/** On a root: take over equally named objects on members that are not ours. */
export const ADOPT_ANNOTATION = `${FLEET_GROUP}/adopt`

export const DNS_FINALIZER = `${FLEET_GROUP}/dns`
export const REMOTE_FINALIZER = `${FLEET_GROUP}/remote`
export const CLUSTER_FINALIZER = `${FLEET_GROUP}/cluster`

/** Of leaves on members. Changing it orphans fields that were applied under the old name. */
export const FLEET_FIELD_MANAGER = 'seamark-fleet'

/** Of the metadata of a root. */
export interface RootRef {
  readonly namespace?: string | undefined
  readonly uid?: string | undefined
}

/**
 * Key of the objects that were generated for a root. The namespace is a part of it: a UID in a label proves nothing, and roots
 * generate objects in their own namespace only.
 */
export function rootKey({ namespace = '', uid = '' }: RootRef): string {
  return `${namespace}/${uid}`
}

export function globalIngressName(kind: string, root: string, uid: string): string {
  return fit(`${kind.toLowerCase()}-${root}`, hash(uid, 6))
}

/** `<kind>-<root>--<cluster>`, with a hash when it is too long for a label. */
export function leafName(kind: string, root: string, cluster: string): string {
  const name = `${kind.toLowerCase()}-${root}--${cluster}`
  if (name.length <= MAX_NAME) return name
  return fit(name, hash(name, 8))
}

export function balancerName(globalIngress: string, host: string): string {
  return fit(globalIngress, hash(host, 8))
}

export function endpointName(balancer: string, cluster: string, address: string): string {
  return fit(`${balancer}-${cluster}`, hash(`${balancer} ${cluster} ${address}`, 8))
}

/** Unique per root and host. */
export function managedHost(uid: string, host: string, domain: string): string {
  return `${hash(`${uid} ${host}`, 12)}.${domain}`
}

/** Of anything that JSON can express; independent of the order of keys. */
export function hashOf(value: unknown): string {
  return hash(canonicalJson(value), 16)
}

const MAX_NAME = 63

function fit(name: string, suffix: string): string {
  return `${name.slice(0, MAX_NAME - suffix.length - 1).replace(/[-.]+$/, '')}-${suffix}`
}

function hash(text: string, length: number): string {
  return createHash('sha256').update(text).digest('hex').slice(0, length)
}

function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item)).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const entries = Object.entries(value)
    // An API server may leave out a null.
    .filter(([, item]) => item !== undefined && item !== null)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(',')}}`
}
