import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { retireChunks } from './retire-chunks.mjs'

const HOUR_MS = 60 * 60_000

it('a chunk stays for a day after the build that replaced it, however old it is', () => {
  const folder = mkdtempSync(join(tmpdir(), 'seamark-chunks-'))
  const there = (...names: string[]) => names.filter((name) => existsSync(join(folder, name)))
  const build = (atMs: number, ...names: string[]) => {
    for (const name of names) writeFileSync(join(folder, name), '')
    retireChunks(folder, new Set(names), atMs)
  }
  const startMs = Date.now()
  try {
    build(startMs, 'a.mjs', 'b.mjs')
    build(startMs + 100 * HOUR_MS, 'b.mjs', 'c.mjs')
    expect(there('a.mjs', 'b.mjs', 'c.mjs')).toEqual(['a.mjs', 'b.mjs', 'c.mjs'])
    build(startMs + 110 * HOUR_MS, 'c.mjs')
    expect(there('a.mjs', 'b.mjs', 'c.mjs')).toEqual(['a.mjs', 'b.mjs', 'c.mjs'])
    build(startMs + 125 * HOUR_MS, 'c.mjs')
    expect(there('a.mjs', 'b.mjs', 'c.mjs')).toEqual(['b.mjs', 'c.mjs'])
    build(startMs + 135 * HOUR_MS, 'c.mjs')
    expect(there('a.mjs', 'b.mjs', 'c.mjs')).toEqual(['c.mjs'])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
