import { describe, expect, it } from 'vitest'
import { Stop } from './stop-signal.ts'

describe('a stop signal', () => {
  it('calls each current listener once, and keeps its first reason', () => {
    const stop = new Stop()
    const heard: string[] = []
    const leaver = (): void => void heard.push('left')
    stop.addEventListener('abort', () => heard.push('first'))
    stop.addEventListener('abort', leaver)
    stop.addEventListener('abort', () => heard.push('last'))
    stop.removeEventListener('abort', leaver)
    stop.throwIfAborted()
    stop.abort('one')
    stop.abort('two')
    stop.addEventListener('abort', () => heard.push('late'))
    expect(heard).toEqual(['first', 'last'])
    expect([stop.aborted, stop.reason]).toEqual([true, 'one'])
    expect(() => stop.throwIfAborted()).toThrow('one')
  })

  it('skips no listener when one is removed during the abort', () => {
    const stop = new Stop()
    const heard: string[] = []
    const first = (): void => {
      heard.push('first')
      stop.removeEventListener('abort', first)
    }
    stop.addEventListener('abort', first)
    stop.addEventListener('abort', () => heard.push('second'))
    stop.abort(undefined)
    expect(heard).toEqual(['first', 'second'])
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
