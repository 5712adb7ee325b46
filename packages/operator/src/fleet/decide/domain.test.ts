import { describe, expect, it } from 'vitest'
import type { DomainVerificationStatus } from '../../api/domain-verification.ts'
import { decideDomain, reasonOf, type TxtAnswer } from './domain.ts'

const startMs = Date.parse('2026-01-01T00:00:00Z')
const hour = 3_600_000

function check(status: DomainVerificationStatus | undefined, answer: TxtAnswer, atMs = startMs) {
  return decideDomain({ status, newToken: 'fresh', answer, nowMs: atMs, sinceMs: startMs })
}

describe('the proof of a domain', () => {
  it('begins with a token, and is checked more and more seldom', () => {
    expect(check(undefined, [])).toEqual({ status: { token: 'fresh', verified: false }, afterMs: 5_000 })
    expect(check({ token: 'old' }, undefined)).toMatchObject({ status: { token: 'old' } })
    expect(check({ token: 'old' }, [], startMs + hour).afterMs).toBe(600_000)
  })

  it('is given by the token, and confirmed daily without a write', () => {
    const first = check({ token: 't', verified: false }, ['other', 't'])
    expect(first).toMatchObject({ status: { verified: true, lastChecked: '2026-01-01T00:00:00Z' }, afterMs: 24 * hour })
    expect(check(first.status, ['t'], startMs + 24 * hour).status).toEqual(first.status)
  })

  it('is revoked after three failures over 72 hours, and not by servers that do not answer', () => {
    let status = check({ token: 't' }, ['t']).status
    const seen: (boolean | undefined)[] = []
    for (const hours of [0, 24, 48, 73]) {
      status = check(status, [], startMs + hours * hour).status
      seen.push(status.verified)
    }
    expect(seen).toEqual([true, true, true, false])
    expect([{ verified: true }, status].map((each) => reasonOf(each))).toEqual(['DomainVerified', 'DomainUnverified'])
    const verified = check({ token: 't' }, ['t']).status
    // Two checks, of which the second was late.
    const failedOnce = check(verified, [], startMs).status
    expect(check(failedOnce, [], startMs + 100 * hour).status).toMatchObject({ verified: true, failures: 2 })
    expect(check(verified, undefined, startMs + 999 * hour).status).toEqual(verified)
    expect(check(check(verified, [], startMs).status, ['t']).status.failingSince).toBeUndefined()
  })
})
