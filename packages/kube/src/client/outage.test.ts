import { describe, expect, it } from 'vitest'
import { Outage } from './outage.ts'

function start() {
  let now = 0
  const outage = new Outage({ monotonic: () => now })
  return { after: (ms: number, status: number | undefined) => ((now += ms), outage.note(status)) }
}

describe('the end of an outage', () => {
  it.each([undefined, 503, 500, 403, 429])('is the first answer after %s for seconds', (status) => {
    const { after } = start()
    expect(after(0, 200)).toBe(false)
    expect([after(2_000, status), after(2_000, status), after(2_000, 200)]).toEqual([false, false, true])
    expect(after(1, 200)).toBe(false)
  })

  it('is none while other requests are answered', () => {
    const { after } = start()
    const ends: boolean[] = []
    for (let request = 0; request < 20; request++) ends.push(after(1_000, undefined), after(1_000, 200))
    expect(ends).not.toContain(true)
  })

  it('is none after a pause in which nothing failed', () => {
    const { after } = start()
    expect([after(0, 200), after(60_000, 404)]).toEqual([false, false])
  })

  it('is the first answer of a server that was away at the start', () => {
    const { after } = start()
    expect([after(0, undefined), after(30_000, undefined), after(10, 200)]).toEqual([false, false, true])
  })
})
