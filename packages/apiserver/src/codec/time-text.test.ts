import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { explainTime, normalizeTime } from './time-text.ts'

describe('times of built-in kinds', () => {
  it('are normalised to UTC, with whole seconds or with six digits', () => {
    expect(normalizeTime('2026-01-01T02:00:00.5+02:00', false)).toBe('2026-01-01T00:00:00Z')
    expect(normalizeTime('2026-01-01T00:00:00.123456Z', true)).toBe('2026-01-01T00:00:00.123456Z')
  })

  it('are rejected with the messages of Go', () => {
    expect(explainTime('x')).toBe('parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"')
    expect(explainTime('2026-01-01T00:00:00Z', true)).toBe(
      'parsing time "2026-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"',
    )
    expect(explainTime('2026-13-01T00:00:00Z')).toContain('cannot parse')
  })

  it('are unchanged by a second normalisation', () => {
    fc.assert(
      fc.property(fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }), (date) => {
        const text = normalizeTime(date.toISOString(), false)
        expect(explainTime(text)).toBeUndefined()
        expect(normalizeTime(text, false)).toBe(text)
      }),
    )
  })
})
