import { expect, it } from 'vitest'
import { fakeClock } from '../testing/clock.ts'
import { DebouncedKeys } from './debounced-keys.ts'

it('passes a key on once it rested, however often it changed before, and none after close', async () => {
  const clock = fakeClock()
  const quiet: string[] = []
  const keys = new DebouncedKeys({ clock, quietMs: 100, onQuiet: (key) => quiet.push(key) })
  keys.touch('a')
  await clock.advance(60)
  keys.touch('a')
  keys.touch('b')
  await clock.advance(60)
  expect(quiet).toEqual([])
  await clock.advance(60)
  expect(quiet).toEqual(['a', 'b'])
  keys.touch('a')
  keys.close()
  await clock.advance(1_000)
  expect(quiet).toEqual(['a', 'b'])
  expect(clock.pending).toBe(0)
})
