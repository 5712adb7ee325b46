import { needs } from '@seamark/kit'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launchChromium, openPage } from './browser.ts'
import { servePage } from './page-server.ts'
import { HOSTILE, hostileWorld, largeWorld } from './worlds.ts'

describe.skipIf(!needs('chromium'))('the page with what nobody expects, in Chromium', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterAll(async () => browser.close())

  it('shows markup as text, in every view', async () => {
    const world = hostileWorld()
    await using server = await servePage(world)
    await using open = await openPage(browser, server.url)
    const { page, messages } = open
    const hosts = [...world.hosts.keys()]
      .filter((name) => name !== HOSTILE.rtl)
      .map((name) => `/hosts/${encodeURIComponent(name)}`)
    for (const path of ['/', '/?flow=table', '/plan', '/clusters', '/zones', '/history', ...hosts]) {
      await page.goto(server.url + path)
      await page.getByText(HOSTILE.markup).first().waitFor({ state: 'attached' })
      expect(await page.locator('img, #page script, iframe').count()).toBe(0)
    }
    expect(messages).toEqual([])
  })

  it('shows characters that would turn the text beside them as escapes', async () => {
    await using server = await servePage(hostileWorld())
    await using open = await openPage(browser, server.url)
    await open.page.getByText('gpj.\\u202eexe.shop').first().waitFor()
    expect(await open.page.evaluate("document.body.innerText.includes('\\u202E')")).toBe(false)
  })

  it('links to a name of 253 octets, and to one in punycode', async () => {
    await using server = await servePage(hostileWorld())
    await using open = await openPage(browser, server.url)
    const { page } = open
    for (const name of [HOSTILE.long, HOSTILE.punycode]) {
      await page.goto(server.url)
      await page.getByRole('region', { name: 'Flow' }).getByRole('link', { name }).first().click()
      await page.getByRole('heading', { level: 1, name }).waitFor()
      await page.getByRole('list', { name: 'Hops' }).waitFor()
      expect(new URL(page.url()).pathname).toBe(`/hosts/${name}`)
    }
  })

  it('keeps few elements of 10 000 hosts in the document, and finds each', async () => {
    await using server = await servePage(largeWorld(10_000))
    await using open = await openPage(browser, server.url)
    const { page, messages } = open
    const flow = page.getByRole('region', { name: 'Flow' })
    // Grouped by zone: what needs a look, and two zones.
    await flow.getByRole('link', { name: 'scale.test', exact: true }).waitFor()
    expect(await flow.getByRole('listitem').count()).toBeLessThan(20)
    await flow.getByRole('link', { name: 'scale.test', exact: true }).click()
    const table = page.getByRole('table', { name: 'Flow' })
    await table.getByText('host-00000.scale.test').first().waitFor()
    expect(await table.getAttribute('aria-rowcount')).toBe('30001')
    expect(await page.locator('*').count()).toBeLessThan(2500)
    await page
      .getByRole('group', { name: 'Hosts and their answers' })
      .evaluate((element) => element.scrollTo(0, element.scrollHeight))
    await table.getByText('host-09999.scale.test').first().waitFor()
    await page.getByRole('searchbox', { name: 'Search' }).fill('host-04711')
    await flow.getByText('1 of 10 003 hosts'.replace('10 003', '10\u202f003')).waitFor()
    await table.getByText('host-04711.scale.test').first().waitFor()
    expect(messages).toEqual([])
  })

  it('shows the change of one of 10 000 hosts', async () => {
    await using server = await servePage(largeWorld(10_000))
    await using open = await openPage(browser, `${server.url}/?flow=table&q=host-04711`)
    const { page, messages } = open
    const table = page.getByRole('table', { name: 'Flow' })
    await table.getByText('as it should be').first().waitFor()
    const { state } = server.values
    const hosts = state.hosts.map((host) =>
      host.name === 'host-04711.scale.test' ? { ...host, state: 'broken' as const } : host,
    )
    server.change({ ...state, hosts })
    await table.getByText('broken').first().waitFor()
    expect(messages).toEqual([])
  })
})
