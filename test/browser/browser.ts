/** Chromium, as Debian has it, and what it says while a page is open. */
import { findProgram } from '@seamark/kit'
import axe from 'axe-core'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

/** As root, without a display, and silent towards the network. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

export async function launchChromium(): Promise<Browser> {
  const executablePath = findProgram('chromium')
  if (executablePath === undefined) throw new Error('chromium is not installed')
  return chromium.launch({ executablePath, args: FLAGS })
}

export const DESK = { width: 1280, height: 800 } as const
export const PHONE = { width: 390, height: 844 } as const

export interface OpenPage extends AsyncDisposable {
  readonly page: Page
  /** What the page wrote to the console, errors that nothing caught, and requests to other hosts. */
  readonly messages: string[]
}

export async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<OpenPage> {
  const context = await browser.newContext({ viewport: DESK, timezoneId: 'UTC', ...options })
  const page = await context.newPage()
  const messages: string[] = []
  page.on('console', (message) => messages.push(`${message.type()}: ${message.text()}`))
  page.on('pageerror', (error) => messages.push(String(error)))
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) messages.push(`request to ${request.url()}`)
  })
  page.on('dialog', (dialog) => {
    messages.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  await page.goto(url)
  return { page, messages, [Symbol.asyncDispose]: () => context.close() }
}

/** One line for each element that violates a rule of axe. */
export async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  // As text: what runs in the page has types of its own.
  return page.evaluate<string[]>(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ html, any }) => id + ': ' + html + ' ' + (any[0]?.message ?? ''))))`)
}

/** How far the page can be scrolled sideways, px. */
export async function sidewaysOf(page: Page): Promise<number> {
  return page.evaluate<number>('document.scrollingElement.scrollWidth - innerWidth')
}
