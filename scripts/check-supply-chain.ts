/** The step `supply chain` of `npm run check`: lock file, install scripts, roles of the examples. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findLockFaults, findRoleFaults, type LockFile } from './supply-chain.ts'

const root = join(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

const { allowScripts } = JSON.parse(read('package.json')) as { allowScripts: Record<string, boolean> }
const manifests = readdirSync(join(root, 'examples'), { recursive: true, encoding: 'utf8' }).filter((path) =>
  path.endsWith('.yaml'),
)
const faults = [
  ...findLockFaults(JSON.parse(read('package-lock.json')) as LockFile, allowScripts),
  ...manifests.flatMap((path) => findRoleFaults(`examples/${path}`, read(`examples/${path}`))),
]
for (const fault of faults) console.log(fault)
process.exit(faults.length === 0 ? 0 : 1)
