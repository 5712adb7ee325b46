/**
 * Bundles what the browser runs, `packages/dashboard/src/page`, into one script and one style sheet; with the shell and the
 * icon these are all files of the page.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'

const source = join(import.meta.dirname, '../packages/dashboard/src/page')

/** Contents by file name. @param {(metafile: import('esbuild').Metafile) => void} report told what went into them */
export async function buildPage(report = () => undefined) {
  const { outputFiles, metafile } = await build({
    absWorkingDir: join(import.meta.dirname, '..'),
    metafile: true,
    entryPoints: { page: join(source, 'main.tsx'), style: join(source, 'style/page.css') },
    outdir: '.',
    write: false,
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    logLevel: 'warning',
  })
  report(metafile)
  const contentOf = (name) => Buffer.from(outputFiles.find(({ path }) => path.endsWith(name)).contents)
  return new Map([
    ['index.html', readFileSync(join(source, 'index.html'))],
    ['icon.svg', readFileSync(join(source, 'icon.svg'))],
    ['page.js', contentOf('page.js')],
    ['page.css', contentOf('style.css')],
  ])
}
