/**
 * The playground as a stranger meets it: every line that it prints is pasted, every fault is seen where clients see it, and
 * nothing is left behind. One world serves all tests of the first part: its tour is played once, and each test resets it.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configFromText, connect, ConfigMap, poll, systemClock } from '@seamark/kube'
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { endAll, Machine, type Playground, type Ran, type Status } from './shipped-playground.ts'

const scratch = mkdtempSync(join(tmpdir(), 'pg-'))
const temporary = join(scratch, 'tmp')
const world = join(scratch, 'world')
mkdirSync(temporary)
const machine = new Machine(temporary)
const SHOP = 'shop.demo.test'
/** Longer than anything takes on a busy machine. */
const WITHIN_MS = 45_000

let running: Playground
let exported = ''

beforeAll(async () => {
  running = await machine.start(['--data-dir', world])
  exported = /export KUBECONFIG=(\S+)/.exec(running.lines.join('\n'))?.[1] ?? ''
})

afterAll(async () => {
  await endAll()
  rmSync(scratch, { recursive: true, force: true })
})

async function status(flags = ''): Promise<Status> {
  const { stdout, stderr, code } = await machine.seamark(`playground status -o json${flags}`)
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as Status
}

/** With our own dig, as another client would. */
async function dig(host: string, { dns }: Pick<Status, 'dns'>): Promise<string[]> {
  const [address = '', port = ''] = dns.split(':')
  const { stdout } = await machine.seamark(`dig @${address} -p ${port} ${host} +short`)
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .sort()
}

async function untilIs<T>(read: () => Promise<T>, wanted: T): Promise<void> {
  let last: T | undefined
  const check = async () => {
    last = await read()
    return JSON.stringify(last) === JSON.stringify(wanted) ? true : undefined
  }
  await poll(check, { clock: systemClock, intervalMs: 50, timeoutMs: WITHIN_MS })
  expect(last).toEqual(wanted)
}

async function fault(args: string): Promise<Ran> {
  const ran = await machine.seamark(`playground ${args}`)
  expect(ran).toMatchObject({ code: 0, stderr: '' })
  return ran
}

const stateOf = async (name: string): Promise<string | undefined> =>
  (await status()).clusters.find((cluster) => cluster.name === name)?.state

