/** What the main thread and the prober's worker thread send each other. Deltas only: cloning ten thousand targets takes 50 ms. */
import type { GuardOptions } from '@seamark/kube'
import type { HealthReport, TargetUpdate } from './prober.ts'

export interface WorkerSettings {
  readonly guard: GuardOptions
  /** DNS server for the names of targets, `ADDRESS:PORT`. @default those of the machine */
  readonly resolver?: string
  readonly maxInFlight?: number
  /** @default 30 s */
  readonly ejectionMs?: number
  /** One Int32: the worker counts it up every `HEARTBEAT_MS`. Shared memory, so a busy main thread cannot mistake its own delay for the worker's. */
  readonly heartbeat: SharedArrayBuffer
}

export const HEARTBEAT_MS = 500

export interface ToWorker {
  readonly upsert: readonly TargetUpdate[]
  readonly remove: readonly string[]
}

export type FromWorker = readonly HealthReport[]
