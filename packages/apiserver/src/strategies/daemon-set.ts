/** DaemonSets have an annotation that counts changes of their template, kept for compatibility. */
import { type ApiObject, getPath, isSameJson } from '../codec/object-shape.ts'
import type { Strategy } from '../resource/resource.ts'

const counter = 'deprecated.daemonset.template.generation'

function setCount(object: ApiObject, count: string): void {
  object.metadata.annotations = { ...object.metadata.annotations, [counter]: count }
}

export function daemonSetStrategy(common: Strategy): Strategy {
  return {
    ...common,
    applyDefaults(object) {
      common.applyDefaults?.(object)
      if (object.metadata.annotations?.[counter] === undefined) setCount(object, '1')
    },
    prepareForUpdate(object, old) {
      const before = Number(old.metadata.annotations?.[counter] ?? 1)
      const isSame = isSameJson(getPath(object, 'spec', 'template'), getPath(old, 'spec', 'template'))
      setCount(object, String(isSame ? before : before + 1))
    },
  }
}
