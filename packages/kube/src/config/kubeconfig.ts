/**
 * Parses a kubeconfig to named entries, with limits, and reads their fields with types. Pure: it opens no file and
 * starts no process, so it is shared by the loader for untrusted input (remote-config.ts) and the user's loader
 * (config.ts).
 *
 * Mappings become Maps, so `__proto__` and `constructor` are ordinary keys. No message quotes the text: a kubeconfig
 * contains secrets.
 */
import { isMap, LineCounter, parseDocument } from 'yaml'
import { ConfigError } from '../errors.ts'

export type Fields = ReadonlyMap<unknown, unknown>

export interface Kubeconfig {
  readonly fields: Fields
  readonly currentContext: string | undefined
  readonly clusters: ReadonlyMap<string, Fields>
  readonly users: ReadonlyMap<string, Fields>
  readonly contexts: ReadonlyMap<string, Fields>
}

export interface KubeconfigLimits {
  /** @default 1 MiB */
  maxBytes?: number
  /** Expanded YAML aliases. @default 10 */
  maxAliases?: number
  /** Entries of each list. @default 10 000 */
  maxEntries?: number
  /** Two entries of one name are an error; otherwise the first wins, as in kubectl. @default false */
  uniqueNames?: boolean
}

export function parseKubeconfig(text: string, limits: KubeconfigLimits = {}): Kubeconfig {
  const { maxBytes = 2 ** 20, maxAliases = 10, maxEntries = 10_000, uniqueNames = false } = limits
  const bytes = Buffer.byteLength(text)
  if (bytes > maxBytes) throw new ConfigError('TOO_LARGE', `kubeconfig has ${bytes} bytes; the limit is ${maxBytes}`)
  const fields = parseYaml(text, maxAliases)
  const named = (key: string, inner: string) => readEntries(fields, key, inner, maxEntries, uniqueNames)
  return {
    fields,
    currentContext: textField(fields, 'current-context', 'kubeconfig'),
    clusters: named('clusters', 'cluster'),
    users: named('users', 'user'),
    contexts: named('contexts', 'context'),
  }
}

/** Deeper nesting is treated as an attack, because the parser is recursive. */
const MAX_DEPTH = 64

function parseYaml(text: string, maxAliases: number): Fields {
  if (isTooDeep(text)) throw new ConfigError('NOT_YAML', `kubeconfig is nested deeper than ${MAX_DEPTH} levels`)
  const lines = new LineCounter()
  let value: unknown
  try {
    const document = parseDocument(text, { prettyErrors: false, lineCounter: lines })
    const [error] = document.errors
    if (error !== undefined) {
      const { line, col } = lines.linePos(error.pos[0])
      throw new ConfigError('NOT_YAML', `kubeconfig is not valid YAML: ${error.code} at line ${line}, column ${col}`)
    }
    if (!isMap(document.contents)) throw new ConfigError('NOT_YAML', 'kubeconfig is not a YAML mapping')
    value = document.toJS({ mapAsMap: true, maxAliasCount: maxAliases })
  } catch (error) {
    if (error instanceof ConfigError) throw error
    const reason = error instanceof ReferenceError ? 'too many or unresolved aliases' : 'it cannot be parsed'
    throw new ConfigError('NOT_YAML', `kubeconfig is not usable YAML: ${reason}`)
  }
  if (!(value instanceof Map)) throw new ConfigError('NOT_YAML', 'kubeconfig is not a YAML mapping')
  return value
}

/** An upper bound of the depth: counts opening brackets of flow style and dashes or indentation of block style. */
function isTooDeep(text: string): boolean {
  let depth = 0
  let dashes = 0
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === 0x5b || code === 0x7b) depth++
    else if (code === 0x5d || code === 0x7d) depth--
    else if (code === 0x0a) dashes = 0
    else if ((code === 0x2d || code === 0x3f || code === 0x3a) && text.charCodeAt(index + 1) === 0x20) dashes++
    if (depth > MAX_DEPTH || dashes > MAX_DEPTH) return true
  }
  return false
}

