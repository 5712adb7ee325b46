/**
 * Conditions of thousands of objects have the same types, reasons, messages and times, and a parser makes a copy of each text for
 * each object: the copies in a cache are replaced by one that all share.
 */
import type { Obj } from '../object/object.ts'

/** Texts of which many objects have one of their own must not fill the memory. */
const MAX_TEXTS = 5_000
/** UTF-16 units; longer ones name their object. */
const MAX_LENGTH = 256

let texts = new Map<string, string>()

/** Replaces texts of the conditions in the status by equal ones. Frozen objects stay as they are. */
export function shareTexts(object: Obj): void {
  const { status } = object as Obj & { readonly status?: { readonly conditions?: unknown } | null }
  const conditions = status?.conditions
  if (!Array.isArray(conditions)) return
  for (const condition of conditions as readonly unknown[]) {
    if (typeof condition !== 'object' || condition === null || Object.isFrozen(condition)) continue
    const fields = condition as Record<'type' | 'reason' | 'message' | 'lastTransitionTime', unknown>
    if (typeof fields.type === 'string') fields.type = shared(fields.type)
    if (typeof fields.reason === 'string') fields.reason = shared(fields.reason)
    if (typeof fields.message === 'string') fields.message = shared(fields.message)
    if (typeof fields.lastTransitionTime === 'string') fields.lastTransitionTime = shared(fields.lastTransitionTime)
  }
}

function shared(text: string): string {
  if (text.length > MAX_LENGTH) return text
  const known = texts.get(text)
  if (known !== undefined) return known
  if (texts.size >= MAX_TEXTS) texts = new Map()
  texts.set(text, text)
  return text
}
