/**
 * Reports kinds that the API server does not let this process list and watch, for instance because a rule of its
 * ClusterRole is missing: a log line and an Event WatchForbidden on the manager's configuration object, once per denial
 * and then every half hour while it lasts.
 *
 * Place in the flow: beside the capabilities; the controllers that need the kind wait, and the others run. What was
 * published from a kind that became unreadable stays.
 */
import type { Informer, Manager } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import type { Reason } from '../../reasons.ts'
import { CONFIGURATION_OBJECT } from '../switches.ts'
import { isDenied, resourceOf } from './kind-faults.ts'

/** Events are kept for one hour by default. */
const REPEAT = '30m'
const CODE: Reason = 'WatchForbidden'

export function reportDeniedWatches(manager: Manager, namespace: string): void {
  const { informers } = manager.cluster
  const reported = new Set<string>()
  const findDenied = (): Informer<Obj>[] => informers.all().filter(isDenied)
  manager
    .keyedController('denied-watches', { concurrency: 1 })
    .triggers((mark) => {
      const unsubscribe = informers.onHealthChange(({ kind }) => mark([resourceOf(kind)]))
      // Denials from before this process became the leader.
      mark(findDenied().map(({ kind }) => resourceOf(kind)))
      return unsubscribe
    })
    .every(REPEAT, () => findDenied().map(({ kind }) => resourceOf(kind)))
    .reconcile(async (resource, context) => {
      const message = findDenied().find(({ kind }) => resourceOf(kind) === resource)?.failure?.message
      if (message === undefined) {
        if (reported.delete(resource)) context.log.info({ resource }, 'the watch is allowed again')
        return
      }
      reported.add(resource)
      context.log.warn({ code: CODE, resource, error: message }, 'the API server denies a watch')
      const about = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: CONFIGURATION_OBJECT, namespace } }
      const note = `${resource} cannot be listed and watched; what was published from them stays. Allow list and watch of ${resource} in the ClusterRole of the manager: ${message}`
      context.event(about, 'Warning', CODE, note, 'Watch')
    })
}
