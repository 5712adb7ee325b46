/**
 * `/a//` → `/a`, `/` → ``. In time proportional to the text: `/\/+$/` starts anew at each slash of the text, and 100 000 of them
 * take seconds.
 */
export function withoutTrailingSlashes(text: string): string {
  let end = text.length
  while (end > 0 && text.charCodeAt(end - 1) === 47) end--
  return text.slice(0, end)
}
