/**
 * What the end-state oracle does not look at: facts that differ between any two honest runs. Every line here hides
 * something, so every line needs a reason.
 */
import type { Obj } from '@seamark/kube/object'

/** Fields of metadata that the server invents, by object or by write. */
const maskedMetadata = new Set([
  'uid', // random
  'resourceVersion', // counts all writes, retries included
  'creationTimestamp',
  'deletionTimestamp',
  'managedFields', // times, and managers of retried writes
  'generation', // counts spec writes; what they wrote is compared
])

/** Anywhere in an object: when something was noticed, which a fault may delay. */
const maskedFields = new Set(['lastTransitionTime', 'lastProbeTime', 'lastHeartbeatTime', 'observedGeneration'])

/** In texts: a condition may say since when something is so. */
const moments = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g

/** Kinds that say how a run went, not where it ended. */
const maskedKinds = new Set(['Event', 'Lease'])

/**
 * ConfigMaps in which the program keeps its own state. Publish writes its baseline once sources have not changed for a
 * while, which a fault may delay beyond the end; records keeps times, and the plans that it applied.
 */
const ownState = /^seamark-(publish|held-objects|guard-state|plan-.*)$/

export function isMasked(object: Obj): boolean {
  return (
    maskedKinds.has(object.kind ?? '') || (object.kind === 'ConfigMap' && ownState.test(object.metadata.name ?? ''))
  )
}

/** The comparable part, with sorted keys, owners named instead of identified. */
export function maskObject(object: Obj): string {
  const { metadata, ...rest } = object as Obj & { status?: object }
  // What is left where a condition was written and removed again, which only some faults cause.
  if (rest.status !== undefined && Object.keys(rest.status).length === 0) delete rest.status
  const kept = Object.entries(metadata).filter(([name]) => !maskedMetadata.has(name))
  return JSON.stringify(maskValue({ ...rest, metadata: Object.fromEntries(kept) }), undefined, 1)
}

function maskValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(maskValue)
  if (typeof value === 'string') return value.replace(moments, '<time>')
  if (typeof value !== 'object' || value === null) return value
  const fields = value as Record<string, unknown>
  const isOwner = 'uid' in fields && 'name' in fields && 'kind' in fields
  const names = Object.keys(fields).filter((name) => !maskedFields.has(name) && !(isOwner && name === 'uid'))
  return Object.fromEntries(names.toSorted().map((name) => [name, maskValue(fields[name])]))
}
