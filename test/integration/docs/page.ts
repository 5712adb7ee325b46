/**
 * A page of the documentation as a script: per section its blocks and the remarks for the test, in the order of the page.
 *
 * `console` blocks have commands after `$ ` and what they print; `sh` blocks have commands alone. Remarks stand on the line
 * before a block: `<!-- file: NAME -->` (the block is saved under that name), `<!-- needs: PROGRAM … -->` (it is run where these are
 * installed), `<!-- not run: REASON -->`, and anywhere `<!-- test: … -->` (something that happens to the installation).
 */
export type Step =
  | { readonly kind: 'test'; readonly name: string }
  | { readonly kind: 'file'; readonly name: string; readonly text: string }
  | { readonly kind: 'log' | 'metrics'; readonly lines: readonly string[] }
  /** `output` undefined: none is shown. */
  | {
      readonly kind: 'command'
      readonly command: string
      readonly output: readonly string[] | undefined
      readonly needs?: readonly string[]
    }

export interface Section {
  readonly heading: string
  readonly steps: readonly Step[]
}

/** A fenced block, and the remark on the line before it. */
export interface Block {
  readonly line: number
  readonly language: string
  readonly body: string
  readonly remark: string
}

const COMMANDS = new Set(['sh', 'bash', 'shell', 'console'])

/** Whether a reader would paste it. */
export function isCommands({ language }: Block): boolean {
  return COMMANDS.has(language)
}

const REMARK_OR_BLOCK = /^<!-- (test|file|needs|not run): (.*?) -->$|^( *)```(\w*)\n([^]*?)^ *```$/gm

export function readBlocks(text: string): Block[] {
  const blocks: Block[] = []
  let remark = { text: '', end: -1 }
  for (const match of text.matchAll(REMARK_OR_BLOCK)) {
    const [whole, kind, given = '', , language = '', body = ''] = match
    if (kind !== undefined) remark = { text: `${kind}: ${given}`, end: match.index + whole.length }
    else {
      const isBefore = /^\n\n?$/.test(text.slice(remark.end, match.index)) && remark.end >= 0
      const line = text.slice(0, match.index).split('\n').length
      blocks.push({ line, language, body: body.trimEnd(), remark: isBefore ? remark.text : '' })
    }
  }
  return blocks
}

/** The part before the first heading has the heading ''. */
export function readPage(text: string): Section[] {
  const [before = '', ...parts] = text.split(/^## /m)
  return [
    { heading: '', steps: stepsOf(before) },
    ...parts.map((part) => ({ heading: part.split('\n', 1)[0] ?? '', steps: stepsOf(part) })),
  ].filter(({ heading, steps }) => heading !== '' || steps.length > 0)
}

function stepsOf(part: string): Step[] {
  const steps: Step[] = []
  let remark = ''
  for (const [, kind, given = '', , language = '', body = ''] of part.matchAll(REMARK_OR_BLOCK)) {
    if (kind === 'test') steps.push({ kind: 'test', name: given })
    else if (kind !== undefined) {
      remark = `${kind}: ${given}`
      continue
    } else if (remark.startsWith('file: '))
      steps.push({ kind: 'file', name: remark.slice('file: '.length), text: body })
    else if (!remark.startsWith('not run: '))
      steps.push(...blockSteps(language, body.trimEnd()).map((step) => needing(step, remark)))
    remark = ''
  }
  return steps
}

function needing(step: Step, remark: string): Step {
  const [, programs] = /^needs: (.*)$/.exec(remark) ?? []
  return programs === undefined || step.kind !== 'command' ? step : { ...step, needs: programs.split(/[ ,]+/) }
}

function blockSteps(language: string, body: string): Step[] {
  if (language === 'log' || language === 'metrics') return [{ kind: language, lines: body.split('\n') }]
  if (language === 'console')
    return body
      .split(/^\$ /m)
      .slice(1)
      .map((part) => {
        const [command = '', ...output] = part.trimEnd().split('\n')
        return { kind: 'command', command, output }
      })
  if (!COMMANDS.has(language)) return []
  return body
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((command) => ({ kind: 'command', command, output: undefined }))
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
