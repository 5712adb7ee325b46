/** A Markdown table as oxfmt formats it, so that a generated page is also a formatted one. */
export function markdownTable(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const cell = (text: string): string => text.replaceAll('|', String.raw`\|`)
  const all = [heading, ...rows].map((row) => row.map(cell))
  const widths = heading.map((_, column) => Math.max(...all.map((row) => widthOf(row[column] ?? ''))))
  const pad = (text: string, column: number): string => text + ' '.repeat((widths[column] ?? 0) - widthOf(text))
  const line = (row: readonly string[]): string => `| ${row.map((text, column) => pad(text, column)).join(' | ')} |`
  const [first = [], ...rest] = all
  return [line(first), `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...rest.map(line), ''].join('\n')
}

/** In characters; there are no combining ones in our texts. */
function widthOf(text: string): number {
  return Array.from(text).length
}
