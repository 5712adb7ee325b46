/**
 * Whether a source has the served class. contour-plus' rule: every class that is given, by either annotation or by the
 * spec, must equal the configured one, and at least one must be given.
 */
import { CLASS_ANNOTATIONS } from '@seamark/dialects'
import { annotation } from '../annotation-keys.ts'
import type { Source } from './source.ts'

export function isOfClass(source: Pick<Source, 'annotations' | 'className'>, desired: string): boolean {
  if (desired === '') return true
  const given = [...CLASS_ANNOTATIONS.map((key) => annotation(source.annotations, key) ?? ''), source.className]
  const named = given.filter((name) => name !== '')
  return named.length > 0 && named.every((name) => name === desired)
}
