/**
 * Logs: one JSON object per line on stderr, by pino. A constant message plus fields, never formatted text:
 * `log.info({ host }, 'record published')`.
 *
 * Invariant: a credential is wrapped in a `Secret`, whose value is returned only by `reveal()`.
 */
import { inspect } from 'node:util'
import { pino, type DestinationStream, type Logger } from 'pino'

export type { Logger } from 'pino'

export type LogLevel = 'silent' | 'error' | 'warn' | 'info' | 'debug' | 'trace'

export interface LogOptions {
  /** @default info */
  level?: LogLevel
  /** @default stderr, written synchronously, so that the last lines before an exit are not lost */
  destination?: DestinationStream
}

export function createLogger({ level = 'info', destination }: LogOptions = {}): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination ?? pino.destination({ dest: 2, sync: true }),
  )
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
