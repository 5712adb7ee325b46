/**
 * From a verdict of the prober in the manager until the page in Chromium shows it: status, watch, difference, stream, DOM. One
 * backend after another stops; each is the second endpoint of a load balancer of its own.
 */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AppOptions } from '@seamark/operator'
import { BalanceConfig, DNSLoadBalancer, DNSLoadBalancerEndpoint } from '@seamark/operator'
import { proberInThisThread } from '@seamark/operator/testing'
import type { Browser } from 'playwright-core'
import { buildPage } from '../../../scripts/build-page.mjs'
import { openPage } from '../../browser/browser.ts'
import { startPage, ZONE } from '../../integration/page/page-environment.ts'

const HOSTS = 20
/** Addresses of the two endpoints. */
const [STAYS, STOPS] = ['127.0.0.1', '127.0.0.2'] as const
const WAIT_MS = 30_000

type StartThread = NonNullable<NonNullable<AppOptions['balance']>['startThread']>

/** Milliseconds from each verdict until it is seen, in no order. */
export async function measureSeen(browser: Browser): Promise<number[]> {
  const backends: Server[] = []
  try {
    return await measure(browser, backends)
  } finally {
    for (const backend of backends) stop(backend)
  }
}

async function measure(browser: Browser, backends: Server[]): Promise<number[]> {
  const files = await buildPage()
  const assetOf = (name: 'index.html' | 'page.js' | 'page.css' | 'icon.svg', type: string) => ({
    body: files.get(name) ?? Buffer.of(),
    type,
    etag: `"${name}"`,
  })
  const last = new Map<string, string>()
  /** Of each target that was healthy, in order. */
  const falls: number[] = []
  const startThread: StartThread = (settings, events) =>
    proberInThisThread(4)(settings, {
      ...events,
      onReports: (reports) => {
        for (const { key, verdict } of reports) {
          if (verdict === 'unhealthy' && last.get(key) === 'healthy') falls.push(Date.now())
          last.set(key, verdict)
        }
        events.onReports(reports)
      },
    })
  await using manager = await startPage(
    {},
    {
      assets: {
        html: assetOf('index.html', 'text/html; charset=utf-8'),
        script: assetOf('page.js', 'text/javascript; charset=utf-8'),
        style: assetOf('page.css', 'text/css; charset=utf-8'),
        icon: assetOf('icon.svg', 'image/svg+xml'),
      },
    },
    { balance: { config: BalanceConfig.parse({ enabled: true }), startThread } },
  )
  for (let index = 0; index < HOSTS; index++) {
    const port = await startPair(backends)
    const name = `app-${index}`
    await manager.client.create(DNSLoadBalancer, {
      metadata: { namespace: 'default', name },
      spec: {
        DNSName: `${name}.${ZONE}`,
        type: 'Balanced',
        healthPath: '/',
        healthCheck: { scheme: 'http', port, profile: 'fast' },
      },
    })
    for (const ipaddress of [STAYS, STOPS])
      await manager.client.create(DNSLoadBalancerEndpoint, {
        metadata: { namespace: 'default', name: `${name}-${ipaddress.replaceAll('.', '-')}` },
        spec: { loadbalancer: name, ipaddress },
      })
  }
  await using open = await openPage(browser, `${manager.url}?flow=table`)
  const { page } = open
  const rowsWith = (word: string): string =>
    `[...document.querySelectorAll('tbody tr')].filter((row) => row.textContent.includes('${word}')).length`
  await until(async () => (await page.evaluate(rowsWith('answered'))) === 2 * HOSTS)
  // The time of each change that leaves one answer less.
  await page.evaluate(`{
    let left = ${2 * HOSTS}
    globalThis.seen = []
    new MutationObserver(() => {
      const now = ${rowsWith('answered')}
      for (; left > now; left--) seen.push(Date.now())
    }).observe(document.body, { subtree: true, childList: true, characterData: true })
  }`)
  const waits: number[] = []
  for (let index = 0; index < HOSTS; index++) {
    const backend = backends[2 * index + 1]
    if (backend !== undefined) stop(backend)
    const seen = await until(async () => {
      const times = await page.evaluate<number[]>('seen')
      return times[index]
    })
    const fell = falls[index]
    if (fell === undefined || falls.length !== index + 1) throw new Error(`${falls.length} verdicts, not ${index + 1}`)
    waits.push(seen - fell)
  }
  return waits
}

/** Two backends on one port. */
async function startPair(backends: Server[]): Promise<number> {
  let port = 0
  for (const address of [STAYS, STOPS]) {
    const server = createServer((_, response) => response.end('ok'))
    backends.push(server)
    server.listen(port, address)
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  }
  return port
}

function stop(backend: Server): void {
  backend.closeAllConnections()
  backend.close()
}

async function until<T>(look: () => Promise<T>): Promise<NonNullable<T>> {
  const end = performance.now() + WAIT_MS
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== null && found !== false) return found
    if (performance.now() > end) throw new Error('the page does not show it')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
