import { describe, expect, it } from 'vitest'
import { cleanText, CredentialFilter } from './server-text.ts'

const TOKEN = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl'

describe('text of a server', () => {
  it('is on one line, without control characters, and bounded', () => {
    expect(cleanText('a\r\n\u001B[31mb\u202Ec', 100)).toBe('a [31mb c')
    expect(cleanText('x'.repeat(100), 10)).toBe(`${'x'.repeat(10)}…`)
  })
})

describe('the credential of a request', () => {
  const filter = new CredentialFilter()
  filter.remember({ authorization: `Bearer ${TOKEN}` })

  it('is removed from a text, whole and when the server cut it', () => {
    expect(filter.text(`headers: authorization: Bearer ${TOKEN}; x`)).toBe(
      'headers: authorization: Bearer [credential removed]; x',
    )
    expect(filter.text(`cut ${TOKEN.slice(0, 30)}`)).toBe('cut [credential removed]')
    expect(filter.text('nothing of it')).toBe('nothing of it')
  })

  it('is removed from JSON, however it is escaped there, and from bodies', () => {
    const escaped = TOKEN.replaceAll('e', String.raw`\u0065`)
    const status = JSON.parse(`{"kind":"Status","message":"${escaped}","details":{"causes":[{"message":"${TOKEN}"}]}}`)
    expect(JSON.stringify(filter.json(status))).not.toContain(TOKEN.slice(0, 16))
    expect(filter.body(Buffer.from(`{"gitVersion":"${TOKEN}"}`)).toString()).toBe(
      '{"gitVersion":"[credential removed]"}',
    )
    expect(filter.body(Buffer.from(`{"gitVersion":"${escaped}"}`)).toString()).toBe(
      '{"gitVersion":"[credential removed]"}',
    )
    for (const text of ['{}', String.raw`{"a":"\u0065"}`, String.raw`no JSON \u0065`]) {
      const other = Buffer.from(text)
      expect(filter.body(other)).toBe(other)
    }
    expect(filter.body(Buffer.from(`no JSON \\u0065 ${TOKEN}`)).toString()).not.toContain(TOKEN)
    const slashed = new CredentialFilter()
    slashed.remember({ authorization: 'Basic abcd/efgh/ijkl/mnop' })
    expect(slashed.body(Buffer.from(String.raw`["abcd\/efgh\/ijkl\/mnop"]`)).toString()).not.toContain('efgh')
  })

  it('is removed after a rotation too, with characters of expressions, and not when it is a part of words', () => {
    const rotated = new CredentialFilter()
    rotated.remember({})
    expect(rotated.text('a')).toBe('a')
    rotated.remember({ authorization: 'Basic a+b(c)/d==' })
    rotated.remember({ authorization: ['Bearer second-token'] })
    rotated.remember({ authorization: 'Bearer abc' })
    expect(rotated.text('a+b(c)/d== second-token abc')).toBe('[credential removed] [credential removed] abc')
  })
})
