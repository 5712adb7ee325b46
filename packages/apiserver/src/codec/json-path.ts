/**
 * The JSONPath subset of printer columns, scale paths and selectable fields: fields, indices, `[*]` and one kind of
 * filter, `[?(@.type=="Ready")]`. Other expressions are rejected when the CRD is written, as in kube-apiserver.
 */
import { getOwn, isRecord } from './object-shape.ts'

type Step =
  | { kind: 'field'; name: string }
  | { kind: 'index'; index: number }
  | { kind: 'all' }
  | { kind: 'filter'; path: JsonPath; value: string }

export interface JsonPath {
  /** Every value that the path selects. */
  read(source: unknown): unknown[]
}

const token =
  /^(?:\.?\[\?\(\s*@((?:\.[\w-]+|\['[^']*'\])+)\s*==\s*(?:"([^"]*)"|'([^']*)'|([\w.-]+))\s*\)\]|\.?\['((?:[^'\\]|\\.)*)'\]|\.?\["((?:[^"\\]|\\.)*)"\]|\[(-?\d+)\]|\[\*\]|\.\*|\.((?:[^.[\]\\]|\\.)+))/

/** Undefined when the path is outside the subset. */
export function parseJsonPath(path: string): JsonPath | undefined {
  const steps: Step[] = []
  let rest = path.startsWith('{') && path.endsWith('}') ? path.slice(1, -1) : path
  if (rest.startsWith('$')) rest = rest.slice(1)
  if (rest !== '' && !rest.startsWith('.') && !rest.startsWith('[')) rest = `.${rest}`
  while (rest !== '' && rest !== '.') {
    const found = token.exec(rest)
    if (found === null) return undefined
    const [text, filterPath, quoted, single, bare, bracket, bracket2, index, field] = found
    if (filterPath !== undefined) {
      const inner = parseJsonPath(filterPath)
      if (inner === undefined) return undefined
      steps.push({ kind: 'filter', path: inner, value: quoted ?? single ?? bare ?? '' })
    } else if (index !== undefined) steps.push({ kind: 'index', index: Number(index) })
    else if (text === '[*]' || text === '.*') steps.push({ kind: 'all' })
    else steps.push({ kind: 'field', name: (bracket ?? bracket2 ?? field ?? '').replaceAll(/\\(.)/g, '$1') })
    rest = rest.slice(text.length)
  }
  return { read: (source) => steps.reduce((values, step) => values.flatMap((value) => take(value, step)), [source]) }
}

function take(value: unknown, step: Step): unknown[] {
  switch (step.kind) {
    case 'field': {
      const found = getOwn(value, step.name)
      return found === undefined ? [] : [found]
    }
    case 'index': {
      const found: unknown = Array.isArray(value) ? value.at(step.index) : undefined
      return found === undefined ? [] : [found]
    }
    case 'all':
      return Array.isArray(value) ? value : isRecord(value) ? Object.values(value) : []
    case 'filter':
      return (Array.isArray(value) ? value : []).filter((item) =>
        step.path.read(item).some((found) => String(found) === step.value),
      )
  }
}
