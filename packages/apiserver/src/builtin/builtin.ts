/**
 * The built-in kinds: what discovery, storage, patching and field ownership need of them.
 *
 * Parsing this list costs one short table; the schema of a kind is built on first use.
 */
import type { Schema } from '../schema/model.ts'
import { schemaOfType } from './builtin-schema.ts'
import { KINDS } from './tables/kinds.ts'

export interface BuiltinKind {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly singular: string
  readonly namespaced: boolean
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  /** e.g. `['scale', 'status']`, in the order of discovery. */
  readonly subresources: readonly string[]
  readonly verbs: readonly string[]
  /** Name of the type in the tables, e.g. `core.v1.Service`. */
  readonly typeName: string
  readonly schema: Schema
}

const ALL_VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']

function parseKind(line: string): BuiltinKind {
  const [
    group = '',
    version = '',
    kind = '',
    plural = '',
    singular = '',
    scope,
    shortNames,
    categories,
    subresources,
    verbs,
    pkg,
  ] = line.split(' ')
  const typeName = `${pkg}.${kind}`
  return {
    group: group === '-' ? '' : group,
    version,
    kind,
    plural,
    singular,
    namespaced: scope === 'N',
    shortNames: names(shortNames),
    categories: names(categories),
    subresources: names(subresources),
    verbs: verbs === '*' ? ALL_VERBS : names(verbs),
    typeName,
    get schema() {
      return schemaOfType(typeName)
    },
  }
}

function names(text: string | undefined): string[] {
  return text === undefined || text === '-' ? [] : text.split(',')
}

export const BUILTIN_KINDS: readonly BuiltinKind[] = KINDS.trim().split('\n').map(parseKind)

const index = new Map(BUILTIN_KINDS.map((kind) => [`${kind.group}/${kind.version}/${kind.kind}`, kind]))

export function findBuiltinKind(group: string, version: string, kind: string): BuiltinKind | undefined {
  return index.get(`${group}/${version}/${kind}`)
}

/** Kinds that occur in requests but are not resources, by apiVersion and kind. */
const MESSAGE_TYPES: ReadonlyMap<string, string> = new Map([
  ['v1/Binding', 'core.v1.Binding'],
  ['policy/v1/Eviction', 'policy.v1.Eviction'],
  ['autoscaling/v1/Scale', 'autoscaling.v1.Scale'],
  ['authentication.k8s.io/v1/TokenRequest', 'authentication.v1.TokenRequest'],
])

/** Options kinds are the same in every group: `DeleteOptions` of `apps/v1` is `DeleteOptions` of `v1`. */
const OPTION_TYPES: ReadonlyMap<string, string> = new Map(
  ['DeleteOptions', 'CreateOptions', 'UpdateOptions', 'PatchOptions', 'Status'].map((kind) => [
    kind,
    `meta.v1.${kind}`,
  ]),
)

/** The table's type for a kind on the wire; undefined when there is none. */
export function findTypeName(apiVersion: string, kind: string): string | undefined {
  const slash = apiVersion.indexOf('/')
  const group = slash < 0 ? '' : apiVersion.slice(0, slash)
  return (
    findBuiltinKind(group, apiVersion.slice(slash + 1), kind)?.typeName ??
    MESSAGE_TYPES.get(`${apiVersion}/${kind}`) ??
    OPTION_TYPES.get(kind)
  )
}
