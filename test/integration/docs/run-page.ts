/** Runs the steps of a page in order, and compares what commands print with what the page shows. */
import { needs } from '@seamark/kit'
import { type ExpectStatic, expect as anyExpect } from 'vitest'
import { patternOf, type Section, type Step } from './page.ts'
import { kubectl, type Ran } from './terminal.ts'

/** Where a page is run. */
export interface Reader {
  type(command: string): Promise<Ran>
  save?(name: string, text: string): void
  log?(): string
  metrics?(): Promise<string>
  /** Of what blocks need (`<!-- needs: … -->`): what is not here. */
  readonly lacks?: ReadonlySet<string>
  /** What the page marks with `<!-- test: … -->`: something that happens to the installation. */
  readonly happenings?: Readonly<Record<string, () => Promise<void>>>
}

/** A provider whose breaker is open is asked once a minute. */
const PATIENCE_MS = 150_000
/** Each is a process: typed without a pause they would keep a core busy. */
const COMMAND_INTERVAL_MS = 300

/** What only reads is typed again until it shows what the page says: nothing happens at once. */
const READING =
  /^(?:(?:curl|jq|kubectl get|seamark (?:dig|tree|explain|plan|status|cluster list|provider (?:list|test)))\b|seamark (?:approve|undo)(?: -|$))/

/** 2: changes or findings. */
const SUCCESS = [0, 2]

/** Returns how many commands were run. */
export async function runSections(
  sections: readonly Section[],
  reader: Reader,
  /** Of the test, where several run at the same time. */
  expect = anyExpect,
): Promise<number> {
  const known = new Map<string, string>()
  let count = 0
  for (const step of sections.flatMap(({ steps }) => steps)) {
    const absent = absentFor(step, reader)
    if (absent.length > 0) {
      process.stdout.write(`not run without ${absent.join(', ')}: ${step.kind === 'command' ? step.command : ''}\n`)
      continue
    }
    await runStep(step, reader, known, expect)
    if (step.kind === 'command') count++
  }
  return count
}

function absentFor(step: Step, { lacks }: Reader): readonly string[] {
  if (step.kind !== 'command') return []
  return (step.needs ?? []).filter((name) => lacks?.has(name) === true || !isThere(name))
}

export async function runStep(
  step: Step,
  reader: Reader,
  known = new Map<string, string>(),
  expect: ExpectStatic = anyExpect,
): Promise<void> {
  switch (step.kind) {
    case 'test': {
      const happening = reader.happenings?.[step.name]
      if (happening === undefined) throw new Error(`the page marks '${step.name}', which the test does not know`)
      await happening()
      return
    }
    case 'file':
      if (reader.save === undefined) throw new Error(`the page saves ${step.name}, and the test has no folder for it`)
      reader.save(step.name, step.text)
      return
    case 'log':
    case 'metrics':
      for (const line of step.lines) {
        const pattern = new RegExp(patternOf([line], known).source.replace('$', ''), 'm')
        const read = async (): Promise<string | undefined> =>
          step.kind === 'log' ? reader.log?.() : reader.metrics?.()
        await expect.poll(read, { timeout: PATIENCE_MS, message: line }).toMatch(pattern)
      }
      return
    case 'command':
      await runCommand(step, reader, known, expect)
  }
}

/** Fails where CI promised to install it. */
const isThere = (program: string): boolean => (program === 'kubectl' ? kubectl !== undefined : needs(program))

async function runCommand(
  { command: shown, output }: Extract<Step, { kind: 'command' }>,
  reader: Reader,
  known: Map<string, string>,
  expect: ExpectStatic,
): Promise<void> {
  const command = shown.replaceAll(/\b(ID|PLAN)\b/g, (token) => known.get(token) ?? token)
  if (output === undefined) {
    const ran = await reader.type(command)
    expect(ran.code, `${command}\n${ran.text}`).toBe(0)
    return
  }
  const pattern = patternOf(output, known)
  let text = ''
  if (READING.test(command))
    await expect
      .poll(async () => ({ text } = await reader.type(command)).text, {
        timeout: PATIENCE_MS,
        interval: COMMAND_INTERVAL_MS,
        message: command,
      })
      .toMatch(pattern)
  else {
    const ran = await reader.type(command)
    ;({ text } = ran)
    expect(text, command).toMatch(pattern)
    expect(SUCCESS, `${ran.code} ${command}\n${text}`).toContain(ran.code)
  }
  for (const [token, value] of Object.entries(pattern.exec(text)?.groups ?? {})) known.set(token, value)
}
