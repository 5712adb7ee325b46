import { describe, expect, it } from 'vitest'
import { initialReflection, step, type Effect, type Input, type Reflection } from './reflector-machine.ts'

const context = { now: 1_000_000, random: 0, relistMs: 3_600_000, removalLimits: { count: 5, share: 0.3 } }
const nothing = { known: 0, removed: 0 }

/** Applies inputs and returns the state and a short form of the effects after each. */
function play(inputs: readonly Input[], from: Reflection = initialReflection, now = context.now) {
  let reflection = from
  const log: string[] = []
  for (const input of inputs) {
    const { next, effects } = step(reflection, input, { ...context, now })
    reflection = next
    log.push(...effects.map(short))
  }
  return { reflection, log }
}

function short(effect: Effect): string {
  switch (effect.do) {
    case 'advance':
    case 'commit':
    case 'open-watch':
      return `${effect.do} ${effect.version}`
    case 'read-page':
      return `read-page${effect.continueToken === undefined ? '' : ` ${effect.continueToken}`}${effect.isUnpaged ? ' unpaged' : ''}`
    case 'wait':
      return `wait ${effect.ms}`
    case 'stage':
    case 'apply':
    case 'discard':
    case 'clear':
    case 'open-stream':
    case 'probe':
      return effect.do
  }
}

const start: Input = { type: 'start' }
const object = (version: string): Input => ({ type: 'object', version })
const endMark = (version: string, removals = nothing): Input => ({
  type: 'bookmark',
  version,
  isInitialEnd: true,
  removals,
})
const mark = (version: string): Input => ({ type: 'bookmark', version, isInitialEnd: false, removals: nothing })
const page = (version: string, continueToken?: string, removals = nothing): Input => ({
  type: 'page',
  version,
  continueToken,
  removals,
})
const failed = (failure: Extract<Input, { type: 'failed' }>['failure'], retryAfterMs?: number): Input => ({
  type: 'failed',
  failure,
  retryAfterMs,
})
const waited: Input = { type: 'waited' }
const live = () => play([start, endMark('100')]).reflection

describe('the initial sync', () => {
  it('streams, and continues to watch the same stream after the end bookmark', () => {
    const { reflection, log } = play([start, object('7'), object('3'), mark('50'), endMark('60'), object('61')])
    expect(log).toEqual(['open-stream', 'stage', 'stage', 'commit 60', 'apply'])
    expect([reflection.state.at, reflection.version]).toEqual(['watch', '61'])
  })

  it('never advances the version on synthetic events', () => {
    expect(play([start, object('700'), mark('50')]).reflection.version).toBeUndefined()
  })

  it.each([['unsupported' as const], ['denied' as const], ['too-large' as const], ['expired' as const]])(
    'falls back to a list at once when the stream is %s',
    (failure) => {
      const { log } = play([start, object('1'), failed(failure), object('1'), page('9')])
      expect(log).toEqual(['open-stream', 'stage', 'discard', 'read-page', 'stage', 'commit 9', 'open-watch 9'])
    },
  )

  it('falls back to lists permanently when no end bookmark arrives', () => {
    const { reflection, log } = play([start, object('1'), { type: 'stalled' }, page('9'), failed('expired')])
    expect(log).toEqual(['open-stream', 'stage', 'discard', 'read-page', 'commit 9', 'open-watch 9', 'read-page'])
    expect(reflection.canStream).toBe(false)
  })

  it('retries the stream after a connection failure, and lists after repeated failures', () => {
    const { log } = play([start, failed('broken'), waited, failed('busy'), waited, failed('busy'), waited])
    expect(log.filter((entry) => !entry.startsWith('wait'))).toEqual([
      'open-stream',
      'discard',
      'open-stream',
      'discard',
      'open-stream',
      'discard',
      'read-page',
    ])
  })

  it('reads all pages, commits only after the last, and watches from the version of the list', () => {
    const { log } = play([start, failed('unsupported'), object('1'), page('9', 'two'), object('2'), page('9')])
    expect(log.slice(2)).toEqual(['read-page', 'stage', 'read-page two', 'stage', 'commit 9', 'open-watch 9'])
  })

  it('commits nothing of a list that failed before the last page', () => {
    const { log } = play([start, failed('unsupported'), object('1'), page('9', 'two'), failed('broken'), waited])
    expect(log.some((entry) => entry.startsWith('commit'))).toBe(false)
    expect(log.slice(-3)).toEqual(['discard', 'wait 400', 'read-page'])
  })

  it('keeps listing while lists are denied, and does not return to the stream', () => {
    const { log } = play([start, failed('denied'), failed('denied'), waited])
    expect(log.slice(-3)).toEqual(['discard', 'wait 400', 'read-page'])
  })

  it('lists without paging when the continue token has expired', () => {
    const { log } = play([start, failed('unsupported'), page('9', 'two'), failed('expired'), page('20')])
    expect(log.slice(3)).toEqual(['read-page two', 'discard', 'read-page unpaged', 'commit 20', 'open-watch 20'])
  })
})

