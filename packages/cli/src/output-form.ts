/** `-o`: the forms of a command's output, with kubectl's names. `json` and `yaml` print the same value. */
import type { Command } from 'commander'
import { stringify } from 'yaml'

export function addOutputFlag(command: Command, forms: readonly string[], fallback: string): Command {
  return command.addOption(
    command
      .createOption('-o, --output <form>', 'form of the output')
      .choices([...forms])
      .default(fallback),
  )
}

export function printValue(form: 'json' | 'yaml', value: unknown): string {
  return form === 'json' ? `${JSON.stringify(value, undefined, 2)}\n` : stringify(value)
}

/** Columns padded to their widest cell, two spaces apart, as kubectl prints them; no heading without rows. */
export function printTable(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return ''
  const all = [heading, ...rows]
  const widths = heading.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)))
  return all
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}
