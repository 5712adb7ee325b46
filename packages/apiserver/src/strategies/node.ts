/** Nodes: tainted not-ready on creation; podCIDR is copied to podCIDRs; allocatable defaults to capacity. */
import { asRecords, isRecord, type Json } from '../codec/object-shape.ts'
import type { Strategy } from '../resource/resource.ts'

const notReady = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }

export function nodeStrategy(common: Strategy): Strategy {
  return {
    ...common,
    applyDefaults(object) {
      common.applyDefaults?.(object)
      const { spec, status } = object as { spec?: Json; status?: Json }
      if (isRecord(spec) && typeof spec['podCIDR'] === 'string') spec['podCIDRs'] = [spec['podCIDR']]
      if (isRecord(status) && status['allocatable'] === undefined && isRecord(status['capacity']))
        status['allocatable'] = { ...status['capacity'] }
    },
    prepareForCreate(object) {
      const spec: Json = isRecord(object['spec']) ? object['spec'] : {}
      const taints = asRecords(spec['taints'])
      if (taints.some(({ key, effect }) => key === notReady.key && effect === notReady.effect)) return
      object['spec'] = { ...spec, taints: [...taints, notReady] }
    },
  }
}
