/**
 * YAML documents to JSON values and back, as Go's decoder reads them. Loaded by the first request that needs it.
 *
 * The library is imported statically: a dynamic import of this module works in the bundle too, where a dynamic import of a
 * CommonJS package has no named exports.
 */
import { type Document, parseDocument, stringify } from 'yaml'

/** Aliases that one document may resolve: limits the expansion of a small document into a huge value. */
export const MAX_YAML_ALIASES = 100

/** Throws SyntaxError with the message of kube-apiserver's decoder. */
export function parseYamlDocument(text: string): unknown {
  // YAML 1.1, as Go's decoder (`on`, `y` are true), except that timestamps remain strings.
  const document = readDocument(text)
  const problem = document.errors[0]
  if (problem !== undefined)
    throw new SyntaxError(`yaml: line ${problem.linePos?.[0].line ?? 1}: ${problem.message.split('\n')[0]}`)
  try {
    return JSON.parse(JSON.stringify(document.toJS({ maxAliasCount: MAX_YAML_ALIASES }) ?? null)) as unknown
  } catch (error) {
    if (error instanceof RangeError) throw new SyntaxError('yaml: exceeded max depth')
    const anchor = /^Unresolved alias .*: (.*)$/.exec(error instanceof Error ? error.message : '')?.[1]
    throw new SyntaxError(
      anchor === undefined
        ? 'yaml: document contains excessive aliasing'
        : `yaml: unknown anchor '${anchor}' referenced`,
    )
  }
}

function readDocument(text: string): Document {
  try {
    return parseDocument(text, {
      version: '1.1',
      uniqueKeys: false,
      logLevel: 'silent',
      customTags: (tags) => tags.filter((tag) => typeof tag === 'string' || tag.tag !== 'tag:yaml.org,2002:timestamp'),
    })
  } catch (error) {
    // The parser recurses over nested collections until the stack overflows.
    if (error instanceof RangeError) throw new SyntaxError('yaml: exceeded max depth')
    throw error
  }
}

export function writeYamlDocument(value: unknown): string {
  return stringify(value, {
    version: '1.1',
    lineWidth: 0,
    aliasDuplicateObjects: false,
    sortMapEntries: true,
    indentSeq: false,
  })
}
