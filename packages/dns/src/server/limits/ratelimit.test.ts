import { describe, expect, it } from 'vitest'
import { RateLimiter } from './ratelimit.ts'

const QUESTION = 40
const START = 1_000_000

/** Sends `count` questions of one kind at one moment and counts the verdicts. */
function send(limiter: RateLimiter, address: string, count: number, now: number, kind = 7, answer = 400) {
  const verdicts = { answer: 0, slip: 0, drop: 0 }
  for (let i = 0; i < count; i++) {
    const prefix = limiter.prefixOf(address, now)
    const first = limiter.admit(prefix, QUESTION, now)
    verdicts[first === 'answer' ? limiter.confirm(prefix, kind, QUESTION, answer, now) : first]++
  }
  return verdicts
}

describe('response rate limiting', () => {
  it('answers equal questions up to the limit, then slips every second one', () => {
    const limiter = new RateLimiter({ responsesPerSecond: 20 })
    expect(send(limiter, '192.0.2.1', 120, START)).toEqual({ answer: 20, slip: 50, drop: 50 })
    expect(limiter.limited).toBe(100)
  })

  it('takes another limit while it runs', () => {
    const limiter = new RateLimiter({ responsesPerSecond: 20 })
    expect(send(limiter, '192.0.2.1', 120, START).answer).toBe(20)
    limiter.setResponsesPerSecond(50)
    expect(send(limiter, '192.0.2.1', 120, START + 20_000).answer).toBe(50)
    expect(send(limiter, '192.0.3.1', 120, START + 20_000).answer).toBe(50)
    limiter.setResponsesPerSecond(10)
    expect(send(limiter, '192.0.4.1', 120, START + 20_000).answer).toBe(10)
  })

  it('counts a /24 and a /56 as one source, and others apart', () => {
    const limiter = new RateLimiter({ responsesPerSecond: 10 })
    send(limiter, '192.0.2.1', 50, START)
    expect(send(limiter, '192.0.2.200', 10, START).answer).toBe(0)
    expect(send(limiter, '192.0.3.1', 10, START).answer).toBe(10)
    send(limiter, '2001:db8:0:aa00::1', 50, START)
    expect(send(limiter, '2001:db8:0:aaff::2', 10, START).answer).toBe(0)
    expect(send(limiter, '2001:db8:0:ab00::1', 10, START).answer).toBe(10)
  })

  it('limits many different questions by the total', () => {
    const limiter = new RateLimiter({ responsesPerSecond: 20, allPerSecond: 100 })
    let answered = 0
    for (let kind = 0; kind < 1000; kind++) answered += send(limiter, '192.0.2.1', 1, START, kind, 50).answer
    expect(answered).toBeLessThanOrEqual(100)
    expect(answered).toBeGreaterThan(50)
  })

  it('forgives after a while', () => {
    const limiter = new RateLimiter({ responsesPerSecond: 10 })
    send(limiter, '192.0.2.1', 100, START)
    expect(send(limiter, '192.0.2.1', 5, START + 5000)).toEqual({ answer: 5, slip: 0, drop: 0 })
  })

  it('never sends a limited prefix more than five times what it sent', () => {
    const limiter = new RateLimiter({ responsesPerSecond: 20, allPerSecond: 1000 })
    send(limiter, '192.0.2.1', 100, START)
    let sent = 0
    let received = 0
    for (let tick = 1; tick < 3000; tick++) {
      const { answer, slip } = send(limiter, '192.0.2.1', 3, START + tick, tick % 50, 1200)
      received += 3 * QUESTION
      sent += answer * 1200 + slip * QUESTION
    }
    expect(sent).toBeLessThanOrEqual(5 * received)
    expect(sent).toBeGreaterThan(received)
  })

  it('gives a prefix that is limited again no credit for what it sent before', () => {
    const limiter = new RateLimiter({ responsesPerSecond: 20 })
    // Received while it was limited, and almost all of it dropped.
    send(limiter, '192.0.2.1', 10_000, START)
    const later = START + 5000
    send(limiter, '192.0.2.1', 21, later)
    // Other kinds of responses: only the octets received since then allow them.
    let sent = 0
    for (let kind = 100; kind < 120; kind++) sent += send(limiter, '192.0.2.1', 1, later, kind, 1200).answer * 1200
    expect(sent).toBeLessThanOrEqual(4 * 41 * QUESTION)
  })

  it('stays limited when the older generation of prefixes is dropped', () => {
    const limiter = new RateLimiter({ responsesPerSecond: 20 })
    limiter.prefixOf('198.51.100.1', START)
    send(limiter, '192.0.2.1', 100, START + 10_000)
    expect(send(limiter, '192.0.2.1', 20, START + 10_001).answer).toBe(0)
  })

  it('does not limit loopback unless configured to', () => {
    expect(send(new RateLimiter(), '127.0.0.1', 5000, START).answer).toBe(5000)
    expect(send(new RateLimiter(), '::1', 5000, START).answer).toBe(5000)
    expect(send(new RateLimiter({ isLoopbackLimited: true }), '127.0.0.1', 5000, START).answer).toBeLessThan(100)
  })

  it('forgets sources, so that a spoofed flood cannot fill the memory', () => {
    const limiter = new RateLimiter({ maxPrefixes: 1000 })
    for (let i = 0; i < 50_000; i++) limiter.prefixOf(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, START)
    expect(limiter.remembered).toBeLessThanOrEqual(2 * 1002)
  })
})
