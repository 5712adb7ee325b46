/**
 * The limits of changes at once: more than `count` and more than `share` of what is published are a mass change. What happens
 * then is decided where they are used: held until an approval (publish, fleet, the breakers of records), or confirmed by a
 * second read (wildcard, the sources of records). Pure.
 */
export interface MassLimits {
  readonly count: number
  /** In [0, 1]. */
  readonly share: number
}

export const DEFAULT_MASS_LIMITS: MassLimits = { count: 5, share: 0.3 }

export function isMassChange(changes: number, published: number, { count, share }: MassLimits): boolean {
  return changes > count && changes > published * share
}
