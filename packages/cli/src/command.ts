/**
 * The interface between main.ts and a command. A command is one file under commands/ that exports `build(io)`; main.ts loads it
 * only when it is called, so that `seamark dig` does not load the API server.
 */
import type { Command } from 'commander'

/** Exit codes (docs/cli.md). */
export const EXIT = { ok: 0, error: 1, changes: 2, refused: 3, timeout: 4, usage: 5 } as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

export interface Io {
  readonly stdout: NodeJS.WritableStream
  readonly stderr: NodeJS.WritableStream
  readonly env: NodeJS.ProcessEnv
  /** Aborted by the first SIGINT or SIGTERM. A server stops within 5 s and its action then returns. */
  readonly signal: AbortSignal
  /**
   * Aborted when the reader of stdout has closed it (`| head`). Output is then discarded; a command whose only purpose is
   * to print until it is interrupted stops, every other one finishes its work. @default never aborted
   */
  readonly outputClosed?: AbortSignal
  /** Sets the exit code; the process ends when the action's promise settles. @default 0 */
  exit(code: ExitCode): void
}

export type Build = (io: Io) => Command

/**
 * A failure that only the command can explain: main prints `error: message` on stderr and exits with `code`. Errors of other
 * packages and of the operating system pass as they are, or as `cause`: fault.ts knows what to do about each.
 */
export class CommandError extends Error {
  readonly code: ExitCode
  constructor(message: string, code: ExitCode = EXIT.error, options?: ErrorOptions) {
    super(message, options)
    this.name = 'CommandError'
    this.code = code
  }
}

/** The signal for a command that prints until it is interrupted. */
export function untilInterrupted({ signal, outputClosed }: Io): AbortSignal {
  return outputClosed === undefined ? signal : AbortSignal.any([signal, outputClosed])
}
