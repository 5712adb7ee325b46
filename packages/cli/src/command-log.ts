/** The logger of the verbs that log: to stderr of the command. */
import { createLogger, type Logger, type LogLevel } from '@seamark/kube'
import type { Io } from './command.ts'

export function openLog({ stderr }: Pick<Io, 'stderr'>, level: LogLevel | { readonly current: LogLevel }): Logger {
  // The stream of the process may lose the last lines before an exit; the default destination does not.
  return stderr === process.stderr ? createLogger({ level }) : createLogger({ level, destination: stderr })
}