describe('the playground', () => {
  it('ends its output with one export, at most eight commands, and `ready` with the page', async () => {
    const { page, kubeconfig } = await status()
    expect(running.lines.at(-1)).toBe(`ready ${page}`)
    expect(running.lines.filter((line) => line.includes('export '))).toEqual([`export KUBECONFIG=${exported}`])
    expect(kubeconfig).toBe(exported)
    const shell = await fetch(page)
    expect(shell.headers.get('content-security-policy')).toContain("default-src 'none'")
    const { hosts } = (await (await fetch(`${page}api/v1/state`)).json()) as {
      hosts: { name: string; by: string; state: string }[]
    }
    expect(hosts.find(({ name }) => name === SHOP)).toMatchObject({ by: 'fleet', state: 'as it should be' })
    expect(hosts.filter(({ state }) => state !== 'as it should be')).toEqual([])
  })

  it('played the loss of a cluster, a drain and a mass deletion without a failed request', () => {
    const text = running.lines.join('\n')
    expect(text.match(/the client sent \d+ requests: 0 failed/g)).toHaveLength(2)
    expect(text).toMatch(/held, ShrinkBreakerOpen; team-1\.demo\.test still answers 127\.0\.0\.4/)
    expect(text).toMatch(/seamark approve \w+: 18 changes are approved for one hour/)
    expect(text.match(/seamark explain: \S+ is /g)?.length).toBeGreaterThanOrEqual(4)
    expect(text).not.toMatch(/shop\.demo\.test is broken/)
  })

  it('prints only commands that work as they stand, and show what they say', async () => {
    const first = running.lines.findIndex((line) => line.includes('export KUBECONFIG='))
    const commands = running.lines.slice(first + 1, running.lines.indexOf('', first))
    expect(commands.length).toBeLessThanOrEqual(8)
    const texts: string[] = []
    for (const command of commands) {
      const ran = await machine.paste(command, { KUBECONFIG: exported })
      expect({ command, ...ran }).toMatchObject({ code: 0, stderr: '' })
      texts.push(ran.stdout)
      // The next command comes after the answer followed, as a person would wait for it.
      if (command.includes('playground stop'))
        await expect.poll(() => running.feed).toMatch(/~ shop\.demo\.test\. A 127\.0\.0\.1\n/)
    }
    const [hosts, tree, explain, drain, stop, badRelease, approve, reset] = texts
    expect(hosts).toMatch(/shop\.demo\.test|eu1/)
    expect(tree).toMatch(/127\.0\.0\.2 {2}answered[\s\S]*shop\.demo\.test is as it should be/)
    expect(explain).toMatch(/^shop\.demo\.test is as it should be\n[\s\S]*provider +✔/)
    expect(drain).toMatch(/no leaf is left on cluster us1/)
    expect(stop).toMatch(/^stopped ap1: its API server and its gateway\nLook at:\n {2}http:/)
    expect(badRelease).toMatch(/deleted 18 of 30 sources: held, ShrinkBreakerOpen/)
    expect(approve).toMatch(/18 changes {2}ShrinkBreakerOpen[\s\S]*to let them pass: seamark approve /)
    expect(reset).toBe('everything is started, 18 sources are back, every host answers as at first\n')
    // What was held and what changed is in the feed.
    expect(running.feed).toMatch(/held: team-1\.demo\.test\. and \d+ more, ShrinkBreakerOpen/)
  })

  it('has a kubeconfig with a context of the hub and one of each cluster', async () => {
    const text = await readFile(exported, 'utf8')
    for (const name of ['hub', 'eu1', 'us1', 'ap1']) {
      const cluster = connect(configFromText(text, { context: name }))
      expect((await cluster.client.find(ConfigMap, 'kube-system/kube-root-ca.crt'))?.metadata.name).toBe(
        'kube-root-ca.crt',
      )
      await cluster.close()
    }
  })

  it('lets only its user reach it', () => {
    const [folder = ''] = readdirSync(temporary)
    expect(statSync(join(temporary, folder)).mode & 0o777).toBe(0o700)
    expect(statSync(join(temporary, folder, 'control')).mode & 0o777).toBe(0o600)
    expect(statSync(exported).mode & 0o777).toBe(0o600)
  })

  it('stops and starts each part, and clients see it', async () => {
    const now = await status()
    expect(now.clusters).toEqual(
      ['eu1', 'us1', 'ap1'].map((name, index) => ({
        name,
        api: expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+$/) as string,
        gateway: expect.stringMatching(new RegExp(`^127\\.0\\.0\\.${index + 1}:\\d+$`)) as string,
        state: 'Serving',
      })),
    )
    await fault('stop eu1 --part gateway')
    await untilIs(async () => dig(SHOP, now), ['127.0.0.2', '127.0.0.3'])
    await untilIs(async () => stateOf('eu1'), 'Unhealthy')
    await fault('stop us1 --part api')
    await untilIs(async () => stateOf('us1'), 'Unreachable')
    expect(await dig(SHOP, now)).toEqual(['127.0.0.2', '127.0.0.3'])
    await fault('start eu1 --part gateway')
    await untilIs(async () => dig(SHOP, now), ['127.0.0.1', '127.0.0.2', '127.0.0.3'])
    await fault('stop ap1 --part backends')
    await untilIs(async () => dig(SHOP, now), ['127.0.0.1', '127.0.0.2'])
    await fault('reset')
    await fault('slow us1 3000')
    await untilIs(async () => dig(SHOP, now), ['127.0.0.1', '127.0.0.3'])
    await fault('reset')
    await untilIs(async () => dig(SHOP, now), ['127.0.0.1', '127.0.0.2', '127.0.0.3'])
    await untilIs(async () => stateOf('us1'), 'Serving')
  })

  it('keeps the answer while the provider is down, and changes it afterwards', async () => {
    const now = await status()
    await fault('provider down')
    await fault('stop ap1 --part gateway')
    await untilIs(async () => stateOf('ap1'), 'Unhealthy')
    expect(await dig(SHOP, now)).toEqual(['127.0.0.1', '127.0.0.2', '127.0.0.3'])
    const { stdout } = await machine.seamark('playground status')
    expect(stdout).toMatch(/the gateway of ap1 is stopped\nthe DNS provider takes no changes\n$/)
    await fault('provider up')
    await untilIs(async () => dig(SHOP, now), ['127.0.0.1', '127.0.0.2'])
    await fault('reset')
  })

  it('sends requests, and says how many failed', async () => {
    expect((await fault(`traffic ${SHOP} --rate 50`)).stdout).toContain(
      'a client requests shop.demo.test 50 times a second',
    )
    const sent = async () => /(\d+) sent, 0 failed/.exec((await machine.seamark('playground status')).stdout)?.[1]
    await untilIs(async () => Number(await sent()) > 20, true)
    expect((await fault(`traffic ${SHOP} --rate 0`)).stdout).toMatch(/sent \d+ requests: 0 failed/)
  })

  it.each([
    ['playground stop mars', 5, /'mars' is invalid for argument 'cluster'/],
    ['playground stop eu1 --part roof', 5, /'roof' is invalid/],
    ['playground slow eu1 soon', 5, /milliseconds 'soon' is not a whole number/],
    [`playground traffic ${SHOP} --rate -1`, 5, /--rate '-1' is not a whole number/],
    ['playground --fresh', 5, /--fresh empties the folder of --data-dir/],
    [`playground status --data-dir ${scratch}`, 1, /no playground is running on .*start it with/],
    [`playground --data-dir ${world}`, 1, /another playground is running on it/],
    [`playground --fresh --data-dir ${temporary}`, 1, /it has other files than those of a playground/],
  ])('answers `%s` with exit code %i and a sentence', async (args, code, sentence) => {
    const ran = await machine.seamark(args)
    expect(ran.stderr).toMatch(sentence)
    expect(ran.stderr.trimEnd().split('\n')).toHaveLength(1)
    expect(ran.code).toBe(code)
  })
})

