/**
 * Expected output of a command as text a person can read: what varies from run to run is a placeholder.
 *
 * `<age>` `3s`, `2m10s` · `<time>` a timestamp · `<uid>` · `<n>` digits · `<ip>` an IPv4 address · `<word>` no spaces ·
 * `<any>` rest of the line · a line `<more>` any lines or none. Runs of blanks match runs of blanks, because column widths
 * depend on what varies. Everything else is literal.
 */
const placeholders = new Map<string, string>([
  ['<age>', '(?:\\d+[smhd]){1,2}'],
  ['<time>', '"?\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ"?'],
  ['<uid>', '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'],
  ['<n>', '\\d+'],
  ['<ip>', '\\d+\\.\\d+\\.\\d+\\.\\d+'],
  ['<word>', '\\S+'],
  ['<any>', '[^\\n]*'],
])

const token = /<(?:age|time|uid|n|ip|word|any)>|[ \t]+|[^<\s]+|</g

export function patternOf(expected: string): RegExp {
  const source = tidy(expected).split('\n').map(sourceOfLine).join('\\n')
  const loose = source.replaceAll('\\n<more>', '(?:\\n[^\\n]*)*?').replace(/^<more>(?:\\n)?/, '(?:[^\\n]*\\n?)*?')
  return new RegExp(`^${loose}$`)
}

/** Without trailing blanks of lines and blank lines at either end: no command's meaning is in those. */
export function tidy(text: string): string {
  return text.replaceAll(/[ \t]+$/gm, '').replaceAll(/^\n+|\n+$/g, '')
}

function sourceOfLine(line: string): string {
  return line.replaceAll(token, (part) => {
    const placeholder = placeholders.get(part)
    if (placeholder !== undefined) return placeholder
    return /^[ \t]/.test(part) ? '[ \\t]+' : part.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&')
  })
}
