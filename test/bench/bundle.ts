/**
 * Programs of a bench as processes of their own, bundled once as they are shipped: `tsx` would count its own memory and start
 * into every figure.
 */
import { rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'

/** The folder with `<name>.mjs` for each `<name>.ts` of `folder`; removed when this process ends. */
export async function bundlePrograms(folder: string, names: readonly string[]): Promise<string> {
  const outdir = await mkdtemp(join(tmpdir(), 'seamark-bench-'))
  process.on('exit', () => rmSync(outdir, { recursive: true, force: true }))
  await build({
    entryPoints: names.map((name) => join(folder, `${name}.ts`)),
    outdir,
    outExtension: { '.js': '.mjs' },
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    minifySyntax: true,
    minifyWhitespace: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    conditions: ['source', 'node'],
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    logLevel: 'error',
  })
  return outdir
}
