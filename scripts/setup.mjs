/**
 * Makes a fresh clone ready: installs the npm modules when they are missing or the lock file changed, else does nothing.
 * `npm start` and `npm test` call it first, so that each is the only command a newcomer types.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const mark = join(root, 'node_modules', '.seamark-lock')
const wanted = createHash('sha256')
  .update(readFileSync(join(root, 'package-lock.json')))
  .digest('hex')

if (!existsSync(mark) || readFileSync(mark, 'utf8') !== wanted) {
  process.stderr.write('setup: installing npm modules\n')
  const npm = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (npm.status !== 0) process.exit(npm.status ?? 1)
  writeFileSync(mark, wanted)
}
