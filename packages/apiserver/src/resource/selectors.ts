/**
 * Label and field selectors: parsed once per request into a predicate over stored objects.
 *
 * Parse errors equal those of kube-apiserver, token by token. This requires a parser other than that of
 * `@seamark/kube/object`, which only reports that a text is not a selector.
 */
import { checkLabelValue, checkQualifiedName } from '../validation/names.ts'
import { getPath } from '../codec/object-shape.ts'
import { badRequest } from '../exchange/status.ts'
import type { Stored } from '../store/stored-object.ts'

type Operator = 'in' | 'notin' | 'exists' | '!' | 'gt' | 'lt'

interface Requirement {
  readonly key: string
  readonly operator: Operator
  readonly values: readonly string[]
}

export interface LabelSelector {
  readonly isEmpty: boolean
  matches(labels: Readonly<Record<string, string>> | undefined): boolean
}

interface Token {
  readonly type: 'id' | 'in' | 'notin' | '!' | '=' | '==' | '!=' | '>' | '<' | ',' | '(' | ')' | 'end' | 'error'
  readonly text: string
}

const symbols = ['==', '!=', '=', '!', '>', '<', ',', '(', ')'] as const

function tokenize(selector: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  while (at < selector.length) {
    const rest = selector.slice(at)
    const space = /^[ \t\r\n]+/.exec(rest)?.[0]
    if (space !== undefined) {
      at += space.length
      continue
    }
    const symbol = symbols.find((candidate) => rest.startsWith(candidate))
    const text = symbol ?? /^[^ \t\r\n=!<>,()]+/.exec(rest)?.[0] ?? rest
    tokens.push({ type: symbol ?? (text === 'in' || text === 'notin' ? text : 'id'), text })
    at += text.length
  }
  tokens.push({ type: 'end', text: '' })
  return tokens
}

class LabelParser {
  readonly #tokens: Token[]
  #at = 0

  constructor(selector: string) {
    this.#tokens = tokenize(selector)
  }

  parse(): Requirement[] {
    const requirements: Requirement[] = []
    for (;;) {
      const next = this.#peek()
      if (next.type === 'end') return requirements
      if (!isIdentifier(next) && next.type !== '!') {
        throw badRequest(`found '${next.text}', expected: !, identifier, or 'end of string'`)
      }
      requirements.push(this.#requirement())
      const after = this.#take()
      if (after.type === 'end') return requirements
      if (after.type !== ',') throw badRequest(`found '${after.text}', expected: ',' or 'end of string'`)
      const following = this.#peek()
      if (!isIdentifier(following) && following.type !== '!') {
        throw badRequest(`found '${following.text}', expected: identifier after ','`)
      }
    }
  }

  #requirement(): Requirement {
    let token = this.#take()
    const isNegated = token.type === '!'
    if (isNegated) token = this.#take()
    if (!isIdentifier(token)) throw unparsable(`found '${token.text}', expected: identifier`)
    const key = token.text
    const errors = checkQualifiedName(key)
    if (errors.length > 0) throw unparsable(`<nil>: Invalid value: ${JSON.stringify(key)}: ${errors.join('; ')}`)
    const next = this.#peek()
    if (isNegated) return { key, operator: '!', values: [] }
    if (next.type === 'end' || next.type === ',') return { key, operator: 'exists', values: [] }
    return this.#comparison(key)
  }

