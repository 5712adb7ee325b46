/** The metrics and labels that a PromQL expression of ours names. It knows the functions and forms that we use, and no others. */

const WORDS = new Set(
  'absent avg sum max min count group by without le rate increase time histogram_quantile and or unless on ignoring'.split(
    ' ',
  ),
)

export interface Named {
  readonly metrics: readonly string[]
  /** Of selectors and groupings. */
  readonly labels: readonly string[]
  readonly grouped: readonly string[]
}

export function namesOf(expr: string): Named {
  const grouped = [...expr.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/,\s*/))
  const selected = [...expr.matchAll(/\{([^}]*)\}/g)].flatMap(([, list = '']) =>
    [...list.matchAll(/(\w+)(?:=~|!~|!=|=)"/g)].map(([, label = '']) => label),
  )
  const bare = expr
    .replaceAll(/\{[^}]*\}/g, '')
    .replaceAll(/\b(?:by|on) \([^)]*\)/g, '')
    .replaceAll(/\[[^\]]*\]/g, '')
  const metrics = [...bare.matchAll(/[a-zA-Z_:][\w:]*/g)].map(([name]) => name).filter((name) => !WORDS.has(name))
  return { metrics: [...new Set(metrics)], labels: [...new Set([...grouped, ...selected])], grouped }
}

/** The metric that a series belongs to: a histogram has series of three names. */
export function familyOf(series: string, isKnown: (name: string) => boolean): string {
  return isKnown(series) ? series : series.replace(/_(?:bucket|sum|count)$/, '')
}
