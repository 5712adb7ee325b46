/**
 * Field errors as kube-apiserver formats them in `details.causes`: the kind of error, the invalid value, the detail.
 *
 * Place in the flow: every validator of schema/ uses these, so that the format is defined once.
 */
import type { Cause, CauseReason } from './model.ts'

function cause(reason: CauseReason, field: string, head: string, detail: string): Cause {
  return { reason, message: detail === '' ? head : `${head}: ${detail}`, field }
}

export function required(field: string, detail = ''): Cause {
  return cause('FieldValueRequired', field, 'Required value', detail)
}

export function forbidden(field: string, detail: string): Cause {
  return cause('FieldValueForbidden', field, 'Forbidden', detail)
}

export function invalid(field: string, value: unknown, detail: string): Cause {
  return cause('FieldValueInvalid', field, `Invalid value: ${valueText(value)}`, detail)
}

export function typeInvalid(field: string, value: unknown, detail: string): Cause {
  return cause('FieldValueTypeInvalid', field, `Invalid value: ${valueText(value)}`, detail)
}

export function duplicate(field: string, value: unknown): Cause {
  return cause('FieldValueDuplicate', field, `Duplicate value: ${valueText(value)}`, '')
}

export function notSupported(field: string, value: unknown, supported: readonly unknown[]): Cause {
  const names = supported.map((item) => goQuote(typeof item === 'string' ? item : goJson(item)))
  const detail = names.length === 0 ? '' : `supported values: ${names.join(', ')}`
  return cause('FieldValueNotSupported', field, `Unsupported value: ${valueText(value)}`, detail)
}

export function tooLong(field: string, max: number): Cause {
  return cause('FieldValueTooLong', field, 'Too long', `may not be more than ${max} ${max === 1 ? 'byte' : 'bytes'}`)
}

export function tooMany(field: string, actual: number, max: number): Cause {
  const detail = `must have at most ${max} ${max === 1 ? 'item' : 'items'}`
  return cause('FieldValueTooMany', field, `Too many: ${actual}`, detail)
}

function valueText(value: unknown): string {
  return typeof value === 'string' ? goQuote(value) : goJson(value)
}

/** Go's `%q`. */
export function goQuote(text: string): string {
  let quoted = '"'
  for (const char of text) {
    const code = char.codePointAt(0)!
    if (char === '"' || char === '\\') quoted += `\\${char}`
    else if (ESCAPES.has(char)) quoted += ESCAPES.get(char)
    else if (code < 0x20 || code === 0x7f) quoted += `\\x${code.toString(16).padStart(2, '0')}`
    else if (/[\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.test(char)) quoted += char
    else if (code < 0x10000) quoted += `\\u${code.toString(16).padStart(4, '0')}`
    else quoted += `\\U${code.toString(16).padStart(8, '0')}`
  }
  return `${quoted}"`
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\x07', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
])

/** Go's `json.Marshal`: keys sorted, `<`, `>`, `&` escaped. */
export function goJson(value: unknown): string {
  if (value === undefined || value === null) return 'null'
  if (typeof value === 'string') return escapeHtml(JSON.stringify(value))
  if (typeof value !== 'object') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(goJson).join(',')}]`
  const keys = Object.keys(value).toSorted()
  const record = value as Record<string, unknown>
  return `{${keys.map((key) => `${escapeHtml(JSON.stringify(key))}:${goJson(record[key])}`).join(',')}}`
}

function escapeHtml(json: string): string {
  return json.replace(/[<>&\u2028\u2029]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
