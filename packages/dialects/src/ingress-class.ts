/** The class of an Ingress, HTTPProxy or IngressRoute: Contour's annotation, else Kubernetes' annotation, else the field. */

/** In order of precedence; an empty value counts as absent. */
export const CLASS_ANNOTATIONS = ['projectcontour.io/ingress.class', 'kubernetes.io/ingress.class'] as const

/** '' : the object has no class. */
export function classOf(annotations: Readonly<Record<string, string>> | undefined, field: string | undefined): string {
  for (const name of CLASS_ANNOTATIONS) {
    const value = annotations?.[name]
    if (value !== undefined && value !== '') return value
  }
  return field ?? ''
}
