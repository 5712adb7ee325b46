/** The shell: HTML, script, style and icon, without any data. Built into `dist/page/` by scripts/build.mjs. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface Asset {
  readonly body: Buffer
  readonly type: string
  /** Quoted. */
  readonly etag: string
}

export type Assets = Readonly<Record<'html' | 'script' | 'style' | 'icon', Asset>>

const FILES = {
  html: ['index.html', 'text/html; charset=utf-8'],
  script: ['page.js', 'text/javascript; charset=utf-8'],
  style: ['page.css', 'text/css; charset=utf-8'],
  icon: ['icon.svg', 'image/svg+xml'],
} as const

export async function readAssets(folder: string): Promise<Assets> {
  const read = async ([name, type]: readonly [string, string]): Promise<Asset> => {
    const body = await readFile(join(folder, name))
    return { body, type, etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"` }
  }
  const [html, script, style, icon] = await Promise.all([
    read(FILES.html),
    read(FILES.script),
    read(FILES.style),
    read(FILES.icon),
  ])
  return { html, script, style, icon }
}

/** Beside the bundle, or one folder up from a chunk of it; from the sources, in the bundle of the checkout. Undefined: not built. */
export function findPageFolder(): string | undefined {
  const candidates = ['./page/', '../page/', '../../../../dist/page/'].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  )
  return candidates.find((folder) => existsSync(join(folder, FILES.html[0])))
}
