/**
 * The answer to a write whose caller needs no managedFields: they are cut out before the parse, and a cache that keeps its
 * own manager's reads those from the text.
 */
import { isAscii } from 'node:buffer'
import { findManagedFields, readOwnFields, type OwnFields } from '../watch/managed-fields.ts'

/** Reads one manager's entries, given its name as JSON text; undefined when it has none. */
export type ReadOwnFields = (quotedManager: Buffer) => OwnFields | undefined

interface Written {
  readonly value: unknown
  /** Undefined: they are in the value. */
  readonly readOwnFields: ReadOwnFields | undefined
}

/** With its managedFields. Throws SyntaxError on what is not JSON. */
export function readWhole(body: Buffer): Written {
  return { value: JSON.parse(body.toString('utf8')), readOwnFields: undefined }
}

/** Throws SyntaxError on what is not JSON. */
export function readWritten(body: Buffer): Written & { readonly readOwnFields: ReadOwnFields } {
  const encoding = isAscii(body) ? 'latin1' : 'utf8'
  const cut = findManagedFields(body, 0, body.length)
  if (cut === undefined) return { value: JSON.parse(body.toString(encoding)), readOwnFields: () => undefined }
  const text = body.toString(encoding, 0, cut.from) + body.toString(encoding, cut.to)
  return { value: JSON.parse(text), readOwnFields: (quotedManager) => readOwnFields(body, cut, quotedManager) }
}
