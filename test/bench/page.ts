/** The page in Chromium with 10 000 hosts, and what it costs. */
import { gzipSync } from 'node:zlib'
import { needs } from '@seamark/kit'
import type { Browser } from 'playwright-core'
import { buildPage } from '../../scripts/build-page.mjs'
import { launchChromium } from '../browser/browser.ts'
import { measurePaint } from './page/paint.ts'
import { measureSeen } from './page/seen.ts'
import { measureUpdate } from './page/update.ts'
import type { Figure } from './figure.ts'

const unavailable = (): string | undefined => (needs('chromium') ? undefined : 'chromium is not installed')

/** Each run has a browser of its own: what one has cached is not faster in the next. */
async function inChromium<T>(measure: (browser: Browser) => Promise<T>): Promise<T> {
  const browser = await launchChromium()
  try {
    return await measure(browser)
  } finally {
    await browser.close()
  }
}

export const figures: readonly Figure[] = [
  {
    name: 'page.seen',
    what: 'from a verdict in the manager until it is in the DOM, p95 of 20',
    unit: 'ms',
    bound: { max: 500 },
    against: '-',
    runs: 3,
    unavailable,
    measure: async () => {
      const waits = await inChromium(measureSeen)
      const sorted = waits.toSorted((a, b) => a - b)
      process.stderr.write(`page.seen: ${sorted.join(', ')} ms\n`)
      return sorted[Math.ceil(sorted.length * 0.95) - 1] ?? Number.NaN
    },
  },
  {
    name: 'page.paint',
    what: 'the first host row is visible, with 10 000 hosts',
    unit: 'ratio',
    bound: { max: 2 },
    against: 'a static page of the same rows',
    unavailable,
    measure: async () => {
      const { pageMs, staticMs } = await inChromium(measurePaint)
      process.stderr.write(`page.paint: ${Math.round(pageMs)} ms, static ${Math.round(staticMs)} ms\n`)
      return pageMs / staticMs
    },
  },
  {
    name: 'page.update',
    what: 'CPU of the main thread for one update with 10 000 hosts',
    unit: 'ms',
    bound: { max: 50 },
    against: '-',
    unavailable,
    measure: async () => inChromium(measureUpdate),
  },
  {
    name: 'page.size',
    what: 'script and style of the page, gzip',
    unit: 'kB',
    bound: { max: 80 },
    against: '-',
    runs: 1,
    measure: async () => {
      const files = await buildPage()
      const octets = (['page.js', 'page.css'] as const).map((name) => gzipSync(files.get(name) ?? '').length)
      return octets.reduce((sum, each) => sum + each, 0) / 1000
    },
  },
]