describe('a set that would remove many objects', () => {
  it('is read a second time before anything is removed', () => {
    const { reflection, log } = play([endMark('200', { known: 100, removed: 40 })], {
      ...live(),
      state: { at: 'stream' },
    })
    expect(log.slice(-2)).toEqual(['discard', 'read-page'])
    expect(
      play([page('201', undefined, { known: 100, removed: 40 })], {
        ...reflection,
        state: { at: 'list', isUnpaged: false },
      }).log,
    ).toEqual(['commit 201', 'open-watch 201'])
  })

  it('is confirmed anew after the kind was absent in between', () => {
    const large = { known: 10, removed: 10 }
    const absent = play(
      [endMark('100', large), failed('absent'), { type: 'probed', isServed: false }],
      play([start]).reflection,
    )
    expect(absent.log).toEqual(['discard', 'read-page', 'discard', 'probe', 'clear', 'wait 250'])
    const served = play([{ type: 'probed', isServed: true }, endMark('200', large)], absent.reflection)
    expect(served.log).toEqual(['open-stream', 'discard', 'read-page'])
  })

  it('is committed at once when it removes few', () => {
    const stream: Reflection = { ...live(), state: { at: 'stream' } }
    expect(play([endMark('200', { known: 100, removed: 30 })], stream).log).toEqual(['commit 200'])
    expect(play([endMark('200', { known: 4, removed: 4 })], stream).log).toEqual(['commit 200'])
  })

  it('is one that exceeds the limits of its informers', () => {
    const stream: Reflection = { ...live(), state: { at: 'stream' } }
    const end = endMark('200', { known: 4, removed: 4 })
    const { effects } = step(stream, end, { ...context, removalLimits: { count: 3, share: 0.5 } })
    expect(effects.map((effect) => effect.do)).toEqual(['discard', 'read-page'])
    expect(step(stream, end, { ...context, removalLimits: { count: 3, share: 1 } }).effects[0]?.do).toBe('commit')
  })
})

describe('a watch', () => {
  it('resumes from the last version after it ended, was reset, or the server was busy', () => {
    const watching = play([object('101'), mark('120')], live()).reflection
    expect(play([{ type: 'ended' }], watching).log).toEqual(['open-watch 120'])
    expect(play([failed('broken'), waited], watching).log).toEqual(['wait 400', 'open-watch 120'])
    expect(play([failed('busy'), waited], watching).log).toEqual(['wait 400', 'open-watch 120'])
  })

  it('lists again when its version is too old, or the server is behind it', () => {
    expect(play([failed('expired')], live()).log).toEqual(['open-stream'])
    expect(play([failed('too-large')], live()).log).toEqual(['open-stream'])
    const storm = play([failed('expired'), endMark('1'), failed('expired')], live())
    expect(storm.log).toEqual(['open-stream', 'commit 1', 'wait 800'])
  })

  it('that fails repeatedly with status 500 at one version is restarted with a new sync', () => {
    const { log } = play(
      [failed('internal'), waited, failed('internal'), waited, failed('internal'), waited, failed('internal'), waited],
      live(),
    )
    expect(log.filter((entry) => !entry.startsWith('wait'))).toEqual([
      'open-watch 100',
      'open-watch 100',
      'open-watch 100',
      'open-stream',
    ])
    const busy = play(Array.from({ length: 8 }, () => [failed('busy'), waited]).flat(), live())
    expect(busy.log).not.toContain('open-stream')
  })

  it('that is denied after a successful list is replaced by listing with back-off', () => {
    const { log } = play([start, failed('denied'), page('9'), failed('denied'), waited, page('10'), failed('denied')])
    expect(log).toEqual([
      'open-stream',
      'discard',
      'read-page',
      'commit 9',
      'open-watch 9',
      'wait 400',
      'read-page',
      'commit 10',
      'open-watch 10',
      'wait 800',
    ])
  })

  it('that exceeds the limits of the cache is followed by a complete sync: the cache is no longer complete', () => {
    const { log } = play([object('101'), failed('over-limit', 60_000), waited], live())
    expect(log).toEqual(['apply', 'wait 60000', 'open-stream'])
  })

  it('that ends at once without an event is a failure', () => {
    expect(play([{ type: 'ended' }], live()).log).toEqual(['wait 400'])
    expect(play([{ type: 'ended' }], live(), context.now + 1000).log).toEqual(['open-watch 100'])
  })

  it('that ends at once after an event is opened again at once the first time, and then with increasing delays', () => {
    const waits: (string | undefined)[] = []
    let reflection = live()
    for (let round = 0; round < 8; round++) {
      const { log, reflection: next } = play([object(`${101 + round}`), { type: 'ended' }], reflection)
      waits.push(log.at(-1))
      reflection = log.at(-1)?.startsWith('wait') === true ? play([waited], next).reflection : next
    }
    expect(waits.slice(0, 4)).toEqual(['open-watch 101', 'wait 800', 'wait 1600', 'wait 3200'])
    expect(waits.at(-1)).toBe('wait 15000')
    const healthy = play([object('200'), { type: 'ended' }], reflection, context.now + 120_000)
    expect(healthy.log.at(-1)).toBe('open-watch 200')
  })

  it('is replaced by a complete sync when one is due', () => {
    expect(play([{ type: 'ended' }], live(), context.now + 3_600_000).log).toEqual(['open-stream'])
  })
})