it('keeps its world over kill -9, runs beside another one, and leaves nothing behind at Ctrl-C', async () => {
  const [folder, first, copy] = ['tmp2', 'first', 'copy'].map((name) => join(scratch, name)) as [string, string, string]
  mkdirSync(folder)
  const here = new Machine(folder)
  const read = async (flags: string) =>
    JSON.parse((await here.seamark(`playground status -o json${flags}`)).stdout) as Status
  const isTouring = (line: string): boolean => line.startsWith('Part 1')
  // Killed in the middle of its tour: what it left goes when the next one starts, and its world is there.
  const killed = await here.start(['--data-dir', first], { until: isTouring })
  expect(await here.seamark('playground status')).toMatchObject({ code: 1, stderr: /not ready yet/ })
  await killed.end('SIGKILL')
  const [left] = readdirSync(folder)
  expect(await here.seamark('playground status')).toMatchObject({ code: 1, stderr: /no playground is running/ })
  let playground = await here.start(['--data-dir', first])
  expect(readdirSync(folder)).not.toContain(left)
  // With what is held.
  expect((await here.seamark('playground bad-release')).stdout).toMatch(/held, ShrinkBreakerOpen/)
  await playground.end('SIGKILL')
  cpSync(first, copy, { recursive: true })
  playground = await here.start(['--data-dir', first])
  const now = await read('')
  expect(await dig('team-1.demo.test', now)).toEqual(['127.0.0.4'])
  const listed = async () =>
    /^(\w+) {2}\d+ changes {2}ShrinkBreakerOpen/.exec(
      (await here.seamark(`approve --kubeconfig ${now.kubeconfig}`)).stdout,
    )
  await untilIs(async () => (await listed()) !== null, true)
  const id = (await listed())?.[1] ?? ''
  expect(await here.seamark(`approve ${id} --kubeconfig ${now.kubeconfig}`)).toMatchObject({ code: 0 })
  await untilIs(async () => dig('team-1.demo.test', now), [])
  // The folder of the second one names the ports of the first.
  const second = await here.start(['--data-dir', copy])
  const newest = await read('')
  expect((await read(` --data-dir ${first}`)).kubeconfig).toBe(now.kubeconfig)
  for (const what of ['kubeconfig', 'dns', 'page'] as const) expect(newest[what]).not.toBe(now[what])
  expect(await here.seamark(`playground stop eu1 --part gateway --data-dir ${copy}`)).toMatchObject({ code: 0 })
  await untilIs(async () => dig(SHOP, newest), ['127.0.0.2', '127.0.0.3'])
  expect(await dig(SHOP, now)).toEqual(['127.0.0.1', '127.0.0.2', '127.0.0.3'])
  expect(await second.end('SIGTERM')).toBe(0)
  expect(await playground.end('SIGINT')).toBe(0)
  expect(readdirSync(folder)).toEqual([])
  // As a terminal does it: to npm and everything below it, in the middle of the tour of an emptied world.
  const fresh = await here.start(['--data-dir', first, '--fresh'], { until: isTouring, command: 'npm' })
  await fresh.end('SIGINT', { group: true })
  await untilIs(async () => readdirSync(folder), [])
})
