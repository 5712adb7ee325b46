/**
 * The page of a running playground: what `seamark playground` does to it in a second terminal is seen in Chromium. One playground
 * for all tests, each of which ends its fault.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { needs } from '@seamark/kit'
import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { launchChromium, openPage, type OpenPage, violationsOf } from './browser.ts'

const seamark = join(import.meta.dirname, '../../bin/seamark')
const START_MS = 180_000
/** Until a fault is seen: probes, the API server's silence, caches. */
const POLL = { timeout: 60_000 }

describe.skipIf(!needs('chromium'))('the page of a playground, in Chromium', () => {
  const folder = mkdtempSync(join(tmpdir(), 'seamark-page-'))
  let playground: ChildProcess
  let browser: Browser
  let open: OpenPage
  let page: Page
  let url = ''

  beforeAll(async () => {
    playground = spawn(seamark, ['playground', '--fresh', '--data-dir', join(folder, 'world')], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    url = await readyAddress(playground)
    browser = await launchChromium()
    open = await openPage(browser, url)
    page = open.page
  }, START_MS)

  afterAll(async () => {
    await browser?.close()
    if (playground?.exitCode === null) {
      playground.kill('SIGINT')
      await once(playground, 'exit')
    }
    rmSync(folder, { recursive: true, force: true })
  })

  afterEach(() => expect(open.messages).toEqual([]))

  const command = async (...args: string[]): Promise<string> => {
    const { stdout } = await promisify(execFile)(seamark, ['playground', ...args, '--data-dir', join(folder, 'world')])
    return stdout
  }
  const cluster = (name: string): Locator =>
    page.getByRole('region', { name: 'Clusters' }).getByRole('listitem').filter({ hasText: name })
  const expectCluster = async (name: string, state: string): Promise<void> => {
    await expect.poll(async () => cluster(name).innerText(), POLL).toContain(state)
  }
  const visit = async (path: string): Promise<void> => {
    await page.goto(new URL(path, url).href)
    await page.getByRole('heading', { level: 1 }).waitFor()
  }
  /** Runs the test with a fault, and ends it. */
  const during = async (
    fault: readonly string[],
    end: readonly string[],
    check: () => Promise<void>,
  ): Promise<void> => {
    await visit('/')
    await command(...fault)
    try {
      await check()
    } finally {
      await command(...end)
    }
  }

  it.each([
    ['cluster', 'Unreachable'],
    ['api', 'Unreachable'],
    ['gateway', 'Unhealthy'],
    ['backends', 'Unhealthy'],
  ])('shows a cluster whose %s is stopped as %s, and when it is back as Serving', async (part, state) => {
    const parts = part === 'cluster' ? [] : ['--part', part]
    await during(['stop', 'ap1', ...parts], ['start', 'ap1', ...parts], async () => {
      await expectCluster('ap1', state)
      // Its gateway still serves: the answer keeps its address.
      if (part === 'api') await expectCluster('ap1', 'answers still')
      const needs = page.getByRole('region', { name: 'Needs you' })
      await expect.poll(async () => needs.getByRole('listitem').count(), POLL).toBeGreaterThan(0)
    })
    await expectCluster('ap1', 'Serving')
  })

  it('shows a cluster that is drained, and one that drains and is lost as lost', async () => {
    const { kubeconfig } = JSON.parse(await command('status', '-o', 'json')) as { kubeconfig: string }
    await visit('/')
    await promisify(execFile)(seamark, ['drain', 'us1', '--kubeconfig', kubeconfig])
    try {
      await expectCluster('us1', 'Drained')
      expect(await cluster('us1').innerText()).not.toContain('answers still')
      await command('stop', 'us1', '--part', 'api')
      await expectCluster('us1', 'Unreachable')
    } finally {
      await command('reset')
    }
    await expectCluster('us1', 'Serving')
    const lastHour = await page.getByRole('region', { name: 'Last hour' }).innerText()
    expect(lastHour).not.toMatch(/broken at plan/)
  })

  it('shows on the page of a host what the DNS server answers now', async () => {
    const { dns } = JSON.parse(await command('status', '-o', 'json')) as { dns: string }
    await visit('/hosts/shop.demo.test')
    const answers = page.getByRole('region', { name: 'Answers' })
    const addresses = async (): Promise<string[]> => (await answers.locator('.record-value').allInnerTexts()).toSorted()
    await expect.poll(addresses, POLL).toEqual(['127.0.0.1', '127.0.0.2', '127.0.0.3'])
    expect(await answers.innerText()).toContain(dns)
    await command('stop', 'us1', '--part', 'gateway')
    try {
      await expect.poll(addresses, POLL).toEqual(['127.0.0.1', '127.0.0.3'])
      const hops = page.getByRole('list', { name: 'Hops' })
      await expect.poll(async () => hops.innerText(), POLL).toContain('degraded')
    } finally {
      await command('start', 'us1', '--part', 'gateway')
    }
    await expect.poll(addresses, POLL).toEqual(['127.0.0.1', '127.0.0.2', '127.0.0.3'])
  })

  it('shows the requests of a client at the gateways that get them', async () => {
    await during(
      ['traffic', 'shop.demo.test', '--rate', '60'],
      ['traffic', 'shop.demo.test', '--rate', '0'],
      async () => {
        const rate = async (): Promise<number> =>
          Number(/([\d.]+) requests\/s/.exec(await cluster('eu1').innerText())?.[1] ?? 0)
        await expect.poll(rate, POLL).toBeGreaterThan(10)
      },
    )
  })

  it('shows backends that answer too slowly', async () => {
    await during(['slow', 'us1', '5000'], ['slow', 'us1', '0'], async () => expectCluster('us1', 'Unhealthy'))
    await expectCluster('us1', 'Serving')
  })

  it('shows changes that a provider does not take', async () => {
    await during(['provider', 'down'], ['provider', 'up'], async () => {
      await command('stop', 'us1', '--part', 'gateway')
      try {
        const lastHour = page.getByRole('region', { name: 'Last hour' })
        await expect.poll(async () => lastHour.innerText(), POLL).toContain('ProviderUnavailable')
      } finally {
        await command('start', 'us1', '--part', 'gateway')
      }
    })
    await expectCluster('us1', 'Serving')
  })

  it('shows a mass deletion that is held, in Needs you and on /plan, without a violation of axe', async () => {
    await during(['bad-release'], ['reset'], async () => {
      const needs = page.getByRole('region', { name: 'Needs you' })
      await expect.poll(async () => needs.innerText(), POLL).toContain('ShrinkBreakerOpen')
      expect(await needs.innerText()).toContain('seamark approve')
      // Nothing declares it any more, and it is answered.
      const flow = page.getByRole('region', { name: 'Flow' })
      await expect.poll(async () => flow.innerText(), POLL).toContain('team-1.demo.test')
      expect(await violationsOf(page)).toEqual([])
      await visit('/plan')
      const held = page.getByRole('table', { name: 'Held changes' })
      await held.getByRole('cell', { name: 'ShrinkBreakerOpen' }).first().waitFor()
      await visit('/hosts/team-1.demo.test')
      await expect
        .poll(async () => page.getByRole('region', { name: 'Answers' }).innerText(), POLL)
        .toContain('127.0.0.4')
      expect(await violationsOf(page)).toEqual([])
    })
  })

  async function readyAddress(program: ChildProcess): Promise<string> {
    if (program.stdout === null) throw new Error('the playground has no output')
    for await (const line of createInterface({ input: program.stdout }))
      if (line.startsWith('ready ')) {
        program.stdout.resume()
        return line.slice('ready '.length)
      }
    throw new Error('the playground ended before it was ready')
  }
})
