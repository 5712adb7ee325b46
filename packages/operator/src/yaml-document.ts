/** One YAML document from a file or flag. */
import { parseDocument } from 'yaml'

/**
 * Throws an error with a message of one line, which does not repeat the text: it may have a password. A tag that is not YAML's is
 * an error: `!!js/function x` would be the text `x`.
 */
export function parseYaml(text: string): unknown {
  const document = parseDocument(text, { logLevel: 'error' })
  const [fault] = [...document.errors, ...document.warnings]
  if (fault?.code === 'MULTIPLE_DOCS') throw new Error('has several documents, separated by ---; keep one')
  if (fault !== undefined) throw new Error(fault.message.split('\n', 1)[0]?.replace(/:$/, ''))
  try {
    return document.toJS({ maxAliasCount: 0 }) as unknown
  } catch (cause) {
    if (!(cause instanceof ReferenceError)) throw cause
    throw new Error('aliases (*name) are not accepted; write their values out', { cause })
  }
}
