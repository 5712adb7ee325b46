import { needs } from '@seamark/kit'
import { exampleHostPage } from '@seamark/dashboard/testing'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launchChromium, openPage } from './browser.ts'
import { servePage } from './page-server.ts'
import { outage } from './worlds.ts'

describe.skipIf(!needs('chromium'))('the views of the page in Chromium', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterAll(async () => browser.close())

  it('shows the hops of a host, in order, with code, sentence, object and time', async () => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, `${server.url}/hosts/shop.demo.test`)
    const { page, messages } = open
    const texts = await page.getByRole('list', { name: 'Hops' }).getByRole('listitem').allInnerTexts()
    expect(texts).toHaveLength(exampleHostPage.hops.length)
    for (const [index, { name, text }] of exampleHostPage.hops.entries()) {
      expect(texts[index]).toContain(name)
      expect(texts[index]).toContain(text)
    }
    for (const part of ['degraded', 'ClusterUnreachable', 'Cluster ap1', '02:13:41']) expect(texts[4]).toContain(part)
    expect(messages).toEqual([])
  })

  it('shows what each server answers now, and the TTL that counts down', async () => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, `${server.url}/hosts/shop.demo.test`)
    const answers = open.page.getByRole('region', { name: 'Answers' })
    const text = await answers.innerText()
    for (const part of ['127.0.0.1:5353', '203.0.113.10', '203.0.113.20', 'the former answer'])
      expect(text).toContain(part)
    await answers.getByText('TTL 30 → 27 s').first().waitFor()
  })

  it('reads a host again when it changes', async () => {
    const world = outage()
    await using server = await servePage(world)
    await using open = await openPage(browser, `${server.url}/hosts/shop.demo.test`)
    const answers = open.page.getByRole('region', { name: 'Answers' })
    await answers.getByText('203.0.113.20').waitFor()
    const host = {
      ...exampleHostPage.host,
      text: 'shop.demo.test is as it should be',
      state: 'as it should be' as const,
    }
    world.hosts = new Map([
      [
        host.name,
        {
          ...exampleHostPage,
          host,
          answers: exampleHostPage.answers
            .slice(0, 1)
            .map((answer) => ({ ...answer, records: [{ type: 'A', value: '203.0.113.99', ttl: 30 }] })),
        },
      ],
    ])
    const { state } = server.values
    server.change({ ...state, hosts: state.hosts.map((each) => (each.name === host.name ? host : each)) })
    await answers.getByText('203.0.113.99').waitFor()
    expect(await answers.getByText('203.0.113.20').count()).toBe(0)
  })

  it('says which rule takes a request, and shows the objects as YAML', async () => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, `${server.url}/hosts/shop.demo.test`)
    const { page, messages } = open
    const rule = page.getByRole('region', { name: 'Which rule takes this request' })
    await rule.getByRole('textbox', { name: 'Path' }).fill('/api/users')
    await rule.getByRole('button', { name: 'Ask' }).click()
    await rule.getByText('HTTPProxy shop/api routes[0], Service api:80').waitFor()
    const objects = page.getByRole('region', { name: 'Objects' })
    await objects.getByText('Ingress shop/web', { exact: true }).click()
    await objects.getByText('apiVersion: networking.k8s.io/v1').waitFor()
    await objects.getByText('GlobalIngress shop/web').click()
    await objects.getByText('you may not get globalingresses').waitFor()
    expect(messages).toEqual([])
  })

  it('says that a host is not known', async () => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, `${server.url}/hosts/other.demo.test`)
    await open.page.getByText('No host of this name is known').waitFor()
    expect(await open.page.getByRole('main').innerText()).toContain('seamark explain other.demo.test')
  })

  it('shows what is held and why, what is pending, and zones that could not be read', async () => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, `${server.url}/plan`)
    const { page, messages } = open
    const held = page.getByRole('table', { name: 'Held changes' })
    await held.getByRole('cell', { name: 'ShrinkBreakerOpen' }).waitFor()
    expect(await held.innerText()).toContain('seamark approve 7c1f0a2b')
    const changes = page.getByRole('table', { name: 'Changes of demo.test' })
    expect(await changes.innerText()).toContain('203.0.113.10, 203.0.113.20, 203.0.113.30')
    await page.getByText('192.0.2.53 does not answer').waitFor()
    expect(messages).toEqual([])
  })

  it('marks the records that are not ours', async () => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, `${server.url}/zones`)
    const records = open.page.getByRole('table', { name: 'Records' })
    await records.waitFor()
    expect(await records.getByRole('row', { name: /api\.demo\.test/ }).innerText()).toContain('ours')
    expect(await records.getByRole('row', { name: /bcher/ }).innerText()).toContain('external-dns/default')
  })

  it.each([
    ['/', 'Overview'],
    ['/plan', 'Plan'],
    ['/clusters', 'Clusters'],
    ['/clusters/us1', 'us1'],
    ['/zones', 'Zones and records'],
    ['/zones/demo.test', 'demo.test'],
    ['/history', 'History'],
    ['/hosts/shop.demo.test', 'shop.demo.test'],
  ])('opens %s by its address, and by going back to it', async (path, title) => {
    await using server = await servePage(outage())
    await using open = await openPage(browser, server.url + path)
    const { page, messages } = open
    const heading = page.getByRole('heading', { level: 1, name: title, exact: true })
    await heading.waitFor()
    expect(await page.title()).toBe(`${title} · Seamark`)
    await page.getByRole('link', { name: path === '/history' ? 'Plan' : 'History' }).click()
    await heading.waitFor({ state: 'detached' })
    await page.goBack()
    await heading.waitFor()
    expect(messages).toEqual([])
  })
})
