import { needs } from '@seamark/kit'
import { exampleState } from '@seamark/dashboard/testing'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DESK, launchChromium, openPage, PHONE, sidewaysOf } from './browser.ts'
import { servePage } from './page-server.ts'
import { calmWorld, emptyWorld, hostileWorld, largeWorld, manyClusters, outage } from './worlds.ts'

const STATES = ['Unreachable', 'Draining', 'Drained', 'Unhealthy', 'Serving']

describe.skipIf(!needs('chromium'))('the overview in Chromium', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterAll(async () => browser.close())

  const clusterTexts = async (page: Page): Promise<string[]> =>
    page.getByRole('region', { name: 'Clusters' }).getByRole('listitem').allTextContents()

  /** The words for states, as whole words of the text without its layout. */
  const wordsOf = (text = ''): string[] => text.split(/[\s,]+/).filter((word) => STATES.includes(word))

  it('shows four regions, and each cluster with its name and exactly one word for its state', async () => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, server.url)
    const { page, messages } = open
    for (const name of ['Clusters', 'Flow', 'Needs you', 'Last hour'])
      await page.getByRole('region', { name, exact: true }).waitFor()
    const texts = await clusterTexts(page)
    expect(texts).toHaveLength(3)
    for (const [index, { name, state }] of exampleState.clusters.entries()) {
      expect(texts[index]?.split(/\s+/)).toContain(name)
      expect(wordsOf(texts[index])).toEqual([state])
    }
    expect(texts[0]).toContain('answers still')
    expect(texts[1]).not.toContain('answers still')
    expect(messages).toEqual([])
  })

  it.each(STATES)('follows a cluster that becomes %s', async (state) => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, server.url)
    const { page } = open
    await page.getByRole('region', { name: 'Clusters' }).waitFor()
    const clusters = server.values.state.clusters.map((cluster) =>
      cluster.name === 'eu1' ? { ...cluster, state: state as 'Serving' } : cluster,
    )
    server.change({ ...server.values.state, clusters })
    await expect.poll(async () => (await clusterTexts(page))[1]).toContain(state)
    const [, eu1 = ''] = await clusterTexts(page)
    expect(wordsOf(eu1)).toEqual([state])
  })

  it('says what needs somebody: reason, object, since when, and the command, which is copied', async () => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, server.url, { permissions: ['clipboard-read', 'clipboard-write'] })
    const { page, messages } = open
    const item = page.getByRole('region', { name: 'Needs you' }).getByRole('listitem').nth(1)
    const text = await item.innerText()
    for (const part of [
      'ShrinkBreakerOpen',
      'Zone demo.test',
      '13 of 21 sources are gone',
      '3 min',
      'seamark approve 7c1f0a2b',
    ])
      expect(text).toContain(part)
    await item.getByRole('button', { name: 'Copy seamark approve 7c1f0a2b' }).click()
    await item.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('seamark approve 7c1f0a2b')
    expect(messages).toEqual([])
  })

  it('says that nothing needs anybody, and when something last changed', async () => {
    await using server = await servePage(calmWorld(1))
    await using open = await openPage(browser, server.url)
    const text = await open.page.getByRole('region', { name: 'Needs you' }).innerText()
    expect(text).toContain('Nothing needs you')
    expect(text).toContain('02:13:43')
  })

  it('draws a band for each answer, as wide as its share', async () => {
    await using server = await servePage(calmWorld(3))
    await using open = await openPage(browser, server.url)
    const { page } = open
    const flow = page.getByRole('region', { name: 'Flow' })
    await flow.getByText('shop.demo.test').waitFor()
    const widths = await flow
      .locator('li', { hasText: 'cart.demo.test' })
      .locator('svg.bands path')
      .evaluateAll((paths) => paths.map((path) => Number(path.getAttribute('stroke-width'))))
    // Two paths for each of three answers: 60, 30 and 10 %.
    expect(widths).toHaveLength(6)
    expect((widths[0] ?? 0) / (widths[2] ?? 1)).toBeCloseTo(2, 1)
    expect((widths[2] ?? 0) / (widths[4] ?? 1)).toBeGreaterThan(2)
  })

  it('shows the flow as a table, and keeps that in the address', async () => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, server.url)
    const { page } = open
    await page.getByRole('button', { name: 'Table' }).click()
    const table = page.getByRole('table', { name: 'Flow' })
    await table.waitFor()
    expect(await table.getByRole('row').count()).toBe(6)
    expect(await table.getByRole('columnheader').allInnerTexts()).toEqual([
      'Host',
      'State',
      'Answer',
      'Is',
      'Share',
      'Cluster',
      'Gateway',
      'Service',
    ])
    await page.reload()
    await page.getByRole('table', { name: 'Flow' }).waitFor()
  })

  it('filters by what is searched for, keeps it in the address, and Escape clears it', async () => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, server.url)
    const { page, messages } = open
    const flow = page.getByRole('region', { name: 'Flow' })
    await flow.getByText('3 hosts').waitFor()
    await page.keyboard.press('/')
    const search = page.getByRole('searchbox', { name: 'Search' })
    expect(await page.evaluate("document.activeElement === document.querySelector('input[type=search]')")).toBe(true)
    await page.keyboard.type('us1')
    await flow.getByText('1 of 3 hosts').waitFor()
    expect(new URL(page.url()).searchParams.get('q')).toBe('us1')
    await page.reload()
    await flow.getByText('1 of 3 hosts').waitFor()
    expect(await search.inputValue()).toBe('us1')
    await page.keyboard.press('Escape')
    await flow.getByText('3 hosts', { exact: true }).waitFor()
    expect(new URL(page.url()).search).toBe('')
    await search.fill('203.0.113.30')
    await flow.getByText('1 of 3 hosts').waitFor()
    await search.fill('state:broken')
    await flow.getByText('xn--bcher-kva.demo.test').waitFor()
    await search.fill('api.demo')
    await flow.getByRole('link', { name: '1 record', exact: true }).waitFor()
    await search.press('Enter')
    await page.waitForURL('**/hosts/api.demo.test')
    expect(messages.filter((message) => !message.includes('404'))).toEqual([])
  })

  it('fits 1280 × 800 without scrolling, whatever it shows', async () => {
    for (const world of [emptyWorld(), calmWorld(1), calmWorld(40), outage(), manyClusters(100), largeWorld(10_000)]) {
      await using server = await servePage(world)
      await using open = await openPage(browser, server.url, { viewport: DESK })
      await open.page.getByRole('region', { name: 'Last hour' }).waitFor()
      const [width, height] = await open.page.evaluate<number[]>(
        '[document.documentElement.scrollWidth, document.documentElement.scrollHeight]',
      )
      expect({ height, width }).toEqual({ height: 800, width: 1280 })
    }
  })

  it('does not scroll sideways at 390 px, nor at 200 % zoom', async () => {
    for (const world of [outage(), hostileWorld(), manyClusters(100)]) {
      await using server = await servePage(world)
      for (const viewport of [PHONE, { width: 640, height: 400 }]) {
        await using open = await openPage(browser, server.url, { viewport })
        for (const path of ['/', '/?flow=table', '/plan', '/clusters', '/zones', '/history', ...hostPaths(world)]) {
          await open.page.goto(server.url + path)
          await open.page.getByRole('heading', { level: 1 }).waitFor()
          await open.page.getByText('Reading …').waitFor({ state: 'detached' })
          expect({ path, sideways: await sidewaysOf(open.page) }).toEqual({ path, sideways: 0 })
        }
      }
    }
  })

  const hostPaths = ({ hosts }: { hosts: ReadonlyMap<string, unknown> }): string[] =>
    [...hosts.keys()].map((name) => `/hosts/${encodeURIComponent(name)}`)
})
