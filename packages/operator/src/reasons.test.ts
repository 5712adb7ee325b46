/**
 * Every reason code is produced by some source file and reached by some test. Read from the text of the files: a code is
 * a string literal, and the positions in which a code is only read (comparisons, sets, types) do not count.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Reason, REASONS } from './reasons.ts'

const ROOT = join(import.meta.dirname, '../../..')
const CATALOGUE = 'packages/operator/src/reasons.ts'

const files = ['packages/operator', 'packages/dashboard', 'packages/cli', 'test']
  .flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
      .map(({ parentPath, name }) => join(parentPath, name).slice(ROOT.length + 1)),
  )
  .filter((path) => !path.includes('node_modules') && !path.includes('/dist/') && !path.startsWith('packages/cli/dist'))

const isTest = (path: string): boolean => path.endsWith('.test.ts') || path.startsWith('test/')
const isSource = (path: string): boolean => path.includes('/src/') && !isTest(path) && path !== CATALOGUE

const withoutComments = (text: string): string => text.replaceAll(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, '')

/** Without the positions in which a code is read, not produced. */
function producing(text: string): string {
  return withoutComments(text)
    .replaceAll(/new Set(?:<\w+>)?\(\[[^\]]*\]\)/g, '')
    .replaceAll(/(?:[!=]== |case |\| )'\w+'/g, '')
    .replaceAll(/'\w+' \|/g, '')
    .replaceAll(/^\s*(?:readonly |\| \{).*$/gm, '')
}

/** Without the positions in which a test passes a code to the code under test. */
function expecting(text: string): string {
  return text.includes('expect') ? withoutComments(text).replaceAll(/\b(?:warning|note)\(\s*'\w+'/g, '') : ''
}

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const produced = files
  .filter(isSource)
  .map((path) => producing(read(path)))
  .join('\n')
const expected = files
  .filter(isTest)
  .filter((path) => path !== 'packages/operator/src/reasons.test.ts')
  .map((path) => expecting(read(path)))
  .join('\n')

const codes = Object.keys(REASONS) as Reason[]

describe('the catalogue of reason codes', () => {
  it('contains only codes that a source file produces', () => {
    expect(codes.filter((code) => !produced.includes(`'${code}'`))).toEqual([])
  })

  it('contains only codes that a test expects', () => {
    expect(codes.filter((code) => !new RegExp(`\\b${code}\\b`).test(expected))).toEqual([])
  })

  it('does not take a comparison, a set, a type or a comment for a producer', () => {
    const reading = [
      `if (reason === 'A') return`,
      `switch (x) { case 'A': }`,
      `const SET = new Set<Reason>(['A', 'B'])`,
      `type T = 'B' | 'A'`,
      `  readonly reason: 'A'`,
      `/** 'A' */ // 'A'`,
    ]
    expect(reading.map(producing).filter((text) => text.includes(`'A'`))).toEqual([])
    const writing = [`warning('A', why)`, `{ code: 'A' }`, `isGone ? 'A' : 'B'`, `const CODE: Reason = 'A'`]
    expect(writing.map(producing).filter((text) => !text.includes(`'A'`))).toEqual([])
  })
})