  #comparison(key: string): Requirement {
    const token = this.#take()
    switch (token.type) {
      case 'in':
      case 'notin':
        return checked({ key, operator: token.type, values: this.#values() })
      case '=':
      case '==':
        return checked({ key, operator: 'in', values: [this.#value()] })
      case '!=':
        return checked({ key, operator: 'notin', values: [this.#value()] })
      case '>':
        return checked({ key, operator: 'gt', values: [this.#value()] })
      case '<':
        return checked({ key, operator: 'lt', values: [this.#value()] })
      case 'id':
      case '!':
      case ',':
      case '(':
      case ')':
      case 'end':
      case 'error':
        throw unparsable(`found '${token.text}', expected: in, notin, =, ==, !=, gt, lt`)
    }
  }

  #value(): string {
    const next = this.#peek()
    if (next.type === 'end' || next.type === ',') return ''
    const token = this.#take()
    if (!isIdentifier(token)) throw unparsable(`found '${token.text}', expected: identifier`)
    return token.text
  }

  #values(): string[] {
    const open = this.#take()
    if (open.type !== '(') throw unparsable(`found '${open.text}' expected: '('`)
    const values = new Set<string>()
    const first = this.#peek()
    if (first.type === ')') {
      this.#take()
      return ['']
    }
    if (!isIdentifier(first) && first.type !== ',')
      throw unparsable(`found '${first.text}', expected: ',', ')' or identifier`)
    for (;;) {
      const token = this.#take()
      const next = this.#peek()
      if (isIdentifier(token)) {
        values.add(token.text)
        if (next.type === ')') break
        if (next.type !== ',') throw unparsable(`found '${next.text}', expected: ',' or ')'`)
      } else if (token.type === ',') {
        if (values.size === 0 || next.type === ',' || next.type === ')') values.add('')
        if (next.type === ')') break
      } else {
        throw unparsable(`found '${token.text}', expected: ',', or identifier`)
      }
    }
    this.#take()
    return [...values].sort()
  }

  #peek(): Token {
    return this.#tokens[this.#at] ?? { type: 'end', text: '' }
  }

  #take(): Token {
    const token = this.#peek()
    this.#at += 1
    return token
  }
}

/** `in` and `notin` are identifiers wherever a key or value is allowed. */
function isIdentifier(token: Token): boolean {
  return token.type === 'id' || token.type === 'in' || token.type === 'notin'
}

function unparsable(why: string): Error {
  return badRequest(`unable to parse requirement: ${why}`)
}

function checked(requirement: Requirement): Requirement {
  const { key, operator, values } = requirement
  for (const [index, value] of values.entries()) {
    const errors = checkLabelValue(value)
    if ((operator === 'gt' || operator === 'lt') && !/^[-+]?\d+$/.test(value)) {
      throw unparsable(
        `values[${index}]: Invalid value: ${JSON.stringify(value)}: for 'Gt', 'Lt' operators, the value must be an integer`,
      )
    }
    if (errors.length > 0)
      throw unparsable(`values[${index}][${key}]: Invalid value: ${JSON.stringify(value)}: ${errors.join('; ')}`)
  }
  return requirement
}

function satisfies(requirement: Requirement, labels: Readonly<Record<string, string>>): boolean {
  const { key, operator, values } = requirement
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined
  switch (operator) {
    case 'exists':
      return value !== undefined
    case '!':
      return value === undefined
    case 'in':
      return value !== undefined && values.includes(value)
    case 'notin':
      return value === undefined || !values.includes(value)
    case 'gt':
      return value !== undefined && /^[-+]?\d+$/.test(value) && Number(value) > Number(values[0])
    case 'lt':
      return value !== undefined && /^[-+]?\d+$/.test(value) && Number(value) < Number(values[0])
  }
}

const noLabels: Readonly<Record<string, string>> = {}

function selectorOf(requirements: readonly Requirement[]): LabelSelector {
  return {
    isEmpty: requirements.length === 0,
    matches: (labels) => requirements.every((requirement) => satisfies(requirement, labels ?? noLabels)),
  }
}

export function parseLabelSelector(selector: string): LabelSelector {
  return selectorOf(new LabelParser(selector).parse())
}

/** The `matchLabels` / `matchExpressions` form of selectors in objects. Undefined selects everything. */
export function compileLabelSelector(selector: unknown): LabelSelector {
  const requirements: Requirement[] = []
  const matchLabels = getPath(selector, 'matchLabels')
  if (typeof matchLabels === 'object' && matchLabels !== null) {
    for (const [key, value] of Object.entries(matchLabels))
      requirements.push({ key, operator: 'in', values: [String(value)] })
  }
  const expressions = getPath(selector, 'matchExpressions')
  const operators: Record<string, Operator> = { In: 'in', NotIn: 'notin', Exists: 'exists', DoesNotExist: '!' }
  for (const expression of Array.isArray(expressions) ? expressions : []) {
    const operator = operators[String(getPath(expression, 'operator'))]
    const values = getPath(expression, 'values')
    if (operator === undefined) continue
    requirements.push({
      key: String(getPath(expression, 'key')),
      operator,
      values: Array.isArray(values) ? values.map(String) : [],
    })
  }
  return selectorOf(requirements)
}

interface FieldTerm {
  readonly field: string
  readonly isNegated: boolean
  readonly value: string
}

export interface FieldSelector {
  readonly isEmpty: boolean
  /** The selected name, when the selector contains `metadata.name=X`. */
  readonly name: string | undefined
  matches(stored: Stored): boolean
}

/** Reads a supported field. `fallback` is the value of an absent field. */
export type FieldReader = (stored: Stored) => string

const commonFields: Record<string, FieldReader> = {
  'metadata.name': (stored) => stored.name,
  'metadata.namespace': (stored) => stored.namespace,
}

function splitTerms(selector: string): string[] {
  const terms: string[] = []
  let start = 0
  for (let at = 0; at < selector.length; at += 1) {
    if (selector[at] === '\\') at += 1
    else if (selector[at] === ',') {
      terms.push(selector.slice(start, at))
      start = at + 1
    }
  }
  terms.push(selector.slice(start))
  return terms.filter((term) => term !== '').sort()
}

function unescape(value: string): string {
  let text = ''
  for (let at = 0; at < value.length; at += 1) {
    const character = value[at] as string
    if (character === '\\') {
      at += 1
      const escaped = value[at]
      if (escaped === undefined || !'\\,='.includes(escaped)) {
        throw badRequest(`invalid field selector: invalid escape sequence: \\${escaped ?? ''}`)
      }
      text += escaped
    } else if (character === ',' || character === '=') {
      throw badRequest(`invalid field selector: unescaped character in value: ${character.charCodeAt(0)}`)
    } else text += character
  }
  return text
}

function parseTerm(term: string, selector: string): FieldTerm {
  const found = /^(.*?)(!=|==|=)(.*)$/s.exec(term)
  if (found === null) throw badRequest(`invalid selector: '${selector}'; can't understand '${term}'`)
  return { field: found[1] as string, isNegated: found[2] === '!=', value: unescape(found[3] as string) }
}

/** `kindFields` are the fields that a kind supports beside name and namespace. */
export function parseFieldSelector(
  selector: string,
  kindFields: Readonly<Record<string, FieldReader>>,
  unsupported: (field: string) => string,
): FieldSelector {
  const terms = splitTerms(selector).map((term) => parseTerm(term, selector))
  const tests = terms.map(({ field, isNegated, value }) => {
    const read = Object.hasOwn(commonFields, field)
      ? commonFields[field]
      : Object.hasOwn(kindFields, field)
        ? kindFields[field]
        : undefined
    if (read === undefined) throw badRequest(unsupported(field))
    return (stored: Stored) => (read(stored) === value) !== isNegated
  })
  return {
    isEmpty: tests.length === 0,
    name: terms.find((term) => term.field === 'metadata.name' && !term.isNegated)?.value,
    matches: (stored) => tests.every((test) => test(stored)),
  }
}
