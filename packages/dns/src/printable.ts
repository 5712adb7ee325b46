/**
 * Text of others (names, values, zone files, server answers) made safe for a terminal, a log line and an error message: no
 * control characters, no line breaks, no characters that reorder text. Each is written as an escape, so nothing is lost.
 */

/** C0, DEL and C1 controls; line and paragraph separators; bidirectional marks; the byte order mark. */
const UNPRINTABLE = /[\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu

/** `text` with unprintable characters as `\u{1b}`, cut to `maxLength` characters of the original. */
export function printable(text: string, maxLength = Infinity): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
  return cut.replaceAll(UNPRINTABLE, (character) => `\\u{${character.charCodeAt(0).toString(16)}}`)
}
