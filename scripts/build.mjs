/**
 * Bundles the CLI into dist/. The entry file is replaced last and atomically, and chunks of an earlier bundle stay for a while, so
 * that a command that is just starting is never torn apart.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { bundle } from './bundle.mjs'

const STALE_CHUNK_MS = 10 * 60_000

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
  mkdirSync(dirname(file.path), { recursive: true })
  const draft = `${file.path}.${process.pid}`
  writeFileSync(draft, file.contents, { mode: file.path === entry ? 0o755 : 0o644 })
  renameSync(draft, file.path)
}

for (const name of existsSync(chunks) ? readdirSync(chunks) : []) {
  const file = join(chunks, name)
  if (!current.has(name) && Date.now() - statSync(file).mtimeMs > STALE_CHUNK_MS) rmSync(file, { force: true })
}