function readEntries(
  fields: Fields,
  key: string,
  inner: string,
  maxEntries: number,
  uniqueNames: boolean,
): ReadonlyMap<string, Fields> {
  const list = fields.get(key)
  if (list === undefined || list === null) return new Map()
  if (!Array.isArray(list)) throw new ConfigError('WRONG_TYPE', `kubeconfig: ${key} must be a list`)
  if (list.length > maxEntries) {
    throw new ConfigError('TOO_LARGE', `kubeconfig: ${key} has ${list.length} entries; the limit is ${maxEntries}`)
  }
  const found = new Map<string, Fields>()
  for (const [index, entry] of list.entries()) {
    const where = `${key}[${index}]`
    if (!(entry instanceof Map)) throw new ConfigError('WRONG_TYPE', `kubeconfig: ${where} must be a mapping`)
    const name = textField(entry, 'name', where)
    if (name === undefined) throw new ConfigError('WRONG_TYPE', `kubeconfig: ${where} has no name`)
    if (found.has(name)) {
      if (uniqueNames) throw new ConfigError('DUPLICATE', `kubeconfig: ${key} has two entries of one name (${where})`)
      continue
    }
    found.set(name, mappingField(entry, inner, where) ?? new Map())
  }
  return found
}

/** A string, or undefined when absent, null or empty. */
export function textField(fields: Fields, key: string, where: string): string | undefined {
  const value = fields.get(key)
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value !== 'string') throw new ConfigError('WRONG_TYPE', `kubeconfig: ${key} of ${where} must be a string`)
  return value
}

export function booleanField(fields: Fields, key: string, where: string): boolean {
  const value = fields.get(key)
  if (value === undefined || value === null) return false
  if (typeof value !== 'boolean')
    throw new ConfigError('WRONG_TYPE', `kubeconfig: ${key} of ${where} must be a boolean`)
  return value
}

export function mappingField(fields: Fields, key: string, where: string): Fields | undefined {
  const value = fields.get(key)
  if (value === undefined || value === null) return undefined
  if (!(value instanceof Map)) throw new ConfigError('WRONG_TYPE', `kubeconfig: ${key} of ${where} must be a mapping`)
  return value
}

export function textListField(fields: Fields, key: string, where: string): string[] | undefined {
  const value = fields.get(key)
  if (value === undefined || value === null) return undefined
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) {
    throw new ConfigError('WRONG_TYPE', `kubeconfig: ${key} of ${where} must be a list of strings`)
  }
  return value
}

/** Base64 of PEM text, as in `*-data` fields. */
export function pemField(fields: Fields, key: string, where: string): string | undefined {
  const value = textField(fields, key, where)
  if (value === undefined) return undefined
  // Two linear passes: one expression for both would backtrack on long runs of blanks.
  const compact = value.replaceAll(/\s/g, '')
  const decoded = /^[A-Za-z0-9+/]*={0,2}$/.test(compact) ? Buffer.from(compact, 'base64').toString('latin1') : ''
  if (!decoded.includes('-----BEGIN ')) {
    throw new ConfigError('BAD_DATA', `kubeconfig: ${key} of ${where} is not base64 of PEM text`)
  }
  return decoded
}

/** Contexts that a message names. */
const MAX_NAMED = 10

/** The entry referenced by a context, and its quoted name for messages. */
export function selectContext(
  config: Kubeconfig,
  wanted?: string,
): { name: string; context: Fields; cluster: Fields; user: Fields } {
  const name = wanted ?? config.currentContext
  if (name === undefined) {
    throw new ConfigError('NO_CONTEXT', 'kubeconfig has no current-context; set one or name a context')
  }
  const context = config.contexts.get(name)
  if (context === undefined) {
    const others = [...config.contexts.keys()]
    const more = others.length > MAX_NAMED ? ` and ${others.length - MAX_NAMED} more` : ''
    const named = others.length === 0 ? 'none' : `${others.slice(0, MAX_NAMED).map(quote).join(', ')}${more}`
    throw new ConfigError('NO_CONTEXT', `kubeconfig has no context ${quote(name)}; it has ${named}`)
  }
  const where = `context ${quote(name)}`
  const clusterName = textField(context, 'cluster', where)
  const cluster = clusterName === undefined ? undefined : config.clusters.get(clusterName)
  if (cluster === undefined) {
    throw new ConfigError(
      'NO_CLUSTER',
      `kubeconfig: ${where} names cluster ${quote(clusterName ?? '')}, which is not there`,
    )
  }
  const userName = textField(context, 'user', where)
  const user = userName === undefined ? new Map() : config.users.get(userName)
  if (user === undefined) {
    throw new ConfigError('NO_USER', `kubeconfig: ${where} names user ${quote(userName ?? '')}, which is not there`)
  }
  return { name, context, cluster, user }
}

/** Short and printable: control and non-ASCII characters are escaped. */
export function quote(value: string): string {
  const short = value.length > 60 ? `${value.slice(0, 60)}…` : value
  return JSON.stringify(short).replaceAll(
    /[^ -~…]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
