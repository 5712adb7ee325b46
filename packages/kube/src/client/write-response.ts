/**
 * The response to a write whose caller needs no managedFields: they are removed before parsing, and a cache that keeps
 * those of its own manager reads them from the text.
 */
import { isAscii } from 'node:buffer'
import { findManagedFields, readOwnFields, type OwnFields } from '../decode/managed-fields.ts'

/** Reads one manager's entries, given its name as JSON text; undefined if it has none. */
export type ReadOwnFields = (quotedManager: Buffer) => OwnFields | undefined

interface Written {
  readonly value: unknown
  /** Undefined if the managedFields are in the value. */
  readonly readOwnFields: ReadOwnFields | undefined
}

/** Parses with managedFields. Throws SyntaxError if the body is not JSON. */
export function readWhole(body: Buffer): Written {
  return { value: JSON.parse(body.toString('utf8')), readOwnFields: undefined }
}

/** Throws SyntaxError if the body is not JSON. */
export function readWritten(body: Buffer): Written & { readonly readOwnFields: ReadOwnFields } {
  const encoding = isAscii(body) ? 'latin1' : 'utf8'
  const cut = findManagedFields(body, 0, body.length)
  if (cut === undefined) return { value: JSON.parse(body.toString(encoding)), readOwnFields: () => undefined }
  const text = body.toString(encoding, 0, cut.from) + body.toString(encoding, cut.to)
  return { value: JSON.parse(text), readOwnFields: (quotedManager) => readOwnFields(body, cut, quotedManager) }
}
