/**
 * Logs: one JSON object a line on stderr, by pino. A constant message plus fields, never formatted text:
 * `log.info({ host }, 'record published')`.
 *
 * Invariant: a credential travels as a `Secret`, which shows itself to nobody who did not ask by `reveal()`.
 */
import { inspect } from 'node:util'
import { pino, type DestinationStream, type Logger } from 'pino'

export type { Logger } from 'pino'

export type LogLevel = 'silent' | 'error' | 'warn' | 'info' | 'debug' | 'trace'

export interface LogOptions {
  /** @default info */
  level?: LogLevel
  /** @default stderr, written synchronously: the last lines before an exit are the ones somebody will need */
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

const redacted = '[redacted]'

/** A value that no log line, error, JSON text or debugger output shows. */
export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  /** The one way to the value; grep for it to see where secrets go. */
  reveal(): string {
    return this.#value
  }

  toString(): string {
    return redacted
  }

  toJSON(): string {
    return redacted
  }

  [inspect.custom](): string {
    return redacted
  }
}
