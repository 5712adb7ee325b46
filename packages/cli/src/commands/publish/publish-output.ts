/** What publish's commands print: one object a paragraph, one changed field a line. */
import type { Difference, DryRunReport } from '@seamark/operator'

export function printChanges({ changes, findings }: DryRunReport): string {
  const objects = changes.map(
    ({ verb, object, lines }) => `${verb} ${object}\n${lines.map((line) => `  ${line}\n`).join('')}`,
  )
  const notes = findings.map(({ source, reason, message }) => `${source}: ${reason}: ${message}\n`)
  return [...objects, ...notes].join('')
}

export function printDifference({ source, object, lines }: Difference): string {
  return `${object} of ${source} differs\n${lines.map((line) => `  ${line}\n`).join('')}`
}
