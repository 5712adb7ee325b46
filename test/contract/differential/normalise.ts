/**
 * Removes legitimate differences between two servers: identifiers, revisions, times, ages, allocated addresses, orders
 * that kube-apiserver takes from Go maps, descriptions of columns, messages of a YAML parser. Everything else is compared.
 *
 * uids and revisions of objects keep their identity: the first object seen as `a` is `a-1`, its first revision `a-1-1`,
 * so that "unchanged" and "the same object" remain visible.
 */
import { parse as parseYaml } from 'yaml'
import type { RawAnswer } from './raw-client.ts'

const uidPattern = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g
const timePattern = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g

/** Headers that are compared; the others (Date, Audit-Id, lengths) depend on the transport or the single request. */
const comparedHeaders = ['content-type', 'warning', 'allow', 'retry-after', 'location', 'cache-control']

export interface Normaliser {
  answer(answer: RawAnswer): string
}

export function createNormaliser(): Normaliser {
  const uids = new Map<string, string>()
  const revisions = new Map<string, string>()
  /** `a-1` is the first value seen for the object `a`, `a-2` the next. */
  const nameValue = (names: Map<string, string>, value: string, object: string) => {
    const known = names.get(value)
    if (known !== undefined) return known
    const count = [...names.values()].filter((name) => name.replace(/-\d+$/, '') === object).length
    names.set(value, `${object}-${count + 1}`)
    return `${object}-${count + 1}`
  }

  const text = (value: string) =>
    value
      .replaceAll(uidPattern, (uid) => `uid of ${uids.get(uid) ?? 'another'}`)
      .replaceAll(timePattern, '<time>')
      .replaceAll(/\b10\.\d+\.\d+\.\d+\b/g, '<ip>')
      .replaceAll(/resource version: \d+(?: \(\d+\))?/g, 'resource version: <n>')
      .replaceAll(/in record \(\d+\)/g, 'in record (<n>)')
      .replaceAll(/current: \d+/g, 'current: <n>')
      .replaceAll(/error converting YAML to JSON: yaml: .*/g, 'error converting YAML to JSON: <yaml>')
      .replaceAll(/Invalid value: "\{.*\}"/g, 'Invalid value: "<the whole object>"')
      .replaceAll(/(127\.0\.0\.1|80):\d{5}/g, '$1:<port>')
      .replaceAll(/^\d+[smhd](?:\d+[smhd])?$/g, '<age>')

  const walk = (value: unknown, key: string, owner: string): unknown => {
    if (typeof value === 'string') {
      if (key === 'resourceVersion' && value !== '') return owner === '' ? '<rv>' : nameValue(revisions, value, owner)
      return key === 'continue' && value !== '' ? '<continue>' : text(value)
    }
    if (key === 'nodePort') return '<port>'
    if (key === 'columnDefinitions')
      return (value as { description: string }[]).map((column) => ({ ...column, description: undefined }))
    if (Array.isArray(value)) return sortUnordered(key, value).map((item) => walk(item, '', owner))
    if (typeof value !== 'object' || value === null) return value
    const fields = sortMapKeys(value as Record<string, unknown>)
    const { name, uid } = fields
    const isObject = key === 'metadata' && typeof name === 'string' && typeof uid === 'string'
    const inside = isObject ? nameValue(uids, uid, name) : key === 'metadata' ? '' : owner
    const names = Object.keys(fields).toSorted()
    return Object.fromEntries(names.map((field) => [text(field), walk(fields[field], field, inside)]))
  }

  return {
    answer({ status, headers, text: body }) {
      const lines = comparedHeaders.flatMap((name) => {
        const value = headers[name]
        return value === undefined ? [] : [`${name}: ${[value].flat().toSorted().join('; ')}`]
      })
      return [
        `${status}`,
        ...lines,
        ...printBody(body, headers['content-type'] ?? '', (value) => walk(value, '', ''), text),
      ].join('\n')
    },
  }
}

/** A body is one JSON or YAML document, a stream of JSON lines, or text. */
function printBody(
  body: string,
  type: string,
  walk: (value: unknown) => unknown,
  text: (value: string) => string,
): string[] {
  const whole = type.startsWith('application/yaml') ? (parseYaml(body) as unknown) : parseJson(body)
  if (whole !== undefined) return [print(walk(whole), '')]
  return body
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const value = parseJson(line)
      return value === undefined ? text(line) : print(walk(value), '')
    })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const width = 118

/** JSON in lines of readable length: values that fit on one line are not split. */
function print(value: unknown, indent: string): string {
  const compact = JSON.stringify(value)
  if (typeof value !== 'object' || value === null || indent.length + compact.length <= width) return compact
  const deeper = `${indent} `
  const items = Array.isArray(value)
    ? value.map((item: unknown) => print(item, deeper))
    : Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}:${print(item, deeper)}`)
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return `${open}\n${fill(items, deeper)}\n${indent}${close}`
}

function fill(items: readonly string[], indent: string): string {
  const lines: string[] = []
  for (const item of items) {
    const last = lines.at(-1)
    const isShort = last !== undefined && !last.includes('\n') && !item.includes('\n')
    if (isShort && last.length + item.length + 2 <= width) lines[lines.length - 1] = `${last}, ${item}`
    else lines.push(indent + item)
  }
  return lines.join(',\n')
}

/** Causes have the order of a Go map, managers the order of their times in seconds. */
function sortUnordered(key: string, items: readonly unknown[]): readonly unknown[] {
  const fields = { causes: ['field', 'message'], managedFields: ['manager', 'operation', 'subresource'] }[key]
  if (fields === undefined) return items
  const rank = (item: unknown) =>
    fields.map((field) => (item as Record<string, string | undefined>)[field] ?? '').join('\0')
  return items.toSorted((left, right) => (rank(left) < rank(right) ? -1 : 1))
}

/** In the message of a Status the errors of the keys of one map (`data[a]`, `data[b]`) have the order of a Go map. */
function sortMapKeys(fields: Record<string, unknown>): Record<string, unknown> {
  const { kind, message, details } = fields as Status
  if (kind !== 'Status' || message === undefined) return fields
  const errors = (details?.causes ?? []).flatMap(({ field = '', message: fault }) => {
    const map = /^(.*)\[[^\]]*\D[^\]]*\]$/.exec(field)?.[1]
    const text = `${field}: ${fault}`
    const at = message.indexOf(text)
    return map === undefined || at < 0 ? [] : [{ map, text, at }]
  })
  const inOrder = errors.toSorted((a, b) => a.at - b.at)
  const sorted = new Map<string, string[]>()
  for (const { map, text } of errors) sorted.set(map, [...(sorted.get(map) ?? []), text].toSorted())
  let rest = message
  let result = ''
  for (const { map, text } of inOrder) {
    const at = rest.indexOf(text)
    result += rest.slice(0, at) + (sorted.get(map)?.shift() ?? text)
    rest = rest.slice(at + text.length)
  }
  return { ...fields, message: result + rest }
}

interface Status {
  readonly kind?: unknown
  readonly message?: string
  readonly details?: { readonly causes?: readonly { readonly field?: string; readonly message: string }[] }
}
