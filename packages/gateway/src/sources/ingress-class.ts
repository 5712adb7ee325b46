/** Which Ingresses and HTTPProxies are ours: by class. */
import { classOf } from '@seamark/dialects'
import type { Immutable, Obj } from '@seamark/kube/object'
import type { BuildSettings } from '../draft/input.ts'

interface Classified extends Obj {
  spec?: { ingressClassName?: string }
}

export function isServedClass(object: Immutable<Classified>, settings: BuildSettings): boolean {
  const name = classOf(object.metadata.annotations, object.spec?.ingressClassName)
  return name === '' ? settings.servesUnclassified : settings.ingressClassNames.includes(name)
}
