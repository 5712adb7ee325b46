import { expect, it } from 'vitest'
import { createKillSwitch, isPausedBy, pausedUnless, pausedUntil } from './kill-switch.ts'

it('any value of the annotation but "false" pauses: a typo must not leave writing enabled', () => {
  const isPaused = (value: string): boolean => isPausedBy({ 'seamark.io/pause': value })
  expect(['true', 'yes', 'True', '1', ''].map(isPaused)).toEqual([true, true, true, true, true])
  expect([isPaused('false'), isPausedBy({}), isPausedBy(undefined)]).toEqual([false, false, false])
})

it('writing resumes when every reason to pause is removed, and listeners hear of the change only', () => {
  const heard: boolean[] = []
  const killSwitch = createKillSwitch('flag')
  const unsubscribe = killSwitch.subscribe((isPaused) => heard.push(isPaused))
  killSwitch.set('annotation', true)
  killSwitch.set('flag', false)
  expect([killSwitch.isPaused, heard]).toEqual([true, []])
  killSwitch.set('annotation', false)
  expect([killSwitch.isPaused, heard]).toEqual([false, [false]])
  unsubscribe()
  killSwitch.set('annotation', true)
  expect(heard).toEqual([false])
})

it('is on until the check before the first write is done, and listeners hear when writing may begin', async () => {
  const heard: boolean[] = []
  let finish: () => void = () => undefined
  const killSwitch = createKillSwitch()
  const gated = pausedUntil(killSwitch, new Promise((resolve) => (finish = resolve)))
  gated.subscribe((isPaused) => heard.push(isPaused))
  killSwitch.set('annotation', true)
  killSwitch.set('annotation', false)
  expect([gated.isPaused, heard]).toEqual([true, []])
  finish()
  await Promise.resolve()
  expect([gated.isPaused, heard]).toEqual([false, [false]])
  killSwitch.set('annotation', true)
  expect([gated.isPaused, heard]).toEqual([true, [false, true]])
})

it('is on while writing is not allowed for another reason', () => {
  let mayWrite = false
  const killSwitch = createKillSwitch()
  const gated = pausedUnless(killSwitch, () => mayWrite)
  expect(gated.isPaused).toBe(true)
  mayWrite = true
  expect(gated.isPaused).toBe(false)
  killSwitch.set('annotation', true)
  expect(gated.isPaused).toBe(true)
})
