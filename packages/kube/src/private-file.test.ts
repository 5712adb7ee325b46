import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makePrivateFolder, writePrivateFile } from './private-file.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'seamark-private-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const modeOf = (path: string): string => (lstatSync(path).mode & 0o777).toString(8)

describe('a private file', () => {
  it('is readable only by its owner, also when it replaces a world-readable file', async () => {
    const path = join(folder, 'kubeconfig')
    writeFileSync(path, 'old')
    chmodSync(path, 0o644)
    await writePrivateFile(path, 'new')
    expect([readFileSync(path, 'utf8'), modeOf(path)]).toEqual(['new', '600'])
    expect(readdirSync(folder)).toEqual(['kubeconfig'])
  })

  it('replaces a symbolic link and does not change its target', async () => {
    const target = join(folder, 'target')
    const path = join(folder, 'link')
    writeFileSync(target, 'theirs')
    symlinkSync(target, path)
    await writePrivateFile(path, 'ours')
    expect([readFileSync(target, 'utf8'), readFileSync(path, 'utf8')]).toEqual(['theirs', 'ours'])
    expect(lstatSync(path).isSymbolicLink()).toBe(false)
  })

  it('does not replace a folder or a device, and leaves no temporary file when it cannot be written', async () => {
    await expect(writePrivateFile(folder, 'x')).rejects.toThrow('is not a regular file')
    await expect(writePrivateFile('/dev/null', 'x')).rejects.toThrow('is not a regular file')
    await expect(writePrivateFile(join(folder, 'no', 'file'), 'x')).rejects.toThrow('ENOENT')
    expect(readdirSync(folder)).toEqual([])
  })
})

it('a private folder is accessible only by its owner', async () => {
  await makePrivateFolder(join(folder, 'a', 'b'))
  expect([modeOf(join(folder, 'a')), modeOf(join(folder, 'a', 'b'))]).toEqual(['700', '700'])
})
