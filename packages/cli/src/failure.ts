/**
 * How a failed command ends: one line on stderr. The verbs that log (`run`, `contour-plus`) write it as a JSON log line
 * unless stderr is a terminal, so that a log collector parses the last line of a crashed pod like every other.
 */
import type { Command } from 'commander'
import type { Io } from './command.ts'

/** `stacks` only with `--debug`. */
export type FailureWriter = (message: string, stacks?: string) => void

export async function failureWriter(
  verb: { name: string; isLogged: boolean },
  stderr: NodeJS.WritableStream,
): Promise<FailureWriter> {
  const isTerminal = (stderr as { isTTY?: boolean }).isTTY === true
  if (!verb.isLogged || isTerminal)
    return (message, stacks) => {
      const text = stacks === undefined ? message : `${message}\n${stacks}`
      stderr.write(`error: ${text.replaceAll('\n', '\n  ')}\n`)
    }
  const { createLogger } = await import('@seamark/kube')
  const log = createLogger({ level: 'error', destination: stderr })
  return (error, stacks) =>
    log.fatal({ command: verb.name, error, ...(stacks !== undefined && { stacks }) }, 'command failed')
}

/** Exits by exception, and output and errors through our writers, for the command and every subcommand. */
export function redirectOutput(
  command: Command,
  { stdout, stderr }: Pick<Io, 'stdout' | 'stderr'>,
  fail: FailureWriter,
): void {
  command.exitOverride().configureOutput({
    writeOut: (text) => void stdout.write(text),
    // Help that commander prints because something is missing.
    writeErr: (text) => void stderr.write(text),
    outputError: (text) =>
      fail(
        text
          .trim()
          .replace(/^error: /, '')
          .replaceAll('\n', ' '),
      ),
  })
  for (const subcommand of command.commands) redirectOutput(subcommand, { stdout, stderr }, fail)
}
