/**
 * From the start of a navigation until the first host row is painted: the page with 10 000 hosts, and a page of plain HTML with
 * the same rows, from the same server, each in a new context.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { HostView } from '@seamark/dashboard'
import type { Browser } from 'playwright-core'
import { openPage } from '../../browser/browser.ts'
import { servePage } from '../../browser/page-server.ts'
import { largeWorld } from '../../browser/worlds.ts'

export const HOSTS = 10_000

/** Runs in the page before anything else of it. */
const WATCH = `(() => {
  const look = () => {
    const row = document.querySelector('tbody tr')
    if (row === null || row.getBoundingClientRect().height === 0) return requestAnimationFrame(look)
    // What this frame paints is on the screen when the next one begins.
    requestAnimationFrame(() => { globalThis.firstRowMs = performance.now() })
  }
  requestAnimationFrame(look)
})()`

export interface Paint {
  readonly pageMs: number
  readonly staticMs: number
}

export async function measurePaint(browser: Browser): Promise<Paint> {
  const world = largeWorld(HOSTS)
  await using server = await servePage(world)
  const html = Buffer.from(staticPage(world.state.hosts))
  const plain = createServer((_, response) => response.setHeader('content-type', 'text/html; charset=utf-8').end(html))
  await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve))
  try {
    const staticMs = await firstRowMs(browser, `http://127.0.0.1:${(plain.address() as AddressInfo).port}/`)
    const pageMs = await firstRowMs(browser, `${server.url}/?flow=table`)
    return { pageMs, staticMs }
  } finally {
    plain.closeAllConnections()
    plain.close()
  }
}

async function firstRowMs(browser: Browser, url: string): Promise<number> {
  await using open = await openPage(browser, 'about:blank')
  const { page } = open
  await page.addInitScript(WATCH)
  await page.goto(url, { waitUntil: 'commit' })
  for (;;) {
    const ms = await page.evaluate<number | undefined>('globalThis.firstRowMs')
    if (ms !== undefined) return ms
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** The rows of the flow as a table, as a server would write them. */
function staticPage(hosts: readonly HostView[]): string {
  const rows = hosts.flatMap(({ name, state, answers }) =>
    (answers.length === 0 ? [undefined] : answers).map((answer) => {
      const cells = [
        name,
        state,
        answer?.address ?? 'no answer',
        answer?.state ?? '–',
        `${Math.round((answer?.share ?? 0) * 100)} %`,
        answer?.cluster ?? '–',
        answer?.gateway ?? '–',
        answer?.services?.join(', ') ?? '–',
      ]
      return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`
    }),
  )
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Flow</title></head><body><table><tbody>${rows.join('\n')}</tbody></table></body></html>`
}
