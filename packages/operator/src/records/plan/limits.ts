/** The limits of the guards (INV-3); each can be configured per zone. */
export interface Limits {
  /** Names a zone may lose per window: the larger of a number and a share of the owned names. */
  readonly deleteFloor: number
  readonly deleteShare: number
  readonly windowMs: number
  /** A breaker opens when both a number and a share are exceeded. */
  readonly breakerFloor: number
  readonly breakerShare: number
  readonly quarantineMs: number
  /** How long a name stays assigned to a source that is gone before another source may own it. */
  readonly handoverMs: number
}

export const DEFAULT_LIMITS: Limits = {
  deleteFloor: 5,
  deleteShare: 0.1,
  windowMs: 600_000,
  breakerFloor: 5,
  breakerShare: 0.3,
  quarantineMs: 1_800_000,
  handoverMs: 60_000,
}
