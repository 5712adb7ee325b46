/**
 * Logs: one JSON object per line on stderr, by pino. A constant message plus fields, never formatted text:
 * `log.info({ host }, 'record published')`.
 *
 * A warning with an `error` that repeats is logged at once, and then once a minute, later less often, with the number of
 * repetitions (`repeated`): with the same message and fields, whatever their `kind`, since one cause often concerns many kinds.
 *
 * Invariant: a credential is wrapped in a `Secret`, whose value is returned only by `reveal()`.
 */
import { inspect } from 'node:util'
import { pino, symbols, type DestinationStream, type LogFn, type Logger } from 'pino'
import { type Clock, systemClock } from './clock.ts'

export type { Logger } from 'pino'

export type LogLevel = 'silent' | 'error' | 'warn' | 'info' | 'debug' | 'trace'

export interface LogOptions {
  /** An object's `current` may change later, for every logger that comes from this one. @default info */
  level?: LogLevel | { readonly current: LogLevel }
  /** @default stderr, written synchronously, so that the last lines before an exit are not lost */
  destination?: DestinationStream
  /** Of repetitions. */
  clock?: Clock
}

export function createLogger({ level = 'info', destination, clock = systemClock }: LogOptions = {}): Logger {
  const repeated = new RepeatedWarnings(clock)
  const least = (): number => (typeof level === 'string' ? 0 : severityOf(level.current))
  return pino(
    {
      // A child has its own copy of the level of its parent.
      level: typeof level === 'string' ? level : 'trace',
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: {
        logMethod(args, method, severity) {
          if (severity >= least() && !(severity === WARN && repeated.isRepeated(this, args, method)))
            method.apply(this, args)
        },
      },
    },
    destination ?? pino.destination({ dest: 2, sync: true }),
  )
}

const WARN = severityOf('warn')

function severityOf(level: LogLevel): number {
  return pino.levels.values[level] ?? Infinity
}

interface Repetition {
  count: number
  /** Until the count is logged, ms. */
  windowMs: number
}

const FIRST_WINDOW_MS = 60_000
const LAST_WINDOW_MS = 60 * 60_000
/** More different ones at a time are logged each. */
const MAX_REPETITIONS = 1_000

/** Warnings that were logged less than a window ago. A window without a repetition ends it; the next one is twice as long. */
class RepeatedWarnings {
  readonly #clock: Clock
  readonly #known = new Map<string, Repetition>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  isRepeated(log: Logger, args: Parameters<LogFn>, method: LogFn): boolean {
    const [fields, message] = args as readonly unknown[]
    if (typeof fields !== 'object' || fields === null || !('error' in fields) || typeof message !== 'string')
      return false
    const { kind: _, ...same } = fields as Record<string, unknown>
    const about = (log as unknown as Record<symbol, string>)[symbols.chindingsSym]
    const id = JSON.stringify([message, about, same])
    const known = this.#known.get(id)
    if (known !== undefined) {
      known.count++
      return true
    }
    if (this.#known.size >= MAX_REPETITIONS) return false
    const repetition: Repetition = { count: 0, windowMs: FIRST_WINDOW_MS }
    this.#known.set(id, repetition)
    const close = (): void => {
      const { count } = repetition
      if (count === 0) return void this.#known.delete(id)
      method.apply(log, [{ ...same, repeated: count }, message] as unknown as Parameters<LogFn>)
      repetition.count = 0
      repetition.windowMs = Math.min(repetition.windowMs * 2, LAST_WINDOW_MS)
      this.#clock.after(repetition.windowMs, close)
    }
    this.#clock.after(repetition.windowMs, close)
    return false
  }
}

const REDACTED = '[redacted]'

/** A value that does not appear in log lines, errors, JSON text or debugger output. */
export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  /** The only access to the value; search for it to find where secrets are used. */
  reveal(): string {
    return this.#value
  }

  toString(): string {
    return REDACTED
  }

  toJSON(): string {
    return REDACTED
  }

  [inspect.custom](): string {
    return REDACTED
  }
}
