/** Pods: pending until something runs them; a scheduled pod is deleted with a grace period, which its kubelet ends. */
import { getPath } from '../object-shape.ts'
import type { Strategy } from '../resource.ts'

export function podStrategy(common: Strategy): Strategy {
  return {
    ...common,
    prepareForCreate(object) {
      object['status'] = { phase: 'Pending', qosClass: 'BestEffort' }
    },
    gracePeriod(object, asked) {
      const isScheduled = (getPath(object, 'spec', 'nodeName') ?? '') !== ''
      const phase = getPath(object, 'status', 'phase')
      if (!isScheduled || phase === 'Failed' || phase === 'Succeeded') return 0
      const wanted = getPath(object, 'spec', 'terminationGracePeriodSeconds')
      return asked ?? (typeof wanted === 'number' ? wanted : 30)
    },
  }
}
