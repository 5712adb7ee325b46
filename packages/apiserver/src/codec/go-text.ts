/** Values formatted by Go's `%v`, for messages that contain them: maps sorted by key, no quotes. */
export function goText(value: unknown): string {
  if (value === null || value === undefined) return '<nil>'
  if (typeof value === 'string') return value
  if (typeof value !== 'object') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(goText).join(' ')}]`
  const map = value as Record<string, unknown>
  const keys = Object.keys(map).toSorted()
  return `map[${keys.map((key) => `${key}:${goText(map[key])}`).join(' ')}]`
}
