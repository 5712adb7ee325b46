/** The step `imports` of `npm run check`: prints every import in a wrong direction. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findWrongImports } from './import-directions.ts'

const root = join(import.meta.dirname, '..')
const files = ['packages', 'test'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !/(^|\/)(node_modules|dist)\//.test(path))
    .map((path) => ({ path: `${folder}/${path}`, text: readFileSync(join(root, folder, path), 'utf8') })),
)
const wrong = findWrongImports(files)
for (const line of wrong) console.log(line)
process.exit(wrong.length === 0 ? 0 : 1)
