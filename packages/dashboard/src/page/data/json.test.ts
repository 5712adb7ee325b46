import { describe, expect, it } from 'vitest'
import { parseJson } from './json.ts'

describe('a value of the manager', () => {
  it('shows characters that turn text as escapes, and leaves all others', () => {
    const value = { name: 'gpj.\u202Eexe', text: 'a\u200Fb\u2066c\nd "ä" \\u202e 漢字 שלום' }
    expect(parseJson(JSON.stringify(value))).toEqual({
      name: 'gpj.\\u202eexe',
      text: 'a\\u200fb\\u2066c\nd "ä" \\u202e 漢字 שלום',
    })
  })
})
