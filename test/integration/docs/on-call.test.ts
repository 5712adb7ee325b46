/** docs/on-call.md, run as it is written: the outputs that it shows, the commands that it gives, and their effects. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DNSEndpoint } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { Installation } from './installation.ts'
import { patternOf, readPage, type Step } from './page.ts'

const page = readPage(readFileSync(join(import.meta.dirname, '../../../docs/on-call.md'), 'utf8'))
/** A provider whose breaker is open is asked once a minute. */
const PATIENCE_MS = 90_000
/** Each is a process: typed without a pause they would keep a core busy. */
const COMMAND_INTERVAL_MS = 300

const HOSTS = Array.from({ length: 12 }, (_, index) => `host-${index + 1}`)

/** What the page marks with `<!-- test: … -->`: things that happen to an installation. */
const HAPPENINGS: Readonly<Record<string, (installation: Installation) => Promise<void>>> = {
  'twelve hosts are published': async (installation) => {
    await installation.publish(HOSTS, ['192.0.2.1'])
    await expect.poll(() => writes(installation), { timeout: PATIENCE_MS }).toBeGreaterThanOrEqual(HOSTS.length)
  },
  'eight of them are deleted at once': async ({ client }) => {
    // Concurrently, so that one pass sees them all.
    await Promise.all(HOSTS.slice(0, 8).map(async (name) => client.delete(DNSEndpoint, `web/${name}`)))
  },
  'a host is declared whose name has a record already': async (installation) =>
    installation.publish(['mail'], ['192.0.2.26']),
  'the DNS server stops': async (installation) => {
    await installation.stopDns()
    await installation.publish(['late'], ['192.0.2.9'])
  },
  'the DNS server returns': async (installation) => installation.returnDns(),
  'the API server of fra1 stops': async ({ member }) => member.stop(),
  'three hosts get a wrong address': async (installation) => {
    await installation.publish(HOSTS.slice(0, 3), ['192.0.2.66'])
    await expect.poll(() => writes(installation), { timeout: PATIENCE_MS }).toBeGreaterThanOrEqual(HOSTS.length + 3)
  },
  'contour-plus runs in another namespace, with another load balancer': async (installation) =>
    installation.startSecondWriter(),
  'the sources are corrected': async (installation) => installation.publish(HOSTS.slice(0, 3), ['192.0.2.1']),
}

function writes(installation: Installation): number {
  return installation.log().split('"msg":"record written"').length - 1
}

async function checkStep(step: Step, installation: Installation, known: Map<string, string>): Promise<void> {
  switch (step.kind) {
    case 'test': {
      const happening = HAPPENINGS[step.name]
      if (happening === undefined) throw new Error(`the page marks '${step.name}', which the test does not know`)
      await happening(installation)
      return
    }
    case 'log':
    case 'metrics':
      for (const line of step.lines) {
        const pattern = new RegExp(patternOf([line], known).source.replace('$', ''), 'm')
        const read = async (): Promise<string> => (step.kind === 'log' ? installation.log() : installation.metrics())
        await expect.poll(read, { timeout: PATIENCE_MS, message: line }).toMatch(pattern)
      }
      return
    case 'command': {
      const pattern = patternOf(step.output, known)
      const command = step.command.replaceAll(/\b(ID|PLAN)\b/g, (token) => known.get(token) ?? token)
      let { text } = await installation.type(command)
      // What only reads is typed again until it shows what the page says: nothing happens at once.
      const isReading = !/--apply|approve [0-9a-f]+|undo [0-9]+|scale/.test(command)
      if (isReading)
        await expect
          .poll(async () => ({ text } = await installation.type(command)).text, {
            timeout: PATIENCE_MS,
            interval: COMMAND_INTERVAL_MS,
            message: command,
          })
          .toMatch(pattern)
      expect(text, command).toMatch(pattern)
      for (const [token, value] of Object.entries(pattern.exec(text)?.groups ?? {})) known.set(token, value)
      return
    }
  }
}

describe('docs/on-call.md', () => {
  it('has a section for each of the situations', () => {
    expect(page.map(({ heading }) => heading)).toEqual([
      'Breaker open',
      'Record missing',
      'Provider down',
      'Cluster lost',
      'Wrong mass change',
      'Second writer',
    ])
    for (const { heading, steps } of page) expect(steps.length, heading).toBeGreaterThan(1)
  })

  it.each(page)('$heading', { timeout: 300_000 }, async ({ steps }) => {
    await using installation = await Installation.start()
    const known = new Map<string, string>()
    for (const step of steps) await checkStep(step, installation, known)
  })
})
