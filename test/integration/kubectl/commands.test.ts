/** Every kubectl of the machine types the same commands at the embedded server and at a real one. */
import { setTimeout as delay } from 'node:timers/promises'
import { needs } from '@seamark/kit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findKubectls } from './binaries.ts'
import { commands, expectedOf } from './commands.ts'
import { makeHome, type Home } from './home.ts'
import { patternOf } from './pattern.ts'
import { cleanUp, targets, type Target } from './targets.ts'

const SESSION_TIMEOUT_MS = 600_000
const kubectls = needs('kubectl') ? findKubectls() : []

describe.skipIf(kubectls.length === 0).each(targets)('kubectl on $name', ({ start, isSkipped }) => {
  let target: Target
  beforeAll(async () => {
    if (!isSkipped) target = await start()
  })
  afterAll(async () => target?.stop())

  describe.skipIf(isSkipped).each(kubectls)('$version', (kubectl) => {
    let home: Home
    beforeAll(async () => {
      home = await makeHome(kubectl, target.kubeconfig)
      await cleanUp(target)
    })
    afterAll(async () => home?.remove())

    // One test: later commands work on what earlier ones made. Every difference is reported.
    it('a session of commands', { timeout: SESSION_TIMEOUT_MS }, async () => {
      for (const [index, command] of commands.entries()) {
        const name = `${index}: kubectl ${command.run}`
        const expected = expectedOf(command, kubectl.minor)
        const stdout = patternOf(expected.stdout ?? '')
        const isStream = command.isStream === true
        if (/^(describe|events|get events)/.test(command.run)) await forgetRepairs(target)
        const outcome = isStream ? await watch(home, target, command.run, stdout) : await home.run(command.run)
        expect.soft(outcome.stderr, name).toMatch(patternOf(expected.stderr ?? ''))
        expect.soft(outcome.stdout, name).toMatch(stdout)
        // A stream is ended by the test.
        if (!isStream) expect.soft(outcome.exit, name).toBe(expected.exit ?? 0)
      }
    })
  })
})

/** A real server checks its addresses every few minutes and reports them in Events, which are not part of these commands. */
async function forgetRepairs({ request }: Target): Promise<void> {
  const selector = encodeURIComponent('source=ipallocator-repair-controller')
  const { status } = await request('DELETE', `/api/v1/namespaces/default/events?fieldSelector=${selector}`)
  expect(status).toBe(200)
}

async function watch(home: Home, target: Target, line: string, until: RegExp) {
  const stopping = new AbortController()
  const touching = touch(target, stopping.signal)
  const outcome = await home.run(line, { stopAt: new RegExp(`${until.source.slice(0, -1)}\\n`) })
  stopping.abort()
  await touching
  return outcome
}

/** Changes cm1 again and again, so that a watch has events whenever it begins; then takes the change back. */
async function touch({ request }: Target, signal: AbortSignal): Promise<void> {
  const path = '/api/v1/namespaces/default/configmaps/cm1'
  const type = 'application/merge-patch+json'
  for (let count = 1; !signal.aborted; count++) {
    await request('PATCH', path, { metadata: { labels: { touched: `t${count}` } } }, { type })
    await delay(100, undefined, { signal }).catch(() => undefined)
  }
  await request('PATCH', path, { metadata: { labels: null } }, { type })
}
