/**
 * The packages as few files that Node loads by itself, for test files that run in a process of their own: reading some 900
 * modules one by one took each of them longer than most of their tests, and code that Node loads runs faster.
 *
 * Flow: vitest.config.ts resolves `@seamark/<package>` to `entryFile(…)`; vitest calls `setup` before the first file of a
 * project that asks for it, and what it returns after the last one.
 * Guarantees: all entries share one copy of each module, also the `testing` ones; dependencies from npm are not part of the
 * files, so that a test and a package share them too; each run of vitest has a folder of its own.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { build, type Plugin } from 'esbuild'

const ROOT = join(import.meta.dirname, '../..')
/** Beneath node_modules, where vitest leaves files to Node, and Node finds the dependencies. */
const CACHE = join(ROOT, 'node_modules/.cache/seamark-packages')
const FOLDER = join(CACHE, String(process.pid))

/** Files from which a package starts a thread, beside the folder of the entries as they are in the shipped bundle. */
const WORKERS = {
  'dns-worker': join(ROOT, 'packages/dns/src/server/threads/worker.ts'),
  'health-worker': join(ROOT, 'packages/operator/src/health/worker.ts'),
}

interface Manifest {
  readonly name: string
  readonly exports: Readonly<Record<string, { readonly source: string }>>
}

/** Source file by specifier, such as `@seamark/kube/testing`. */
function readEntries(): Map<string, string> {
  const entries = new Map<string, string>()
  for (const folder of readdirSync(join(ROOT, 'packages'))) {
    const manifest = JSON.parse(readFileSync(join(ROOT, 'packages', folder, 'package.json'), 'utf8')) as Manifest
    for (const [path, { source }] of Object.entries(manifest.exports)) {
      const specifier = join(manifest.name, path)
      // The program itself: it runs when it is loaded.
      if (specifier !== '@seamark/cli') entries.set(specifier, join(ROOT, 'packages', folder, source))
    }
  }
  return entries
}

const fileName = (specifier: string): string => specifier.replace('@seamark/', '').replaceAll('/', '-')

/** What `resolve.alias` of vitest takes. */
export function packageAliases(): { find: RegExp; replacement: string }[] {
  return [...readEntries().keys()].map((specifier) => ({
    find: new RegExp(`^${specifier}$`),
    replacement: join(FOLDER, 'entries', `${fileName(specifier)}.mjs`),
  }))
}

const dependenciesStayOutside: Plugin = {
  name: 'dependencies stay outside',
  setup(bundling) {
    bundling.onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
      kind === 'entry-point' || path.startsWith('@seamark/') ? undefined : { path, external: true },
    )
  },
}

/** Called for each project with test files; the folder is written once. */
export async function setup(): Promise<() => void> {
  removeAbandoned()
  if (mkdirSync(join(FOLDER, 'chunks'), { recursive: true }) === undefined) return () => undefined
  await build({
    entryPoints: {
      ...Object.fromEntries([...readEntries()].map(([specifier, file]) => [`entries/${fileName(specifier)}`, file])),
      ...WORKERS,
    },
    outdir: FOLDER,
    outExtension: { '.js': '.mjs' },
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    sourcemap: true,
    sourcesContent: false,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    conditions: ['source', 'node'],
    plugins: [dependenciesStayOutside],
    logLevel: 'error',
  })
  // The playground reads them one folder above itself.
  symlinkSync(join(ROOT, 'examples'), join(FOLDER, 'examples'))
  return () => rmSync(FOLDER, { recursive: true, force: true })
}

/** Folders of runs that were killed. */
function removeAbandoned(): void {
  mkdirSync(CACHE, { recursive: true })
  for (const name of readdirSync(CACHE)) if (!isRunning(Number(name))) rmSync(join(CACHE, name), { recursive: true })
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
