/** The engine beside Go's `regexp`, which has RE2's syntax and semantics: what is refused, and what matches as a whole. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findMatcher, FullMatcher, Matcher, RegexpSyntaxError, Steps } from '@seamark/regexp'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

const hasGo = spawnSync('go', ['version']).status === 0

/** Reads cases, and prints for each the error, or what matches as a whole and what matches somewhere. */
const ORACLE = `package main

import (
	"encoding/json"
	"os"
	"regexp"
)

type question struct {
	Pattern string
	Texts   []string
}
type answer struct {
	Error string
	Whole []bool
	Some  []bool
}

func main() {
	var questions []question
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil {
		panic(err)
	}
	answers := make([]answer, len(questions))
	for i, q := range questions {
		some, err := regexp.Compile(q.Pattern)
		if err != nil {
			answers[i].Error = err.Error()
			continue
		}
		whole := regexp.MustCompile("\\\\A(?:" + q.Pattern + ")\\\\z")
		for _, text := range q.Texts {
			answers[i].Whole = append(answers[i].Whole, whole.MatchString(text))
			answers[i].Some = append(answers[i].Some, some.MatchString(text))
		}
	}
	json.NewEncoder(os.Stdout).Encode(answers)
}
`

interface Question {
  readonly Pattern: string
  readonly Texts: readonly string[]
}

function ask(questions: readonly Question[]): { Error: string; Whole: boolean[] | null; Some: boolean[] | null }[] {
  const folder = mkdtempSync(join(tmpdir(), 'seamark-go-'))
  try {
    writeFileSync(join(folder, 'main.go'), ORACLE)
    const env = { ...process.env, GO111MODULE: 'off', GOFLAGS: '', GOTOOLCHAIN: 'local' }
    const program = spawnSync('go', ['run', join(folder, 'main.go')], {
      input: JSON.stringify(questions),
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
      env,
    })
    if (program.status !== 0) throw new Error(program.stderr)
    return JSON.parse(program.stdout) as ReturnType<typeof ask>
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What users write in routes, and the corners of the syntax. */
const KNOWN: readonly Question[] = [
  '/api/v[0-9]+/.*',
  '/((a{0,30}){0,30})b01',
  '/(([a-z0-9]{1,30}){1,30})x01',
  '((a{100}){100})',
  '(a{1,1000}){2}',
  '((a{2}){0}){600}',
  '(a{0,}){1000}',
  '(((){1000}){1000}){1000}',
  '(?i)straße|[^k]|ſ',
  '(?P<a>x)(?P<a>y)',
  '(?<a>x)',
  '(?P<>x)',
  '(?P<a-b>x)',
  '(?P<a',
  '(?i-s:a.)',
  '(?)a',
  '(?-)a',
  '(?ii)a',
  '(?i-)a',
  'a{,2}',
  'a{2',
  'a{2}{3}',
  'a{1001}',
  'a{2,1}',
  'a*?*',
  'a??b',
  'x**',
  '*',
  '+a',
  '|*',
  '(|a)*',
  '[]a]',
  '[^]a]',
  '[a-]',
  '[-a]',
  '[a-b-c]',
  '[[:word:][:^digit:]]',
  '[[:bad:]]',
  '[[.a.]]',
  '[\\d-z]',
  '[a-\\d]',
  '\\pN\\p{Greek}\\P{^Lu}\\p{Any}',
  '\\p{Bad}',
  '\\pX',
  '\\p',
  '\\8',
  '\\07',
  '\\18',
  '\\x{110000}',
  '\\x{41}\\x42',
  '\\C',
  '\\Z',
  '\\z\\A\\b\\B',
  '\\_',
  '\\-\\/\\.',
  '\\Qa*b\\E+',
  'a\\Eb',
  '(?m)^a$|(?s).',
  '(?U)a*?b*',
  '.*\\.(png|jpe?g)',
  '[a-z0-9]([-a-z0-9]*[a-z0-9])?\\.example\\.com(:[0-9]+)?',
  '(a|b',
  'a)b',
  '[a',
  'a\\',
  '(?=a)',
  '(?!a)',
  '(?i:A)(?s).\\n',
].map((Pattern) => ({
  Pattern,
  Texts: [
    '',
    'a',
    'b',
    'A',
    'k',
    '\u212A',
    'ſ',
    'S',
    'aa',
    'ab',
    '/',
    '/a',
    '/api/v2/x',
    'x',
    'xx',
    'xy',
    '9',
    'ß',
    'α',
    'Ä',
    '-',
    ']',
    '^',
    '\n',
    'a\nb',
    '_',
    'a*b',
    '/x.jpg',
    'a.example.com:80',
    '7',
    '\u0001',
    '😀',
  ],
}))

const piece = fc
  .tuple(
    fc.constantFrom(
      'a',
      'b',
      'K',
      '.',
      '[ab]',
      '[^a]',
      '[a-c\\d]',
      '(ab)',
      '(a|b)',
      '(?i:k)',
      '\\w',
      '\\D',
      '\\s',
      '\\b',
      '^',
      '$',
      '(?:|a)',
      '\\p{Lu}',
      'é',
      '(',
      ')',
      '|',
      '[',
    ),
    fc.constantFrom('', '', '', '*', '+', '?', '*?', '{2}', '{1,2}', '{0,3}', '{2,}', '{20}', '{60}'),
  )
  .map(([atom, quantifier]) => atom + quantifier)
const question = fc.record({
  Pattern: fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join('')),
  Texts: fc.array(
    fc.string({ unit: fc.constantFrom('a', 'b', 'k', 'K', '\u212A', '1', ' ', '-', 'é', '\n'), maxLength: 8 }),
    { minLength: 4, maxLength: 8 },
  ),
})

describe.skipIf(!hasGo)('the engine and Go', () => {
  it('refuse and match the same', () => {
    const questions = [...KNOWN, ...fc.sample(question, 5_000)]
    const differences = ask(questions).flatMap<object>(({ Error: refusal, Whole, Some }, index) => {
      const { Pattern, Texts } = questions[index] ?? { Pattern: '', Texts: [] }
      const found = findMatcher(Pattern)
      if (found instanceof RegexpSyntaxError || refusal !== '') {
        const ours = found instanceof RegexpSyntaxError ? found.message : ''
        return (ours === '') === (refusal === '') ? [] : [{ Pattern, go: refusal, ours }]
      }
      const [whole, some] = [new FullMatcher(Pattern), new Matcher(Pattern)]
      return Texts.flatMap((text, at) => {
        const go = [Whole?.[at], Some?.[at]]
        const ours = [whole.test(text, new Steps(Infinity)), some.test(text)]
        return JSON.stringify(go) === JSON.stringify(ours) ? [] : [{ Pattern, text, go, ours }]
      })
    })
    expect(differences).toEqual([])
  })
})
