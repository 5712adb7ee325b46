/**
 * Values of the manager. Their texts come from clusters: characters that turn or hide what stands beside them are shown as
 * escapes, here and once, so that no view can forget it.
 */
// Marks, overrides and isolates of direction; zero width; line separators.
const TURNING = /[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g

export function parseJson(text: string): unknown {
  return JSON.parse(text.replace(TURNING, escapeOf))
}

/** Escaped twice: the text itself has the backslash. */
function escapeOf(character: string): string {
  return `\\\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
