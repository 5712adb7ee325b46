import { fakeClock } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { memoryProvider } from '../providers/memory.ts'
import type { Provider } from '../providers/provider.ts'
import { createEngine } from './engine.ts'
import { ProviderError } from '../rrset/error.ts'
import { memoryGuardStore } from './state/guard-state.ts'
import { createKillSwitch } from '../process/kill-switch.ts'
import { OWNER, record, want } from '../../testing/plan-fixture.ts'

const signal = new AbortController().signal
const MINUTE = 60_000
const ZONES = ['a.test.', 'b.test.']

/** An engine with two zones; the provider lists the zones in `listed`, and fails when it is undefined. */
function engineFixture() {
  const clock = fakeClock()
  const fixture: { listed: readonly string[] | undefined } = { listed: ['a.test.'] }
  const memory = memoryProvider({ zones: ZONES })
  const provider: Provider = {
    ...memory,
    async zones() {
      if (fixture.listed === undefined) throw new ProviderError('ProviderUnavailable', 'later', 'no answer')
      return fixture.listed.map((name) => ({ id: name, name }))
    },
  }
  const engine = createEngine({
    providers: [provider],
    owner: OWNER,
    store: memoryGuardStore(),
    killSwitch: createKillSwitch(),
    mode: 'enforce',
    types: ['A'],
    clock,
  })
  const desired = ZONES.map((zone) => want({ ...record('www', 'A', ['192.0.2.1']), name: `www.${zone}` }))
  const plan = async () => {
    const planning = engine.plan(
      { desired, unusable: [], sources: { present: new Set(), gone: new Set() } },
      'all',
      signal,
    )
    // Lets the rate limiter proceed.
    await clock.advance(100)
    return planning
  }
  return { clock, fixture, plan }
}

describe('the zones of an engine', () => {
  it('are listed again after five minutes: a new zone is served, a removed zone is not taken for an empty one', async () => {
    const { clock, fixture, plan } = engineFixture()
    expect(await plan()).toMatchObject({ plans: [{ zone: 'a.test.' }], withoutZone: [{ name: 'www.b.test.' }] })
    fixture.listed = ['b.test.']
    await clock.advance(4 * MINUTE)
    expect((await plan()).plans.map(({ zone }) => zone)).toEqual(['a.test.'])
    await clock.advance(MINUTE)
    const after = await plan()
    expect(after).toMatchObject({ plans: [{ zone: 'b.test.' }], withoutZone: [{ name: 'www.a.test.' }] })
    expect(after.plans.flatMap(({ changes }) => changes.map(({ op }) => op))).toEqual(['create'])
  })

  it('stay known when listing fails', async () => {
    const { clock, fixture, plan } = engineFixture()
    await plan()
    fixture.listed = undefined
    await clock.advance(10 * MINUTE)
    expect(await plan()).toMatchObject({ plans: [{ zone: 'a.test.' }], unread: [] })
  })

  it('that could not be listed are unread, and a name in them is not reported as being without a zone', async () => {
    const { fixture, plan } = engineFixture()
    fixture.listed = undefined
    expect(await plan()).toEqual({
      plans: [],
      withoutZone: [],
      withoutState: [],
      unread: [{ provider: 'memory', zone: '*', code: 'ProviderUnavailable', why: 'no answer' }],
    })
  })
})
