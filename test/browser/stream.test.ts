import { needs } from '@seamark/kit'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launchChromium, openPage } from './browser.ts'
import { type PageServer, servePage } from './page-server.ts'
import { outage } from './worlds.ts'

/** What the browser itself writes about an answer that is an error. */
const isOfBrowser = (message: string): boolean => message.startsWith('error: Failed to load resource')

describe.skipIf(!needs('chromium'))('the stream of the page in Chromium', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterAll(async () => browser.close())

  const share = (server: PageServer, value: number): void => {
    const { state } = server.values
    server.change({
      ...state,
      clusters: state.clusters.map((each) => (each.name === 'eu1' ? { ...each, share: value } : each)),
    })
  }

  it('resumes after a cut where it was', async () => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, server.url)
    const clusters = open.page.getByRole('region', { name: 'Clusters' })
    await clusters.getByText('60 % of answers').waitFor()
    share(server, 0.61)
    await clusters.getByText('61 % of answers').waitFor()
    const { version } = server.values.state
    server.refuse(503)
    server.cut()
    await open.page.getByText('No connection to the manager').waitFor()
    // What was read stays.
    await clusters.getByText('61 % of answers').waitFor()
    share(server, 0.62)
    server.refuse()
    await clusters.getByText('62 % of answers').waitFor()
    await open.page.getByText('No connection').waitFor({ state: 'detached' })
    expect(server.resumedFrom).toEqual([undefined, version])
    expect(open.messages.filter((message) => !isOfBrowser(message))).toEqual([])
  })

  it('takes a snapshot when the manager does not know its version any more', async () => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, server.url)
    const clusters = open.page.getByRole('region', { name: 'Clusters' })
    await clusters.getByText('60 % of answers').waitFor()
    const { state } = server.values
    server.values.state = {
      ...state,
      version: 'other.1',
      clusters: state.clusters.map((each) => ({ ...each, share: 0.63 })),
    }
    server.cut()
    await clusters.getByText('63 % of answers').first().waitFor()
    expect(server.resumedFrom).toEqual([undefined, state.version])
  })

  it('reads a snapshot after a difference that is not for its version', async () => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, server.url)
    const clusters = open.page.getByRole('region', { name: 'Clusters' })
    await clusters.getByText('60 % of answers').waitFor()
    server.send('difference', { base: 'other.7', version: 'other.8' }, 'other.8')
    await expect.poll(() => server.resumedFrom).toEqual([undefined, undefined])
    await clusters.getByText('60 % of answers').waitFor()
  })

  it('takes a difference that comes in pieces', async () => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, server.url)
    const { page } = open
    await page.getByRole('region', { name: 'Clusters' }).getByText('60 % of answers').waitFor()
    const { state } = server.values
    const hosts = state.hosts.map((host) => ({
      ...host,
      owner: `Ingress ä/${'x'.repeat(200_000)}`,
      state: 'as it should be' as const,
    }))
    server.change({ ...state, hosts })
    await page.getByRole('region', { name: 'Flow' }).getByText('Ingress ä').first().waitFor()
    expect(open.messages).toEqual([])
  })

  it('says how old the data is while the API server of the hub is down', async () => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, server.url)
    const { page } = open
    await page.getByText('data is current').waitFor()
    const { readAt } = server.values.state.manager.data
    const at = new Date(Date.parse(readAt) + 5 * 60_000).toISOString()
    server.beat({ at, data: { isCurrent: false, readAt, message: 'connect ECONNREFUSED' } })
    await page.getByText('The API server of the hub cannot be read: connect ECONNREFUSED').waitFor()
    await page.getByText(/^data 5 min old$/).waitFor()
    expect(await page.getByRole('complementary').innerText()).toContain('02:14:02')
    server.beat({ at, data: { isCurrent: true, readAt: at } })
    await page.getByText('data is current').waitFor()
    expect(await page.getByRole('complementary').count()).toBe(0)
  })

  it('waits for a manager that is not ready', async () => {
    await using server = await servePage(outage())
    server.refuse(503)
    await using open = await openPage(browser, server.url)
    await open.page.getByText('the test answers NotReady').waitFor()
    server.refuse()
    await open.page.getByRole('region', { name: 'Flow' }).waitFor()
    expect(await open.page.getByText('NotReady').count()).toBe(0)
  })

  it('asks for a token, keeps it in memory only, and asks again when it has expired', async () => {
    await using server = await servePage(outage())
    server.requireToken('first')
    await using open = await openPage(browser, `${server.url}/plan`)
    const { page } = open
    const field = page.getByLabel('Bearer token')
    await field.fill('wrong')
    await page.getByRole('button', { name: 'Read' }).click()
    await page.getByText('The token is not valid').waitFor()
    await field.fill('first')
    await field.press('Enter')
    await page.getByRole('table', { name: 'Held changes' }).waitFor()
    expect(await page.evaluate('[document.cookie, localStorage.length, sessionStorage.length, location.href]')).toEqual(
      ['', 0, 0, `${server.url}/plan`],
    )
    server.requireToken('second')
    server.send('end', { message: 'The token has expired.' })
    await page.getByText('The token has expired.').waitFor()
    // Nothing that the token gave is shown without it.
    expect(await page.getByText('ShrinkBreakerOpen').count()).toBe(0)
    await field.fill('second')
    await field.press('Enter')
    await page.getByRole('table', { name: 'Held changes' }).waitFor()
    expect(server.resumedFrom).toEqual([undefined, undefined])
    expect(open.messages.filter((message) => !isOfBrowser(message))).toEqual([])
    await page.reload()
    await field.waitFor()
  })
})
