import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decideWrite,
  isExpired,
  mayBeStopped,
  noteWrite,
  QUIET_MS,
  UNDO_LIMIT,
  UNDO_WINDOW_MS,
  type WriteHistory,
} from './second-writer.ts'

/** Writes the same content again and again, `everyMs` apart, as long as it may. Returns the number of writes. */
function fight(everyMs: number, untilMs: number): { writes: number; history: WriteHistory | undefined; stops: number } {
  let history: WriteHistory | undefined
  let [writes, stops] = [0, 0]
  for (let nowMs = 0; nowMs < untilMs; nowMs += everyMs) {
    const decision = decideWrite(history, { content: 'ours', version: `v${nowMs}`, nowMs })
    history = decision.history
    if (decision.state === 'stop') {
      if (decision.isNew) stops++
      continue
    }
    writes++
    history = noteWrite(history, history === undefined ? undefined : 'ours', nowMs)
  }
  return { writes, history, stops }
}

describe('a write that another client undoes', () => {
  it('is sent a few times and then stopped, for as long as the object keeps changing', () => {
    expect(fight(16, 60_000)).toMatchObject({ writes: UNDO_LIMIT + 1, stops: 1 })
    expect(fight(16, 3 * QUIET_MS)).toMatchObject({ writes: UNDO_LIMIT + 1, stops: 1 })
  })

  it('is never stopped when it happens less often than the limit within the window', () => {
    const { stops } = fight(UNDO_WINDOW_MS / (UNDO_LIMIT - 1), 20 * UNDO_WINDOW_MS)
    expect(stops).toBe(0)
  })

  it('is tried once more after the object was unchanged for a while, and stopped again at once when that is undone', () => {
    const { history } = fight(100, 10_000)
    const nowMs = 10_000
    const stop = decideWrite(history, { content: 'ours', version: 'quiet', nowMs })
    expect(stop).toMatchObject({ state: 'stop', isNew: false })
    const later = nowMs + QUIET_MS
    const retry = decideWrite(stop.history, { content: 'ours', version: 'quiet', nowMs: later })
    expect(retry.state).toBe('go')
    const written = noteWrite(retry.history, 'ours', later)
    expect(decideWrite(written, { content: 'ours', version: 'undone', nowMs: later + 100 })).toMatchObject({
      state: 'stop',
      isNew: true,
    })
  })

  it('any content may be written while the history cannot stop one', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('ours', 'other'), { maxLength: 12 }), (contents) => {
        let history: WriteHistory | undefined
        for (const [nowMs, content] of contents.entries()) {
          const decision = decideWrite(history, { content, version: '1', nowMs })
          if (history !== undefined && !mayBeStopped(history)) expect(decision.state).toBe('go')
          history = decision.history
          if (decision.state === 'go') history = noteWrite(history, history === undefined ? undefined : content, nowMs)
        }
      }),
    )
  })

  it('says when it is tried again', () => {
    const { history } = fight(100, 10_000)
    const stop = decideWrite(history, { content: 'ours', version: 'quiet', nowMs: 10_000 })
    expect(decideWrite(stop.history, { content: 'ours', version: 'quiet', nowMs: 70_000 })).toMatchObject({
      state: 'stop',
      afterMs: QUIET_MS - 60_000,
    })
  })

  it('a change of our own decision is never stopped', () => {
    const { history } = fight(100, 10_000)
    expect(decideWrite(history, { content: 'other', version: 'v', nowMs: 10_000 }).state).toBe('go')
    expect(noteWrite(history, 'other', 10_000)).toEqual({ content: 'other', wroteMs: 10_000, undoneMs: [] })
  })

  it('a history is forgotten after the window, of a stopped object when nothing was decided about it for a longer time', () => {
    const history = noteWrite(undefined, 'ours', 0)
    expect([isExpired(history, UNDO_WINDOW_MS - 1), isExpired(history, UNDO_WINDOW_MS)]).toEqual([false, true])
    const stopped = decideWrite(fight(100, 10_000).history, { content: 'ours', version: 'v', nowMs: 20_000 }).history
    const gone = 20_000 + 2 * QUIET_MS
    expect([isExpired(stopped ?? history, gone - 1), isExpired(stopped ?? history, gone)]).toEqual([false, true])
  })
})

it('whatever the times, one content is written at most UNDO_LIMIT + 1 times within a window', () => {
  const step = fc.record({ afterMs: fc.integer({ min: 0, max: UNDO_WINDOW_MS / 2 }), isChanged: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let history: WriteHistory | undefined
      let [nowMs, version] = [0, 0]
      const times: number[] = []
      for (const { afterMs, isChanged } of steps) {
        nowMs += afterMs
        if (isChanged) version++
        const decision = decideWrite(history, { content: 'ours', version: String(version), nowMs })
        history = decision.history
        if (decision.state === 'stop') continue
        history = noteWrite(history, 'ours', nowMs)
        times.push(nowMs)
      }
      for (const time of times) {
        const within = times.filter((other) => other >= time && other - time < UNDO_WINDOW_MS)
        if (within.length > UNDO_LIMIT + 1) return false
      }
      return true
    }),
  )
})
