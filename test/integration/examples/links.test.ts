/** Links between the pages, and the paths that ARCHITECTURE.md names, exist. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../../..')
const pages = ['.', 'docs', 'docs/decisions', 'docs/providers'].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name)),
)

/** As GitHub makes the anchor of a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

describe('the documentation', () => {
  it.each(pages)('%s links to pages and headings that exist', (page) => {
    const text = readFileSync(join(root, page), 'utf8').replaceAll(/```[^]*?```/g, '')
    const missing: string[] = []
    for (const [, link = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(link)) continue
      const [path = '', anchor] = link.split('#')
      const target = path === '' ? join(root, page) : join(root, dirname(page), path)
      if (!existsSync(target)) missing.push(link)
      else if (anchor !== undefined) {
        const headings = [...readFileSync(target, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
          anchorOf(heading),
        )
        if (!headings.includes(anchor)) missing.push(link)
      }
    }
    expect(missing).toEqual([])
  })

  it('has every page in its index', () => {
    const index = readFileSync(join(root, 'docs/README.md'), 'utf8')
    const names = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md') && name !== 'README.md')
    expect(names.filter((name) => !index.includes(`(${name})`))).toEqual([])
  })

  it('has every decision in its index', () => {
    const index = readFileSync(join(root, 'docs/decisions/README.md'), 'utf8')
    const names = readdirSync(join(root, 'docs/decisions')).filter((name) => name !== 'README.md')
    expect(names.filter((name) => !index.includes(`(${name})`))).toEqual([])
  })

  it('ARCHITECTURE.md names files and folders that exist', () => {
    const text = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
    const bases = ['', 'packages', 'packages/operator/src']
    // Built when it is first needed, so it may be absent.
    const named = [...text.matchAll(/`([a-z][\w./-]*\/[\w./-]*)`/g)]
      .map(([, path = '']) => path)
      .filter((path) => !path.startsWith('dist/'))
    const missing = named.filter((path) => !bases.some((base) => existsSync(join(root, base, path))))
    expect(named.length).toBeGreaterThan(20)
    expect(missing).toEqual([])
  })

  it('the picture of the folders names folders that exist', () => {
    const text = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
    const picture = /## Folders\n[^]*?```\n([^]*?)```/.exec(text)?.[1] ?? ''
    let base = ''
    const missing: string[] = []
    for (const line of picture.split('\n')) {
      base = /^(packages\/\w+\/src)/.exec(line)?.[1] ?? base
      const folder = /^ {2}(\w+)\/ /.exec(line)?.[1] ?? ''
      for (const [, name = ''] of line.replace(/^packages\S+/, '').matchAll(/(?:^|[\s,;])([a-z]+)\/(?=[\s,;]|$)/g)) {
        if (![base, join(base, folder)].some((parent) => existsSync(join(root, parent, name))))
          missing.push(`${base} ${name}`)
      }
    }
    expect(picture).toContain('publish/')
    expect(missing).toEqual([])
  })
})
