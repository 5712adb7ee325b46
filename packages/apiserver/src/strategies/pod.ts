/** Pods: Pending on creation; a scheduled pod is deleted with a grace period, which its kubelet ends. */
import { asRecords, getPath, isRecord, type Json } from '../codec/object-shape.ts'
import type { Strategy } from '../resource/resource.ts'

/** Default tolerations: pods remain five minutes on an unreachable node. */
const evictions = ['not-ready', 'unreachable'].map((condition) => ({
  key: `node.kubernetes.io/${condition}`,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: 300,
}))

function tolerates({ key, effect }: Json, taint: string): boolean {
  return (key === taint || (key ?? '') === '') && (effect === 'NoExecute' || (effect ?? '') === '')
}

export function podStrategy(common: Strategy): Strategy {
  return {
    ...common,
    applyDefaults(object) {
      common.applyDefaults?.(object)
      const status = object['status']
      if (isRecord(status) && typeof status['podIP'] === 'string' && status['podIPs'] === undefined)
        status['podIPs'] = [{ ip: status['podIP'] }]
    },
    prepareForCreate(object) {
      object['status'] = { phase: 'Pending', qosClass: 'BestEffort' }
      const spec = { ...(object['spec'] as Json) }
      const given = asRecords(spec['tolerations'])
      const added = evictions.filter(({ key }) => !given.some((one) => tolerates(one, key)))
      // A negative value is treated as one second, the minimum.
      if (Number(spec['terminationGracePeriodSeconds'] ?? 0) < 0) spec['terminationGracePeriodSeconds'] = 1
      const priority = { priority: 0, preemptionPolicy: 'PreemptLowerPriority' }
      object['spec'] = { ...priority, ...spec, tolerations: [...given, ...added] }
    },
    gracePeriod(object, requested) {
      const isScheduled = (getPath(object, 'spec', 'nodeName') ?? '') !== ''
      const phase = getPath(object, 'status', 'phase')
      if (!isScheduled || phase === 'Failed' || phase === 'Succeeded') return 0
      const desired = getPath(object, 'spec', 'terminationGracePeriodSeconds')
      return requested ?? (typeof desired === 'number' ? desired : 30)
    },
  }
}
