/**
 * Bundles the CLI with everything it needs into dist/: it runs from there without node_modules, on a read-only file system.
 * Chunks are split so that a command loads only what it uses. The entry file is replaced last and atomically, and chunks
 * of an earlier bundle stay for a day: a command that runs loads some of them late. What the browser runs is in dist/page.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { build } from 'esbuild'
import { buildPage } from './build-page.mjs'
import { retireChunks } from './retire-chunks.mjs'

const root = join(import.meta.dirname, '..')
const outdir = join(root, 'dist')

/** classic-level finds its native library beside its own source; in the bundle that is dist/native. */
const nativeLibraries = {
  name: 'native libraries',
  setup({ onLoad }) {
    onLoad({ filter: /classic-level\/binding\.js$/ }, () => ({
      contents: "module.exports = require('node-gyp-build')(seamarkNative)",
    }))
  },
}

const { outputFiles, metafile } = await build({
  entryPoints: {
    seamark: join(root, 'packages/cli/src/index.ts'),
    // A worker thread starts from a file of its own.
    'health-worker': join(root, 'packages/operator/src/health/worker.ts'),
    'dns-worker': join(root, 'packages/dns/src/server/threads/worker.ts'),
  },
  outdir,
  outExtension: { '.js': '.mjs' },
  chunkNames: 'chunks/[name]-[hash]',
  write: false,
  metafile: true,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  conditions: ['source', 'node'],
  // CommonJS dependencies call require() for Node's own modules.
  banner: {
    js: [
      "import { createRequire as seamarkRequire } from 'node:module'; const require = seamarkRequire(import.meta.url);",
      "const seamarkNative = import.meta.dirname.replace(/[\\\\/]chunks$/, '') + '/native';",
    ].join(''),
  },
  plugins: [nativeLibraries],
  minifySyntax: true,
  minifyWhitespace: true,
  // No keepNames: it names every closure anew when it is made. Errors have their names, as no identifier is minified.
  legalComments: 'none',
  logLevel: 'warning',
})

// import('package') of a CommonJS package has only a default export here, and named ones in Node: tests would pass and the
// bundle would fail. Such a package is imported statically by a module of ours, which is then imported dynamically.
for (const [file, { imports }] of Object.entries(metafile.inputs)) {
  for (const { kind, path, original } of imports) {
    if (kind !== 'dynamic-import' || metafile.inputs[path]?.format !== 'cjs') continue
    throw new Error(
      `${file}: import('${original}') loads a CommonJS package; import it statically in a module of its own`,
    )
  }
}

const libraries = join(root, 'node_modules/classic-level/prebuilds')
for (const platform of readdirSync(libraries))
  if (/^(linux|darwin)-/.test(platform))
    cpSync(join(libraries, platform), join(outdir, 'native/prebuilds', platform), { recursive: true })

// The playground applies the examples: they travel with the bundle.
cpSync(join(root, 'examples'), join(outdir, 'examples'), { recursive: true })

for (const [name, contents] of await buildPage()) replace(join(outdir, 'page', name), contents, 0o644)

const entry = join(outdir, 'seamark.mjs')
const chunks = join(outdir, 'chunks')
const current = new Set()
mkdirSync(chunks, { recursive: true })
for (const file of outputFiles.toSorted((a, b) => Number(a.path === entry) - Number(b.path === entry))) {
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
