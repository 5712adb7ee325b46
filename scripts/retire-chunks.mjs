/**
 * Removes chunks of earlier bundles, a day after the build that replaced them: a server that was started before loads them when
 * it needs them, however long it has been running.
 */
import { existsSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const KEPT_MS = 24 * 60 * 60_000
/** Names of the chunks of the last bundle. */
const LIST = 'current.json'

/**
 * @param {string} folder
 * @param {ReadonlySet<string>} current names of the chunks of the bundle that was just written
 * @param {number} nowMs
 */
export function retireChunks(folder, current, nowMs) {
  const list = join(folder, LIST)
  const isKnown = existsSync(list)
  const last = new Set(isKnown ? JSON.parse(readFileSync(list, 'utf8')) : [])
  for (const name of readdirSync(folder)) {
    if (name === LIST || current.has(name)) continue
    const file = join(folder, name)
    // Its time is that of its replacement from now on.
    if (!isKnown || last.has(name)) utimesSync(file, nowMs / 1000, nowMs / 1000)
    else if (nowMs - statSync(file).mtimeMs > KEPT_MS) rmSync(file, { force: true })
  }
  writeFileSync(list, JSON.stringify([...current].sort()))
}
