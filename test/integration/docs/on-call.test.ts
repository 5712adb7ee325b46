/** docs/on-call.md, run as it is written: the outputs that it shows, the commands that it gives, and their effects. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DNSEndpoint } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { environmentKinds } from '../publish/test-environment.ts'
import { Installation } from './on-call-installation.ts'
import { readPage } from './page.ts'
import { type Reader, runSections } from './run-page.ts'

/** Sections that have no block of commands: they say what to look at in installations of many forms. */
const TOLD = ['Targets unhealthy', 'Gateway']
const sections = readPage(readFileSync(join(import.meta.dirname, '../../../docs/on-call.md'), 'utf8')).filter(
  ({ heading }) => heading !== '',
)
const page = sections.filter(({ heading }) => !TOLD.includes(heading))
/** A provider whose breaker is open is asked once a minute. */
const PATIENCE_MS = 90_000

const HOSTS = Array.from({ length: 12 }, (_, index) => `host-${index + 1}`)
/** With the wildcard of the member. */
const PUBLISHED = HOSTS.length + 1

/** What the page marks with `<!-- test: … -->`: things that happen to an installation. */
const HAPPENINGS: Readonly<Record<string, (installation: Installation) => Promise<void>>> = {
  'twelve hosts are published': async (installation) => {
    await installation.publish(HOSTS, ['192.0.2.1'])
    await expect.poll(() => writes(installation), { timeout: PATIENCE_MS }).toBeGreaterThanOrEqual(PUBLISHED)
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
    // Concurrently, so that one pass sees them all.
    await Promise.all(HOSTS.slice(0, 3).map(async (name) => installation.publish([name], ['192.0.2.66'])))
    await expect.poll(() => writes(installation), { timeout: PATIENCE_MS }).toBeGreaterThanOrEqual(PUBLISHED + 3)
  },
  'contour-plus runs in another namespace, with another load balancer': async (installation) =>
    installation.startSecondWriter(),
  'the sources are corrected': async (installation) => installation.publish(HOSTS.slice(0, 3), ['192.0.2.1']),
}

function writes(installation: Installation): number {
  return installation.log().split('"msg":"record written"').length - 1
}

describe('docs/on-call.md', () => {
  it('has a section for each of the situations', () => {
    expect(sections.map(({ heading }) => heading)).toEqual([
      'Breaker open',
      'Record missing',
      'Provider down',
      'No manager',
      'Cluster lost',
      'Targets unhealthy',
      'Wrong mass change',
      'Second writer',
      'DNS server',
      'Gateway',
      'Manager fails',
    ])
    for (const { heading, steps } of page) expect(steps.length, heading).toBeGreaterThan(1)
  })

  describe.each(environmentKinds)('on $name', ({ start, isMissing }) => {
    it.skipIf(isMissing).each(page)('$heading', { timeout: 300_000 }, async ({ heading, steps }) => {
      await using installation = await Installation.start(start)
      const happenings = Object.entries(HAPPENINGS).map(
        ([name, play]) => [name, async () => play(installation)] as const,
      )
      const reader: Reader = {
        type: async (command) => installation.type(command),
        log: () => installation.log(),
        metrics: async () => installation.metrics(),
        happenings: Object.fromEntries(happenings),
      }
      expect(await runSections([{ heading, steps }], reader)).toBeGreaterThan(0)
    })
  })
})
