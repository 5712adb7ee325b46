/**
 * Timestamps of built-in kinds as Go parses and formats them: RFC 3339, in UTC, with whole seconds; or, for fields with
 * microseconds (Lease, Event), with exactly six digits.
 */
const pattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/

/** Go's error; undefined when the text is a time. */
export function explainTime(text: string, hasMicroseconds = false): string | undefined {
  const layout = hasMicroseconds ? '2006-01-02T15:04:05.000000Z07:00' : '2006-01-02T15:04:05Z07:00'
  const parseError = (rest: string, part: string): string =>
    `parsing time ${JSON.stringify(text)} as ${JSON.stringify(layout)}: cannot parse ${JSON.stringify(rest)} as ${JSON.stringify(part)}`
  const match = pattern.exec(text)
  if (match === null || Number.isNaN(Date.parse(text))) return parseError(text, '2006')
  const [, fraction = '', zone = ''] = match
  return hasMicroseconds && fraction.length !== 7 ? parseError(`${fraction}${zone}`, '.000000') : undefined
}

/** Normalises a time that `explainTime` accepts. */
export function normalizeTime(text: string, hasMicroseconds: boolean): string {
  const [, fraction = ''] = pattern.exec(text) ?? []
  const seconds = new Date(text).toISOString().slice(0, 19)
  return `${seconds}${hasMicroseconds ? fraction : ''}Z`
}
