import { needs } from '@seamark/kit'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DESK, launchChromium, openPage, PHONE, violationsOf } from './browser.ts'
import { servePage } from './page-server.ts'
import { calmWorld, emptyWorld, hostileWorld, manyClusters, outage } from './worlds.ts'

const VIEWS = [
  '/',
  '/?flow=table',
  '/?q=us1',
  '/?q=nothing',
  '/plan',
  '/clusters',
  '/clusters/us1',
  '/zones',
  '/history',
]

describe.skipIf(!needs('chromium'))('the page for everybody', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterAll(async () => browser.close())

  for (const colorScheme of ['light', 'dark'] as const)
    it.each([
      ['in an outage', outage, [...VIEWS, '/hosts/shop.demo.test', '/hosts/unknown.test']],
      [
        'when it is empty',
        emptyWorld,
        colorScheme === 'light' ? ['/', '/plan', '/clusters', '/zones', '/history'] : ['/'],
      ],
      ['with many hosts', () => calmWorld(45), ['/']],
      ['with many clusters', () => manyClusters(20), ['/']],
      ['with hostile names', hostileWorld, ['/']],
    ])(`has no violation of axe in the ${colorScheme} theme %s`, async (_, world, paths) => {
      await using server = await servePage(world())
      await using open = await openPage(browser, server.url, { colorScheme, viewport: DESK })
      for (const path of paths) {
        await open.page.goto(server.url + path)
        await open.page.getByRole('heading', { level: 1 }).waitFor()
        await open.page.getByText('Reading …').waitFor({ state: 'detached' })
        expect({ path, violations: await violationsOf(open.page) }).toEqual({ path, violations: [] })
      }
      await open.page.setViewportSize(PHONE)
      expect(await violationsOf(open.page)).toEqual([])
    })

  it('has no violation of axe while it asks for a token, or has no connection', async () => {
    await using server = await servePage(outage())
    for (const colorScheme of ['light', 'dark'] as const) {
      server.requireToken('secret')
      await using open = await openPage(browser, server.url, { colorScheme })
      await open.page.getByLabel('Bearer token').waitFor()
      expect(await violationsOf(open.page)).toEqual([])
      server.requireToken(undefined)
      await open.page.reload()
      await open.page.getByRole('region', { name: 'Flow' }).waitFor()
      server.refuse(503)
      server.cut()
      await open.page.getByText('No connection to the manager').waitFor()
      expect(await violationsOf(open.page)).toEqual([])
      server.refuse()
    }
  })

  it('is used by the keyboard alone', async () => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, server.url)
    const { page, messages } = open
    await page.getByRole('region', { name: 'Flow' }).waitFor()
    await page.keyboard.press('Tab')
    expect(await focused(page)).toBe('Skip to content')
    // In the order of reading: the head, the clusters, the flow, what needs somebody.
    const order: string[] = []
    while (order.at(-1) !== 'Changes of the last hour' && order.length < 60) {
      await page.keyboard.press('Tab')
      order.push(await focused(page))
    }
    const places = [
      'Overview',
      'Search',
      'Clusters and their states',
      'ap1',
      'Table',
      'Hosts and their answers',
      'api.demo.test',
      'What needs you',
      'Copy seamark explain xn--bcher-kva.demo.test',
      'Changes of the last hour',
    ].map((name) => order.indexOf(name))
    expect(places).not.toContain(-1)
    expect(places).toEqual(places.toSorted((a, b) => a - b))

    // To a host by the search, from there to the plan, and what is focused is what was opened.
    await page.keyboard.press('/')
    await page.keyboard.type('shop.demo.test')
    await page.keyboard.press('Enter')
    await page.getByRole('list', { name: 'Hops' }).waitFor()
    expect(await focused(page)).toBe('shop.demo.test')
    await tabTo(page, 'Path')
    await page.keyboard.press('Control+A')
    await page.keyboard.type('/cart')
    await page.keyboard.press('Enter')
    await page.getByText('routes[0]').waitFor()
    await tabTo(page, 'Ingress shop/web networking.k8s.io/v1')
    await page.keyboard.press('Enter')
    await page.getByText('kind: Ingress').waitFor()
    await page.keyboard.press('Home')
    for (let step = 0; (await focused(page)) !== 'Plan' && step < 60; step++) await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Enter')
    await page.getByRole('table', { name: 'Held changes' }).waitFor()
    expect(await focused(page)).toBe('Plan')
    expect(messages).toEqual([])
  })

  it('shows where the focus is', async () => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, server.url)
    await open.page.getByRole('region', { name: 'Flow' }).waitFor()
    for (let step = 0; step < 12; step++) {
      await open.page.keyboard.press('Tab')
      expect(await open.page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).not.toBe('none')
    }
  })

  it('moves nothing when the system asks for less motion', async () => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, server.url, { reducedMotion: 'reduce' })
    await open.page.getByRole('region', { name: 'Flow' }).waitFor()
    const moving = await open.page.evaluate(`[...document.querySelectorAll('*')].filter((element) => {
      const { transitionDuration, animationName } = getComputedStyle(element)
      return transitionDuration !== '0s' || animationName !== 'none'
    }).length`)
    expect(moving).toBe(0)
  })

  it('reads out what is added to what needs somebody, and nothing else', async () => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, server.url)
    const region = open.page.getByRole('region', { name: 'Needs you' })
    await region.waitFor()
    expect(await open.page.locator('[aria-live=polite]').count()).toBe(1)
    expect(await region.locator('[aria-live=polite]').getAttribute('aria-relevant')).toBe('additions')
  })

  /** The accessible name of what has the focus. */
  async function focused(page: Page): Promise<string> {
    return page.evaluate<string>(
      "document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText.trim()",
    )
  }

  async function tabTo(page: Page, name: string): Promise<void> {
    for (let step = 0; step < 60; step++) {
      await page.keyboard.press('Tab')
      if ((await focused(page)) === name) return
    }
    throw new Error(`Tab does not reach ${name}`)
  }
})
