/**
 * Path elements in their FieldsV1 spelling: `f:name`, `k:{"name":"a"}`, `v:"x"`, `i:0`. The spelling is canonical, so
 * that string equality is element equality and sets are plain string sets.
 *
 * Place in the flow: the elements of all paths in apply/. Invariant: two elements are equal iff their strings are.
 */

/** JSON text of a scalar as Go writes it inside path elements: `<`, `>` and `&` are escaped. */
function scalarText(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value) ?? 'null'
  const text = JSON.stringify(value)
  return /[<>&\u2028\u2029]/.test(text) ? text.replace(/[<>&\u2028\u2029]/g, escapeUnit) : text
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}

export function fieldElement(name: string): string {
  return `f:${name}`
}

/** Element of an associative list item with keys. `entries` are sorted here: order in the item does not matter. */
export function keyElement(entries: [string, unknown][]): string {
  if (entries.length > 1) entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return `k:{${entries.map(([name, value]) => `${scalarText(name)}:${scalarText(value)}`).join(',')}}`
}

export function valueElement(value: unknown): string {
  return `v:${scalarText(value)}`
}

/** Canonical spelling of an element read from the wire; undefined for a type of element that is not known. */
export function parseElement(text: string): string | undefined {
  if (text.length < 2 || text[1] !== ':') throw new SyntaxError(`missing colon: ${text}`)
  switch (text.charAt(0)) {
    case 'f':
      return text
    case 'i':
      if (!/^i:-?\d+$/.test(text)) throw new SyntaxError(`not an index: ${text}`)
      return text
    case 'v':
      return valueElement(JSON.parse(text.slice(2)))
    case 'k': {
      const key: unknown = JSON.parse(text.slice(2))
      if (typeof key !== 'object' || key === null || Array.isArray(key)) throw new SyntaxError(`not a key: ${text}`)
      return keyElement(Object.entries(key))
    }
    default:
      return undefined
  }
}

/** Human-readable form of the element: `.name`, `[name="a"]`, `[="x"]`, `[0]`. */
export function elementText(element: string): string {
  const body = element.slice(2)
  switch (element.charAt(0)) {
    case 'f':
      return `.${body}`
    case 'k': {
      const key = JSON.parse(body) as Record<string, unknown>
      return `[${Object.entries(key)
        .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
        .join(',')}]`
    }
    case 'v':
      return `[=${JSON.stringify(JSON.parse(body))}]`
    default:
      return `[${body}]`
  }
}
