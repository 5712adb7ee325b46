/** Which Ingresses and HTTPProxies are ours: by class, as in Contour (spec field first, then annotations). */
import type { Immutable, Obj } from '@seamark/kube/object'
import type { BuildSettings } from '../draft/input.ts'

const ANNOTATIONS = ['projectcontour.io/ingress.class', 'kubernetes.io/ingress.class']

interface Classified extends Obj {
  spec?: { ingressClassName?: string }
}

export function isServedClass(object: Immutable<Classified>, settings: BuildSettings): boolean {
  const { annotations } = object.metadata
  const annotated =
    annotations === undefined
      ? undefined
      : ANNOTATIONS.map((name) => annotations[name]).find((value) => value !== undefined && value !== '')
  const name = annotated ?? object.spec?.ingressClassName ?? ''
  return name === '' ? settings.servesUnclassified : settings.ingressClassNames.includes(name)
}
