/**
 * Kubernetes' textual label selectors (`a=b,c!=d,e in (x,y),!f`), evaluated on our side: a change of selector must recompute
 * at once, without a new watch.
 */

export type NodeSelector = (labels: Readonly<Record<string, string>>) => boolean

const KEY = String.raw`(?:[a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?`
const TERM = new RegExp(
  String.raw`^(?:(?<absent>!)\s*)?(?<key>${KEY})\s*(?:(?<set>in|notin)\s*\((?<list>[^()]*)\)|(?<op>==|=|!=)\s*(?<value>[-A-Za-z0-9_.]*))?$`,
)

/** Undefined for text that is no selector. */
export function parseNodeSelector(text: string): NodeSelector | undefined {
  const terms: NodeSelector[] = []
  for (const part of splitTerms(text)) {
    const groups = TERM.exec(part)?.groups
    if (groups === undefined) return undefined
    terms.push(makeTerm(groups))
  }
  return (labels) => terms.every((term) => term(labels))
}

/** Commas inside parentheses separate values, not terms. */
function splitTerms(text: string): string[] {
  return text
    .split(/,(?![^(]*\))/)
    .map((part) => part.trim())
    .filter((part) => part !== '')
}

function makeTerm(groups: Record<string, string | undefined>): NodeSelector {
  const { key = '', absent, set, list = '', op, value = '' } = groups
  const valueOf = (labels: Readonly<Record<string, string>>): string | undefined =>
    Object.hasOwn(labels, key) ? labels[key] : undefined
  if (absent !== undefined) return (labels) => valueOf(labels) === undefined
  if (set !== undefined) {
    const values = new Set(list.split(',').map((item) => item.trim()))
    return (labels) => {
      const found = valueOf(labels)
      return set === 'in' ? found !== undefined && values.has(found) : found === undefined || !values.has(found)
    }
  }
  if (op === '!=') return (labels) => valueOf(labels) !== value
  if (op !== undefined) return (labels) => valueOf(labels) === value
  return (labels) => valueOf(labels) !== undefined
}
