/**
 * The compact table of built-in types, and its reader. A package line (`core.v1`) is followed by one line per type:
 *
 *   .ServicePort name=1s protocol=2s:"TCP" appProtocol=6s? port=3i!* targetPort=4I! nodePort=5i
 *
 * A field is `name=N`, its protobuf number, then its type and marks. Types: s string, b bool, i int32, l int64, d float,
 * y bytes, T time, M time with microseconds, D duration, Q quantity, I int or string, R free JSON, X list of strings that
 * is a message on the wire, B/A/S JSONSchemaProps or bool/array/strings, `<.Name>` or `<pkg.Name>` a type; `[` before it: a
 * list, `{`: a map by string. Marks: `?` presence counts (a pointer), `!` always written, `*` required, `~merge(key)` patch
 * strategy, `@map(keys)` `@set` `@atomic` list or map type, `:json` default (last). `^` in front: fields are inlined.
 * `@atomic` after the type's name: the type is one unit for ownership.
 *
 * Place in the flow: schemas (builtin.ts), decoding (protobuf/) and normalisation (normalize.ts) look up types by name.
 * Types are parsed on first use; importing costs only the strings.
 */
import { CORE_TYPES } from './tables/core.ts'
import { GROUP_TYPES } from './tables/groups.ts'
import { META_TYPES } from './tables/meta.ts'

export interface FieldSpec {
  name: string
  number: number
  /** Scalar code, or the full name of a type. */
  base: string
  isStruct: boolean
  container: 'none' | 'list' | 'map'
  isInline: boolean
  isPointer: boolean
  isAlways: boolean
  isRequired: boolean
  patchStrategy: string | undefined
  mergeKey: string | undefined
  listType: 'atomic' | 'set' | 'map' | undefined
  listKeys: readonly string[]
  default: unknown
}

export interface TypeSpec {
  name: string
  isAtomic: boolean
  fields: readonly FieldSpec[]
}

let lines: Map<string, string> | undefined
const types = new Map<string, TypeSpec>()

function findLine(name: string): string | undefined {
  lines ??= indexLines()
  return lines.get(name)
}

function indexLines(): Map<string, string> {
  const index = new Map<string, string>()
  for (const text of [META_TYPES, CORE_TYPES, GROUP_TYPES]) {
    let pkg = ''
    for (const line of text.split('\n')) {
      if (!line.startsWith('.')) pkg = line
      else index.set(pkg + /^\.\w+/.exec(line)![0], line)
    }
  }
  return index
}

/** By full name, e.g. `core.v1.ServicePort`. */
function findType(name: string): TypeSpec | undefined {
  let type = types.get(name)
  if (type !== undefined) return type
  const line = findLine(name)
  if (line === undefined) return undefined
  const [head = '', ...tokens] = line.split(' ').filter((token) => token !== '')
  const pkg = name.slice(0, name.lastIndexOf('.'))
  type = { name, isAtomic: head.endsWith('@atomic'), fields: tokens.map((token) => parseField(token, pkg)) }
  types.set(name, type)
  return type
}

export function getType(name: string): TypeSpec {
  const type = findType(name)
  if (type === undefined) throw new Error(`no built-in type ${name}; the tables are incomplete`)
  return type
}

const FIELD =
  /^(\^?)(\w*|\$\w+|x-[\w-]+)=(\d+)([[{]?)(?:<([\w.]+)>|(\w))(\??)(!?)(\*?)(?:~([\w+]+)(?:\((\w+)\))?)?(?:@(\w+)(?:\(([\w,]+)\))?)?(?::(.*))?$/

function parseField(token: string, pkg: string): FieldSpec {
  const match = FIELD.exec(token)
  if (match === null) throw new Error(`table field ${token} is malformed`)
  const [
    ,
    inline,
    name = '',
    number,
    container,
    ref,
    code = '',
    pointer,
    always,
    required,
    patch,
    mergeKey,
    kind,
    keys,
    fallback,
  ] = match
  return {
    name,
    number: Number(number),
    base: ref === undefined ? code : ref.startsWith('.') ? pkg + ref : ref,
    isStruct: ref !== undefined,
    container: container === '[' ? 'list' : container === '{' ? 'map' : 'none',
    isInline: inline === '^',
    isPointer: pointer === '?',
    isAlways: always === '!',
    isRequired: required === '*',
    patchStrategy: patch?.replaceAll('+', ','),
    mergeKey,
    listType: kind as FieldSpec['listType'],
    listKeys: keys?.split(',') ?? [],
    default: fallback === undefined ? undefined : JSON.parse(fallback),
  }
}

/** JSON form of the zero value of a scalar type that is always written. */
export function scalarZero(code: string): unknown {
  switch (code) {
    case 's':
      return ''
    case 'b':
      return false
    case 'i':
    case 'l':
    case 'd':
    case 'I':
      return 0
    case 'Q':
      return '0'
    case 'D':
      return '0s'
    default:
      return null
  }
}
