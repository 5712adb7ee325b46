/** The lines of the playground: each with the seconds since the start. */
import type { Io } from '../../command.ts'

export interface Printer {
  heading(text: string): void
  /** A line with the time since the start. */
  line(text: string): void
}

export function createPrinter(stream: Io['stdout'], startedMs = Date.now()): Printer {
  const seconds = (): string => ((Date.now() - startedMs) / 1_000).toFixed(1).padStart(6)
  return {
    heading: (text) => void stream.write(`\n${text}\n`),
    line: (text) => void stream.write(`${seconds()} s  ${text}\n`),
  }
}
