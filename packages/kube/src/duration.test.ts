import { expect, it } from 'vitest'
import { durationMs, type Duration } from './duration.ts'

it.each([
  ['500ms', 500],
  ['15s', 15_000],
  ['1.5m', 90_000],
  ['2h', 7_200_000],
  ['1h30m' as Duration, 5_400_000],
  [0, 0],
  [250, 250],
] as [Duration, number][])('reads %s as %d ms', (text, ms) => {
  expect(durationMs(text)).toBe(ms)
})

it.each(['', '5', 's', '-5s', '5 s', '5d', Number.NaN, -1, Infinity])('rejects %s', (wrong) => {
  expect(() => durationMs(wrong as Duration)).toThrow('is not a duration')
})
