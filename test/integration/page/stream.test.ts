/** The stream with readers that come back, do not read, or are many; names that nobody should trust; no hosts and many. */
import type { State } from '@seamark/dashboard'
import { DNSEndpoint, DNSLoadBalancer } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import {
  open,
  type PageEnvironment,
  POLL,
  readState,
  request,
  startPage,
  StreamReader,
  ZONE,
} from './page-environment.ts'

async function put(page: PageEnvironment, name: string, target: string): Promise<void> {
  await page.client.apply(DNSEndpoint, {
    metadata: { namespace: 'default', name: name.replaceAll('.', '-') },
    spec: { endpoints: [{ dnsName: name, recordType: 'A', targets: [target], recordTTL: 60 }] },
  })
}

const answerOf = (state: State | undefined, name: string) =>
  state?.hosts
    .find((host) => host.name === name)
    ?.answers.filter(({ share }) => share > 0)
    .map(({ address }) => address)

const NAME = `web.${ZONE}`

describe('the stream', () => {
  it('without hosts there is a snapshot, and a host that comes, changes and goes are differences', async () => {
    await using page = await startPage()
    const reader = await StreamReader.open(page.url)
    await expect.poll(() => reader.state?.hosts, POLL).toEqual([])
    await put(page, NAME, '203.0.113.1')
    await expect.poll(() => answerOf(reader.state, NAME), POLL).toEqual(['203.0.113.1'])
    await put(page, NAME, '203.0.113.2')
    await expect.poll(() => answerOf(reader.state, NAME), POLL).toEqual(['203.0.113.2'])
    const change = reader.state?.lastHour.find(({ text }) => text.includes('203.0.113.2'))
    expect(change).toMatchObject({ what: 'verified', reason: 'AnswerChanged', host: NAME })
    await page.client.delete(DNSEndpoint, 'default/web-demo-test')
    await expect.poll(() => reader.state?.hosts, POLL).toEqual([])
    expect(reader.kinds.filter((kind) => kind === 'snapshot')).toHaveLength(1)
    reader.close()
  })

  it('one that comes back gets what it missed; with an id that is not known it gets a snapshot', async () => {
    await using page = await startPage()
    await put(page, NAME, '203.0.113.1')
    const first = await StreamReader.open(page.url)
    await expect.poll(() => answerOf(first.state, NAME), POLL).toEqual(['203.0.113.1'])
    const { version } = await readState(page.url)
    await expect.poll(() => first.state?.version, POLL).toBe(version)
    first.close()
    await put(page, NAME, '203.0.113.2')
    await expect.poll(async () => answerOf(await readState(page.url), NAME), POLL).toEqual(['203.0.113.2'])
    const again = await StreamReader.open(page.url, version)
    again.state = first.state
    await expect.poll(() => answerOf(again.state, NAME), POLL).toEqual(['203.0.113.2'])
    expect(again.kinds).not.toContain('snapshot')
    again.close()
    for (const id of ['nonsense', 'deadbeef.3', `${version.split('.')[0]}.999999`, '']) {
      const stale = await StreamReader.open(page.url, id)
      await expect.poll(() => stale.kinds[0], POLL).toBe('snapshot')
      stale.close()
    }
  })

  it('200 readers get the same, and one that does not read gets a new snapshot when it reads again', async () => {
    await using page = await startPage()
    for (let index = 0; index < 40; index++) await put(page, `h${index}.${ZONE}`, '203.0.113.1')
    await expect.poll(async () => (await readState(page.url)).hosts.length, POLL).toBe(40)
    // It reads nothing: what it could not be sent is not kept for it.
    const stuck = await open(page.url, '/api/v1/stream')
    stuck.pause()
    const readers = await Promise.all(Array.from({ length: 200 }, async () => StreamReader.open(page.url)))
    await expect.poll(() => readers.every(({ state }) => state?.hosts.length === 40), POLL).toBe(true)
    await put(page, NAME, '203.0.113.9')
    await expect.poll(() => readers.every(({ state }) => answerOf(state, NAME)?.[0] === '203.0.113.9'), POLL).toBe(true)
    // The probes and the API are served meanwhile.
    expect((await request(page.url, '/api/v1/history')).status).toBe(200)
    const late = new StreamReader(stuck)
    stuck.resume()
    await expect.poll(() => answerOf(late.state, NAME), POLL).toEqual(['203.0.113.9'])
    for (const reader of [...readers, late]) reader.close()
  })

  it('while the API server is down it says how old the data is, and keeps it', async () => {
    await using page = await startPage()
    await put(page, NAME, '203.0.113.1')
    const reader = await StreamReader.open(page.url)
    await expect.poll(() => answerOf(reader.state, NAME), POLL).toEqual(['203.0.113.1'])
    expect(reader.beat?.data.isCurrent).toBe(true)
    await page.server.stop()
    await expect.poll(() => reader.beat?.data.isCurrent, POLL).toBe(false)
    const lostAt = reader.beat?.data.readAt ?? ''
    expect(Date.parse(lostAt)).toBeLessThanOrEqual(Date.now())
    expect(reader.beat?.data.message).toBeTruthy()
    const state = await readState(page.url)
    expect(answerOf(state, NAME)).toEqual(['203.0.113.1'])
    expect(state.manager.data).toMatchObject({ isCurrent: false, readAt: lostAt })
    const answer = await request(page.url, `/api/v1/hosts/${NAME}`)
    expect([200, 503]).toContain(answer.status)
    reader.close()
  })
})

describe('names', () => {
  const long = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(51)}.${ZONE}`
  const names = [
    `<img src=x onerror=alert(1)>.${ZONE}`,
    `"'&;$(touch x).${ZONE}`,
    `a\u202Eb\u200F.${ZONE}`,
    `xn--bcher-kva.${ZONE}`,
    `*.${ZONE}`,
    `__proto__.${ZONE}`,
    long,
    `${'x.'.repeat(600)}${ZONE}`,
  ]

  it('are shown as they are in JSON, and quoted in commands; none stops the others', async () => {
    await using page = await startPage()
    for (const [index, name] of names.entries()) {
      await page.client.create(DNSLoadBalancer, {
        metadata: { namespace: 'default', name: `n${index}` },
        spec: { DNSName: name },
      })
    }
    await put(page, NAME, '203.0.113.1')
    await expect.poll(async () => answerOf(await readState(page.url), NAME), POLL).toEqual(['203.0.113.1'])
    const state = await readState(page.url)
    expect(state.hosts.map(({ name }) => name)).toEqual(expect.arrayContaining([`xn--bcher-kva.${ZONE}`, long, NAME]))
    for (const { command, host } of state.needsYou) {
      // A shell reads one word.
      expect(command, host).toMatch(/^seamark explain (?:[A-Za-z0-9][A-Za-z0-9._/:-]*|'(?:[^'\u202E\u200F]|'\\'')*')$/)
    }
    for (const { name } of state.hosts) {
      const { status, text } = await request(page.url, `/api/v1/hosts/${encodeURIComponent(name)}`)
      expect(status, name).toBe(200)
      expect(JSON.parse(text)).toMatchObject({ host: { name } })
    }
  })
})
