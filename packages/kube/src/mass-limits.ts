/**
 * The limits of changes at once: more than `count` and more than `share` of what there is are a mass change. What happens then is
 * decided where they are used: a set that was read is read again before so much is removed from a cache. Pure.
 */
export interface MassLimits {
  readonly count: number
  /** In [0, 1]. */
  readonly share: number
}

export const DEFAULT_MASS_LIMITS: MassLimits = { count: 5, share: 0.3 }

export function isMassChange(changes: number, total: number, { count, share }: MassLimits): boolean {
  return changes > count && changes > total * share
}
