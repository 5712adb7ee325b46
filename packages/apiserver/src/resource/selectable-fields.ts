/** Fields of built-in kinds that field selectors support, beside metadata.name and metadata.namespace. */
import { getPath } from '../codec/object-shape.ts'
import type { FieldReader } from './selectors.ts'

function field(path: string, fallback = ''): [string, FieldReader] {
  const keys = path.split('.')
  return [path, (stored) => String(getPath(stored.object, ...keys) ?? fallback)]
}

const involved = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath']

const fieldsByResource: Record<string, Record<string, FieldReader>> = {
  events: Object.fromEntries([
    ...involved.map((key) => field(`involvedObject.${key}`)),
    field('reason'),
    field('reportingComponent'),
    [
      'source',
      (stored) =>
        String(getPath(stored.object, 'source', 'component') ?? getPath(stored.object, 'reportingComponent') ?? ''),
    ],
    field('type'),
  ]),
  'events.events.k8s.io': Object.fromEntries([
    ...involved.map((key): [string, FieldReader] => [
      `regarding.${key}`,
      (stored) => String(getPath(stored.object, 'involvedObject', key) ?? ''),
    ]),
    field('reason'),
    ['reportingController', (stored) => String(getPath(stored.object, 'reportingComponent') ?? '')],
    field('type'),
  ]),
  secrets: Object.fromEntries([field('type')]),
  namespaces: Object.fromEntries([field('status.phase')]),
  nodes: Object.fromEntries([field('spec.unschedulable', 'false')]),
  services: Object.fromEntries([field('spec.clusterIP'), field('spec.type')]),
  'jobs.batch': Object.fromEntries([field('status.successful', '0')]),
  'replicasets.apps': Object.fromEntries([field('status.replicas', '0')]),
  pods: Object.fromEntries([
    field('spec.nodeName'),
    field('spec.restartPolicy'),
    field('spec.schedulerName'),
    field('spec.serviceAccountName'),
    field('spec.hostNetwork', 'false'),
    field('status.phase'),
    field('status.podIP'),
    field('status.nominatedNodeName'),
  ]),
}

const none: Record<string, FieldReader> = {}

export function builtinFields(group: string, plural: string): Readonly<Record<string, FieldReader>> {
  return fieldsByResource[group === '' ? plural : `${plural}.${group}`] ?? none
}
