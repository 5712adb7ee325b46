/**
 * Set-up of test files that run on bundled packages: the stack trace of a failed test names the sources of the packages, and
 * not lines of the bundle. Maps are read only then.
 */
import { readFileSync } from 'node:fs'
import { SourceMap, type SourceMapPayload } from 'node:module'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach } from 'vitest'

const POSITION = /((?:file:\/\/)?\/[^\s()]*\/seamark-packages\/[^\s():]*\.mjs):(\d+):(\d+)/g
const maps = new Map<string, SourceMap>()

function mapOf(file: string): SourceMap {
  const known = maps.get(file)
  if (known !== undefined) return known
  const map = new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')) as SourceMapPayload)
  maps.set(file, map)
  return map
}

function inSources(stack: string): string {
  return stack.replaceAll(POSITION, (text, path: string, line: string, column: string) => {
    const file = path.startsWith('file:') ? fileURLToPath(path) : path
    const found = mapOf(file).findEntry(Number(line) - 1, Number(column) - 1)
    if (!('originalSource' in found)) return text
    return `${resolve(dirname(file), found.originalSource)}:${found.originalLine + 1}:${found.originalColumn + 1}`
  })
}

afterEach(({ task }) => {
  for (const error of task.result?.errors ?? []) if (error.stack !== undefined) error.stack = inSources(error.stack)
})
