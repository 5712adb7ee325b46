/**
 * Content negotiation: the representation that an Accept header selects and the format that a Content-Type declares.
 *
 * Responses are JSON or YAML. A client that accepts protobuf and JSON gets JSON (every known client accepts both); one
 * that accepts only protobuf gets 406.
 */
import { notAcceptable } from './status.ts'

export interface MediaClause {
  readonly type: string
  readonly parameters: ReadonlyMap<string, string>
}

export interface Representation {
  readonly format: 'json' | 'yaml'
  /** Representation of the object; undefined is the object itself. */
  readonly as: 'Table' | 'PartialObjectMetadata' | 'PartialObjectMetadataList' | undefined
  /** Version of meta.k8s.io of a Table or PartialObjectMetadata. */
  readonly version: string
}

const plainJson: Representation = { format: 'json', as: undefined, version: 'v1' }

export const builtinMediaTypes = [
  'application/json',
  'application/yaml',
  'application/vnd.kubernetes.protobuf',
] as const
export const customMediaTypes = ['application/json', 'application/yaml'] as const

const parsed = new Map<string, readonly MediaClause[]>()

/** Clauses in order of preference. Parsed headers are cached: clients send few distinct ones. */
export function parseAccept(header: string): readonly MediaClause[] {
  const known = parsed.get(header)
  if (known !== undefined) return known
  const clauses = header.split(',').map((clause) => {
    const [type = '', ...rest] = clause.split(';').map((part) => part.trim())
    const parameters = new Map(
      rest.map((parameter): [string, string] => {
        const equals = parameter.indexOf('=')
        return equals < 0 ? [parameter, ''] : [parameter.slice(0, equals).trim(), parameter.slice(equals + 1).trim()]
      }),
    )
    return { type: type.toLowerCase(), parameters }
  })
  const quality = (clause: MediaClause): number => Number(clause.parameters.get('q') ?? '1')
  clauses.sort((a, b) => quality(b) - quality(a))
  // Limits the memory used by distinct headers.
  if (parsed.size > 256) parsed.clear()
  parsed.set(header, clauses)
  return clauses
}

function formatOf(type: string): 'json' | 'yaml' | undefined {
  switch (type) {
    case 'application/json':
    case '*/*':
    case 'application/*':
      return 'json'
    case 'application/yaml':
      return 'yaml'
    default:
      return undefined
  }
}

/** The first clause that can be served. */
export function negotiate(accept: string | undefined, offered: readonly string[] = builtinMediaTypes): Representation {
  if (accept === undefined || accept === '' || accept === 'application/json') return plainJson
  for (const clause of parseAccept(accept)) {
    const format = formatOf(clause.type)
    if (format === undefined) continue
    const as = clause.parameters.get('as')
    if (as === undefined) return format === 'json' ? plainJson : { format, as: undefined, version: 'v1' }
    const version = clause.parameters.get('v') ?? ''
    if (clause.parameters.get('g') !== 'meta.k8s.io' || (version !== 'v1' && version !== 'v1beta1')) continue
    if (as === 'Table' || as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList')
      return { format, as, version }
  }
  throw notAcceptable(offered)
}

/** The media type of a request body without parameters; JSON when absent. */
export function bodyMediaType(contentType: string | undefined): string {
  const type = (contentType ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  return type === '' ? 'application/json' : type
}

/** One key per distinct representation, for caches of encoded frames. */
export function representationKey(representation: Representation): string {
  return `${representation.format}:${representation.as ?? ''}:${representation.version}`
}
