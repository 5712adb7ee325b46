/**
 * Whether a source has the served class. contour-plus' rule: every class that is given, by either annotation or by the
 * spec, must equal the configured one, and at least one must be given.
 */
import { annotation, CLASS_KEYS } from '../annotation-keys.ts'
import type { Source } from './source.ts'

function classesOf(source: Pick<Source, 'annotations' | 'className'>): string[] {
  const given = [...CLASS_KEYS.map((key) => annotation(source.annotations, key) ?? ''), source.className]
  return given.filter((name) => name !== '')
}

export function isOfClass(source: Pick<Source, 'annotations' | 'className'>, desired: string): boolean {
  if (desired === '') return true
  const given = classesOf(source)
  return given.length > 0 && given.every((name) => name === desired)
}

/** The class that selects the load-balancer Service: Contour's own precedence. */
export function effectiveClass(source: Pick<Source, 'annotations' | 'className'>): string {
  const [kubernetes, contour] = CLASS_KEYS.map((key) => annotation(source.annotations, key) ?? '')
  return contour || kubernetes || source.className
}
