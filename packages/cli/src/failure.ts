/**
 * How a failed command ends: one line on stderr. The verbs that log (`run`, `contour-plus`) write it as a JSON log line
 * unless stderr is a terminal, so that a log collector parses the last line of a crashed pod like every other.
 */
import type { Command } from 'commander'

export type FailureWriter = (message: string) => void

export async function failureWriter(
  verb: { name: string; isLogged?: boolean },
  stderr: NodeJS.WritableStream,
): Promise<FailureWriter> {
  const isTerminal = (stderr as { isTTY?: boolean }).isTTY === true
  if (verb.isLogged !== true || isTerminal)
    return (message) => void stderr.write(`error: ${message.replaceAll('\n', '\n  ')}\n`)
  const { createLogger } = await import('@seamark/kube')
  const log = createLogger({ level: 'error', destination: stderr })
  return (error) => log.fatal({ command: verb.name, error }, 'command failed')
}

/** Exits by exception, and output and errors through our writers, for the command and every subcommand. */
export function redirectOutput(command: Command, stdout: NodeJS.WritableStream, fail: FailureWriter): void {
  command.exitOverride().configureOutput({
    writeOut: (text) => void stdout.write(text),
    // Help that commander prints because something is missing.
    writeErr: (text) => void process.stderr.write(text),
    outputError: (text) =>
      fail(
        text
          .trim()
          .replace(/^error: /, '')
          .replaceAll('\n', ' '),
      ),
  })
  for (const subcommand of command.commands) redirectOutput(subcommand, stdout, fail)
}