describe('waiting', () => {
  it('doubles to 30 s, with jitter, without a limit of attempts', () => {
    let reflection = live()
    const waits: number[] = []
    for (let round = 0; round < 50; round++) {
      const { next, effects } = step(reflection, failed('broken'), { ...context, random: round % 2 === 0 ? 0 : 0.999 })
      for (const effect of effects) if (effect.do === 'wait') waits.push(Math.round(effect.ms))
      reflection = step(next, waited, context).next
    }
    expect(waits.slice(0, 4)).toEqual([400, 1599, 1600, 6397])
    expect(Math.max(...waits)).toBeLessThanOrEqual(30_000)
    expect(Math.min(...waits.slice(10))).toBeGreaterThanOrEqual(15_000)
    expect(waits).toHaveLength(50)
  })

  it('obeys Retry-After', () => {
    expect(play([failed('busy', 7000)], live()).log).toEqual(['wait 7000'])
  })

  it('ends within a second when the server answers again, and the next failure is the first one', () => {
    const tired = play([failed('broken')], { ...live(), failures: 12 })
    expect(tired.log).toEqual(['wait 15000'])
    const kicked = step(tired.reflection, { type: 'kicked' }, { ...context, random: 0.5 })
    expect(kicked.effects.map(short)).toEqual(['wait 500'])
    const again = play([{ type: 'kicked' }, waited, failed('expired')], kicked.next)
    expect(again.log).toEqual(['open-watch 100', 'open-stream'])
  })

  it('is reset after two minutes without failures', () => {
    const tired = { ...live(), failures: 6 }
    expect(play([failed('broken')], tired).log).toEqual(['wait 15000'])
    expect(play([failed('broken')], tired, context.now + 120_000).log).toEqual(['wait 400'])
  })
})

describe('a kind that is not served', () => {
  it('is empty only when discovery confirms it', () => {
    expect(play([failed('absent'), { type: 'probed', isServed: false }], live()).log).toEqual([
      'probe',
      'clear',
      'wait 250',
    ])
    expect(play([failed('absent'), { type: 'probed', isServed: true }, waited], live()).log).toEqual([
      'probe',
      'wait 400',
      'open-stream',
    ])
    expect(play([failed('absent'), failed('busy'), waited], live()).log).toEqual(['probe', 'wait 400', 'probe'])
  })

  it('is polled at increasing intervals, at once after a kick, and synced when it is served', () => {
    const absent = play([start, failed('absent'), { type: 'probed', isServed: false }]).reflection
    const no: Input = { type: 'probed', isServed: false }
    const polls = play(Array.from({ length: 12 }, () => [waited, no]).flat(), absent)
    expect(polls.log.filter((entry) => entry.startsWith('wait')).slice(-2)).toEqual(['wait 30000', 'wait 30000'])
    expect(polls.log).not.toContain('clear')
    const hinted = play([{ type: 'kicked' }, no, waited, { type: 'probed', isServed: true }], polls.reflection)
    expect(hinted.log).toEqual(['probe', 'wait 250', 'probe', 'open-stream'])
  })
})
