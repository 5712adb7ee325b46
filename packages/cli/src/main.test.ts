import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { VERBS, findVerb } from './verbs.ts'
import { VERSION } from './version.ts'

const root = join(import.meta.dirname, '../../..')

const neverLoaded = async () => Promise.reject(new Error('not loaded'))

describe('the verbs of the command line', () => {
  it('finds a verb of two words before one of one word', () => {
    const verbs = [
      { name: 'dns', summary: '', load: neverLoaded },
      { name: 'dns serve', summary: '', load: neverLoaded },
    ]
    expect(findVerb(verbs, ['dns', 'serve', '--listen', 'x'])?.rest).toEqual(['--listen', 'x'])
    expect(findVerb(verbs, ['dns', 'other'])?.rest).toEqual(['other'])
    expect(findVerb(verbs, ['nothing'])).toBeUndefined()
  })

  it('has one line per verb, in alphabetical order, each with a summary', () => {
    const names = VERBS.map((verb) => verb.name)
    expect(new Set(names).size).toBe(names.length)
    expect(names).toEqual(names.toSorted())
    expect(VERBS.filter((verb) => verb.summary === '')).toEqual([])
  })
})

describe('the version', () => {
  it('is the same in package.json, CHANGELOG.md and the command', () => {
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
    expect(VERSION).toBe(manifest.version)
    expect(readFileSync(join(root, 'CHANGELOG.md'), 'utf8')).toContain(`## ${VERSION}`)
  })
})
