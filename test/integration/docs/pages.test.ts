/**
 * README.md and docs/: every block of commands is run, or says on the line before it why it is not. Each page is run in order,
 * in a fresh folder, with what its world here gives it and nothing else.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfig } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { isCommands, readBlocks, readPage } from './page.ts'
import { runSections } from './run-page.ts'
import { WORLDS } from './worlds.ts'

const ROOT = join(import.meta.dirname, '../../..')

/** Pages that tests of their own run. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'docs/fleet.md': 'test/integration/docs/start.test.ts',
  'docs/migrate.md': 'test/integration/records/migrate-docs.test.ts',
  'docs/on-call.md': 'test/integration/docs/on-call.test.ts',
}

const pages = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`)
    .sort(),
]
const textOf = (page: string): string => readFileSync(join(ROOT, page), 'utf8')

describe('README.md and docs/', () => {
  it('have no block of commands that is neither run nor says why', () => {
    const unexplained = pages.flatMap((page) =>
      readBlocks(textOf(page))
        .filter((block) => isCommands(block) && !/^not run: \S/.test(block.remark))
        .filter(() => !(page in WORLDS) && !(page in ELSEWHERE))
        .map(({ line }) => `${page}:${line}`),
    )
    expect(unexplained).toEqual([])
  })

  it('say of every block with a prompt that it has commands', () => {
    const unnamed = pages.flatMap((page) =>
      readBlocks(textOf(page))
        .filter((block) => !isCommands(block) && /^\$ /m.test(block.body))
        .map(({ line }) => `${page}:${line}`),
    )
    expect(unnamed).toEqual([])
  })

  it('give a reason for a block that exists', () => {
    const stray = pages.flatMap((page) =>
      [...textOf(page).matchAll(/<!-- (not run|file|needs): .*? -->(?!\n\n?```)/g)].map(
        ([remark]) => `${page}: ${remark}`,
      ),
    )
    expect(stray).toEqual([])
  })

  it('show configurations that load', () => {
    const shown = pages.flatMap((page) =>
      readBlocks(textOf(page))
        .filter(({ language, body }) => language === 'yaml' && /^kind: ManagerConfiguration$/m.test(body))
        .map(({ line, body }) => ({ at: `${page}:${line}`, loaded: loadConfig({ file: body }) })),
    )
    expect(shown.length).toBeGreaterThan(5)
    expect(shown.flatMap(({ at, loaded }) => (loaded.ok ? [] : [`${at}: ${loaded.faults.join('; ')}`]))).toEqual([])
  })

  it.each(Object.keys(ELSEWHERE))('%s is run by a test of its own', (page) => {
    expect(readFileSync(join(ROOT, ELSEWHERE[page] ?? ''), 'utf8')).toContain(page.replace('docs/', ''))
  })
})

describe.concurrent.each(Object.entries(WORLDS))('%s', (page, worlds) => {
  for (const { name, start, isSkipped = false } of worlds)
    it.skipIf(isSkipped)(`is run as it is written, on ${name}`, { timeout: 400_000 }, async ({ expect }) => {
      await using world = await start()
      const sections = readPage(textOf(page))
      // A page may show a file after the first command that reads it.
      for (const step of sections.flatMap(({ steps }) => steps))
        if (step.kind === 'file') world.save?.(step.name, step.text)
      expect(await runSections(sections, world, expect)).toBeGreaterThan(0)
    })
})
