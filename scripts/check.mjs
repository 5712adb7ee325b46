/** `npm run check`: lint, format, types, dead code, directions of imports, supply chain, generated files. Runs all of them, then says which failed. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const bin = (name) => join(root, 'node_modules/.bin', name)
const script = (name, ...args) => [
  process.execPath,
  ['--conditions=source', '--import', 'tsx', join(root, 'scripts', name), ...args],
]
const STEPS = [
  ['lint', bin('oxlint'), ['--quiet']],
  ['format', bin('oxfmt'), ['--check', '.']],
  ['types', bin('tsc'), ['-p', 'tsconfig.json']],
  ['types of the page', bin('tsc'), ['-p', 'packages/dashboard/src/page/tsconfig.json']],
  ['types of its tests', bin('tsc'), ['-p', 'packages/dashboard/src/page/tsconfig.test.json']],
  ['dead code', bin('knip'), []],
  ['imports', ...script('check-imports.ts')],
  ['supply chain', ...script('check-supply-chain.ts')],
  ['generated files', ...script('generate.ts', '--check')],
]

const failed = []
for (const [name, command, args] of STEPS) {
  const started = Date.now()
  const step = spawnSync(command, args, { cwd: root, stdio: 'inherit' })
  const ok = step.status === 0
  if (!ok) failed.push(name)
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`)
}
if (failed.length > 0) {
  console.log(`check failed: ${failed.join(', ')}`)
  process.exit(1)
}
