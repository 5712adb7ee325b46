/**
 * The CLI and everything it needs as files of one folder: it runs from there without node_modules, on a read-only file system.
 * Chunks are split so that a command loads only what it uses. What the browser runs is in page/.
 */
import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { buildPage } from './build-page.mjs'

const root = join(import.meta.dirname, '..')
const NATIVE = 'node_modules/classic-level'

/** classic-level finds its native library beside its own source; in the bundle that is dist/native. */
const nativeLibraries = {
  name: 'native libraries',
  setup({ onLoad }) {
    onLoad({ filter: /classic-level\/binding\.js$/ }, () => ({
      contents: "module.exports = require('node-gyp-build')(seamarkNative)",
    }))
  },
}

/**
 * Copies native libraries and examples into the folder; the caller writes `files` there.
 * @param {string} outdir
 * @returns {Promise<{ files: readonly { path: string, contents: Uint8Array }[], packages: readonly string[] }>} `packages`: the
 *   folders in node_modules of which something is in the files
 */
export async function bundle(outdir) {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
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

  const libraries = join(root, NATIVE, 'prebuilds')
  for (const platform of readdirSync(libraries))
    if (/^(linux|darwin)-/.test(platform))
      cpSync(join(libraries, platform), join(outdir, 'native/prebuilds', platform), { recursive: true })
  // The playground applies the examples: they travel with the bundle.
  cpSync(join(root, 'examples'), join(outdir, 'examples'), { recursive: true })

  const metafiles = [metafile]
  const page = await buildPage((ofPage) => metafiles.push(ofPage))
  const pageFiles = [...page].map(([name, contents]) => ({ path: join(outdir, 'page', name), contents }))
  return {
    files: [...pageFiles, ...outputFiles],
    packages: [...new Set([NATIVE, ...metafiles.flatMap(packagesOf)])].sort(),
  }
}

/** Folders in node_modules of which something was put out. */
function packagesOf({ outputs }) {
  const used = Object.values(outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
  )
  return used.flatMap((path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? [])
}
