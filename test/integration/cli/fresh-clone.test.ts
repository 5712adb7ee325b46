/**
 * A newcomer's first command: `npm start -- --once` in a fresh clone prints, line by line, the transcript of the README.
 *
 * The clone has the committed state. Its npm modules are links to those of this checkout, so that no network is needed;
 * the packages of the workspace are its own.
 */
import { execFile } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { needs } from '@seamark/kit'
import { afterAll, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../../..')
const scratch = mkdtempSync(join(tmpdir(), 'seamark-clone-'))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const run = promisify(execFile)

/** Details that depend on the moment: what a drain waits for, and the hops that explain names. */
const isOfTheMoment = (line: string): boolean => /s {2}(\d+ (?:leaf is|leaves are) left| {2}\w+: )/.test(line)

/** What differs between two runs: times, ports, the folder of the playground, the order of addresses. */
function normalise(line: string): string {
  return (
    line
      .replace(/^ +\d+\.\d s {2}/, '<time>  ')
      .replaceAll(/(127\.0\.0\.\d+):\d+/g, '$1:<port>')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:]+Z/g, '<when>')
      .replaceAll(/-p \d+/g, '-p <port>')
      .replaceAll(/in \d+ ms/g, 'in <ms>')
      .replaceAll(/after \d+\.\d s/g, 'after <s>')
      .replaceAll(/sent \d+ requests/g, 'sent <n> requests')
      .replaceAll(/\b(ap1|eu1|us1) \d+/g, '$1 <n>')
      .replaceAll(/approve [0-9a-f]+/g, 'approve <id>')
      // A cluster that was away has its leaf again sooner or later than it drains.
      .replace(/(shop\/api .*: stays on ).*/, '$1<clusters>')
      // Which guard is named first depends on when it is asked.
      .replace(/( is broken at plan: ).*/, '$1<why>')
      .trimEnd()
  )
}

/** The code block after the sentence that names the command. */
function transcript(): string[] {
  const [, block] =
    /`npm start -- --once`[^\n]*\n\n```\n([\s\S]*?)\n```/.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? []
  if (block === undefined) throw new Error('README.md has no transcript of `npm start -- --once`')
  return block.split('\n')
}

/** Everything in node_modules but the workspace's own packages, which belong to the clone. */
function linkModules(clone: string): void {
  const [from, to] = [join(root, 'node_modules'), join(clone, 'node_modules')]
  mkdirSync(join(to, '@seamark'), { recursive: true })
  for (const name of readdirSync(from))
    if (!name.startsWith('@seamark') && !name.startsWith('.')) symlinkSync(join(from, name), join(to, name))
  symlinkSync(join(from, '.bin'), join(to, '.bin'))
  copyFileSync(join(from, '.seamark-lock'), join(to, '.seamark-lock'))
  for (const name of readdirSync(join(clone, 'packages')))
    symlinkSync(join(clone, 'packages', name), join(to, '@seamark', name))
}

const isPossible =
  needs('git', 'npm') && existsSync(join(root, '.git')) && existsSync(join(root, 'node_modules/.seamark-lock'))

it.skipIf(!isPossible)('npm start -- --once in a fresh clone prints what the README shows', async () => {
  const clone = join(scratch, 'seamark')
  await run('git', ['clone', '--quiet', '--no-hardlinks', root, clone])
  linkModules(clone)
  const { stdout } = await run('npm', ['start', '--silent', '--', '--once'], { cwd: clone })
  const shown = (lines: readonly string[]): string[] => lines.filter((line) => !isOfTheMoment(line)).map(normalise)
  expect(shown(stdout.trimEnd().split('\n'))).toEqual(shown(transcript()))
})
