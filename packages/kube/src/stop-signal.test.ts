import { describe, expect, it } from 'vitest'
import { Stop } from './stop-signal.ts'

describe('a stop signal', () => {
  it('calls each current listener once, and keeps its first reason', () => {
    const stop = new Stop()
    const calls: string[] = []
    const removedListener = (): void => void calls.push('left')
    stop.addEventListener('abort', () => calls.push('first'))
    stop.addEventListener('abort', removedListener)
    stop.addEventListener('abort', () => calls.push('last'))
    stop.removeEventListener('abort', removedListener)
    stop.throwIfAborted()
    stop.abort('one')
    stop.abort('two')
    stop.addEventListener('abort', () => calls.push('late'))
    expect(calls).toEqual(['first', 'last'])
    expect([stop.aborted, stop.reason]).toEqual([true, 'one'])
    expect(() => stop.throwIfAborted()).toThrow('one')
  })

  it('skips no listener when one is removed during the abort', () => {
    const stop = new Stop()
    const calls: string[] = []
    const first = (): void => {
      calls.push('first')
      stop.removeEventListener('abort', first)
    }
    stop.addEventListener('abort', first)
    stop.addEventListener('abort', () => calls.push('second'))
    stop.abort(undefined)
    expect(calls).toEqual(['first', 'second'])
  })

  it('provides a real AbortSignal, before and after the abort', () => {
    const early = new Stop()
    const { signal } = early
    expect(signal.aborted).toBe(false)
    early.abort('why')
    expect([signal.aborted, signal.reason]).toEqual([true, 'why'])
    const late = new Stop()
    late.abort('why')
    expect([late.signal.aborted, late.signal.reason]).toEqual([true, 'why'])
    expect(late.signal).toBeInstanceOf(AbortSignal)
  })
})
