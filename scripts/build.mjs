/**
 * Bundles the CLI into dist/. The entry file is replaced last and atomically, and chunks of an earlier bundle stay for a day: a
 * command that runs loads some of them late.
 */
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { bundle } from './bundle.mjs'
import { retireChunks } from './retire-chunks.mjs'

const outdir = join(import.meta.dirname, '../dist')
const { files } = await bundle(outdir)

const entry = join(outdir, 'seamark.mjs')
const chunks = join(outdir, 'chunks')
const current = new Set()
mkdirSync(chunks, { recursive: true })
for (const file of files.toSorted((a, b) => Number(a.path === entry) - Number(b.path === entry))) {
  current.add(basename(file.path))
  // The name of a chunk is a hash of its content.
  if (dirname(file.path) === chunks && existsSync(file.path)) continue
  replace(file.path, file.contents, file.path === entry ? 0o755 : 0o644)
}

retireChunks(chunks, current, Date.now())

/** Atomically: who reads the file meanwhile gets all of one or all of the other. */
function replace(path, contents, mode) {
  mkdirSync(dirname(path), { recursive: true })
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, contents, { mode })
  renameSync(draft, path)
}
