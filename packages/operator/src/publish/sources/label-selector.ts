/** Label selectors of API objects: all of matchLabels and all of matchExpressions (Kubernetes' LabelSelector). */
import type { Immutable } from '@seamark/kube/object'

export interface LabelSelector {
  matchLabels?: Record<string, string>
  matchExpressions?: { key: string; operator: string; values?: string[] }[]
}

export function matchesSelector(selector: Immutable<LabelSelector>, labels: Readonly<Record<string, string>>): boolean {
  const value = (key: string): string | undefined => (Object.hasOwn(labels, key) ? labels[key] : undefined)
  const equal = Object.entries(selector.matchLabels ?? {}).every(([key, wanted]) => value(key) === wanted)
  return (
    equal &&
    (selector.matchExpressions ?? []).every((term) => matchesTerm(term.operator, value(term.key), term.values ?? []))
  )
}

function matchesTerm(operator: string, value: string | undefined, values: readonly string[]): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    default:
      // An operator we do not know selects nothing: the safe reading of an unknown grant.
      return false
  }
}
