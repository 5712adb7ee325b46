import { DEFAULT_MASS_LIMITS, type MassLimits } from '../../safety/mass-limits.ts'

/** The limits of the guards (INV-3). `mass` is in the configuration (`safety`), for every capability. */
export interface Limits {
  /** Names a zone may lose per window: the larger of a number and a share of the owned names. */
  readonly deleteFloor: number
  readonly deleteShare: number
  readonly windowMs: number
  /** A breaker opens when they are exceeded. */
  readonly mass: MassLimits
  readonly quarantineMs: number
  /** How long a name stays assigned to a source that is gone before another source may own it. */
  readonly handoverMs: number
}

export const DEFAULT_LIMITS: Limits = {
  deleteFloor: 5,
  deleteShare: 0.1,
  windowMs: 600_000,
  mass: DEFAULT_MASS_LIMITS,
  quarantineMs: 1_800_000,
  handoverMs: 60_000,
}
