/** docs/on-call.md as a script: per section its blocks and the remarks for the test, in the order of the page. */
export type Step =
  | { readonly kind: 'test'; readonly name: string }
  | { readonly kind: 'log' | 'metrics'; readonly lines: readonly string[] }
  | { readonly kind: 'command'; readonly command: string; readonly output: readonly string[] }

export interface Section {
  readonly heading: string
  readonly steps: readonly Step[]
}

export function readPage(text: string): Section[] {
  return text
    .split(/^## /m)
    .slice(1)
    .map((part) => {
      const [heading = ''] = part.split('\n')
      const blocks = [...part.matchAll(/<!-- test: (.*?) -->|```(console|log|metrics)\n([^]*?)```/g)]
      return { heading, steps: blocks.flatMap(([, name, kind, body = '']) => stepsOf(name, kind, body.trimEnd())) }
    })
}

function stepsOf(name: string | undefined, kind: string | undefined, body: string): Step[] {
  if (name !== undefined) return [{ kind: 'test', name }]
  if (kind === 'log' || kind === 'metrics') return [{ kind, lines: body.split('\n') }]
  return body
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const [command = '', ...output] = part.trimEnd().split('\n')
      return { kind: 'command', command, output }
    })
}

/**
 * Lines of the page as a pattern: `…` is any text, `ID` and `PLAN` (one number or several) are captured when seen first and are
 * the same from then on. The width of columns may differ.
 * A line that is only `…` is any number of lines.
 */
export function patternOf(lines: readonly string[], known: ReadonlyMap<string, string>): RegExp {
  const named = new Set<string>()
  const patterns = lines.map((line) => {
    if (line === '…') return String.raw`(?:[^\n]*\n)*`
    const escaped = line
      .replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
      .replaceAll(/ {2,}/g, ' {2,}')
      .replaceAll('…', String.raw`[^\n]*`)
    const filled = escaped.replaceAll(/\b(ID|PLAN)\b/g, (token) => {
      const value = known.get(token)
      if (value !== undefined) return value
      if (named.has(token)) return `\\k<${token}>`
      named.add(token)
      return String.raw`(?<${token}>[0-9a-f]+(?: \d+)*)`
    })
    return String.raw`${filled}[ \t]*\n`
  })
  return new RegExp(`^${patterns.join('')}$`)
}
