/** Time of the main thread of Chromium for one difference with 10 000 hosts, ms. */
import type { Browser, CDPSession } from 'playwright-core'
import { openPage } from '../../browser/browser.ts'
import { servePage } from '../../browser/page-server.ts'
import { largeWorld } from '../../browser/worlds.ts'
import { HOSTS } from './paint.ts'

const UPDATES = 20
/** As often as a manager sends differences, at most. */
const PERIOD_MS = 200
/** Hosts that one difference changes: 20 changes a second in five differences. */
const CHANGED = 4

export async function measureUpdate(browser: Browser): Promise<number> {
  await using server = await servePage(largeWorld(HOSTS))
  await using open = await openPage(browser, server.url)
  const { page } = open
  await page.getByRole('region', { name: 'Flow' }).getByText('scale.test').first().waitFor()
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  const pause = async (): Promise<void> => new Promise((resolve) => setTimeout(resolve, PERIOD_MS))
  for (let warm = 0; warm < 5; warm++) {
    change(warm)
    await pause()
  }
  const idleFrom = await taskMs(session)
  for (let update = 0; update < UPDATES; update++) await pause()
  const from = await taskMs(session)
  for (let update = 0; update < UPDATES; update++) {
    change(update)
    await pause()
  }
  const to = await taskMs(session)
  // What the page does anyway, such as ages that count, is no part of an update.
  return (to - from - (from - idleFrom)) / UPDATES

  function change(round: number): void {
    const { state } = server.values
    const hosts = [...state.hosts]
    for (let index = 0; index < CHANGED; index++) {
      const at = (round * 97 + index * 2503) % hosts.length
      const host = hosts[at]
      if (host !== undefined) hosts[at] = { ...host, state: host.state === 'degraded' ? 'as it should be' : 'degraded' }
    }
    server.change({ ...state, hosts, changedAt: new Date().toISOString() })
  }
}

async function taskMs(session: CDPSession): Promise<number> {
  const { metrics } = await session.send('Performance.getMetrics')
  return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN) * 1000
}
