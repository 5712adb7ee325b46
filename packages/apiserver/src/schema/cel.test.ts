import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { loadEngine } from '../cel/engine.ts'
import type { Schema, ValidationRule } from './model.ts'
import { findFormat } from './formats.ts'
import { compileSchema, prepareSchema } from './schema.ts'

const crds = join(import.meta.dirname, '../../../../../shared/crds')

interface Crd {
  metadata: { name: string }
  spec: { versions: { name: string; schema: { openAPIV3Schema: Schema } }[] }
}

function readCrds(): { name: string; schema: Schema }[] {
  return readdirSync(crds)
    .filter((file) => file.endsWith('.yaml'))
    .flatMap((file) =>
      parseAllDocuments(readFileSync(join(crds, file), 'utf8')).map((document) => document.toJS() as Crd | null),
    )
    .flatMap((crd) =>
      (crd?.spec.versions ?? []).map(({ name, schema }) => ({
        name: `${crd!.metadata.name}/${name}`,
        schema: schema.openAPIV3Schema,
      })),
    )
}

function rule(schema: Schema, ...rules: ValidationRule[]): Schema {
  return { type: 'object', properties: { spec: { ...schema, 'x-kubernetes-validations': rules } } }
}

/** `a` and `b` in an order that no automaton with few states can follow. */
function mixedText(length: number): string {
  let [state, text] = [1, '']
  while (text.length < length) {
    state = (state * 48_271) % 2_147_483_647
    text += state % 2 === 0 ? 'a' : 'b'
  }
  return text
}

function messages(schema: Schema, spec: unknown, old?: unknown): string[] {
  const causes = compileSchema(schema).validate({ spec }, old === undefined ? undefined : { spec: old })
  return causes.map(({ field, message }) => `${field}: ${message}`)
}

beforeAll(async () => {
  await loadEngine()
})

describe.skipIf(!existsSync(crds))('the rules of real CustomResourceDefinitions', () => {
  it('all compile', () => {
    for (const { name, schema } of readCrds()) expect([name, compileSchema(schema).warnings]).toEqual([name, []])
  })
})

describe('rules', () => {
  const object = {
    type: 'object',
    properties: { a: { type: 'integer' }, b: { type: 'integer' }, s: { type: 'string' } },
  } as const
  it.each<[string, string, unknown, string[]]>([
    ['a true rule reports nothing', 'self.a <= self.b', { a: 1, b: 2 }, []],
    [
      'a false rule is a violation of the object',
      'self.a <= self.b',
      { a: 2, b: 1 },
      ['spec: Invalid value: failed rule: self.a <= self.b'],
    ],
    ['integers are ints', 'self.a + 1 == 2 && self.a / 2 == 0', { a: 1 }, []],
    [
      'an absent field fails the rule',
      'self.a > 0',
      {},
      ['spec: Invalid value: "object": no such key: a evaluating rule: self.a > 0'],
    ],
    ['has() takes any expression', 'has([self][0].a) && !has([self][0].b)', { a: 1 }, []],
    ['has() guards an absent field', '!has(self.a) || self.a > 0', {}, []],
    ['patterns are RE2', "self.s.matches('^[[:alpha:]]+$')", { s: 'abc' }, []],
    ['quantities compare', "quantity('1Gi').isGreaterThan(quantity('1M'))", {}, []],
    [
      'addresses parse',
      "isIP('10.0.0.1') && ip('::1').family() == 6 && cidr('10.0.0.0/8').containsIP('10.1.2.3')",
      {},
      [],
    ],
    ['urls parse', "url('https://a.example:80/x').getHost() == 'a.example:80' && !isURL('x')", {}, []],
    ['sets and lists', 'sets.contains([1, 2], [1]) && [1, 2].isSorted() && [1, 2].sum() == 3', {}, []],
    ['optional access', "self.?s.orValue('x') == 'x'", {}, []],
    ['texts format', "'%s-%d'.format(['a', 1]) == 'a-1'", {}, []],
    ['versions compare', "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('v1.2', true)", {}, []],
    ['formats validate', "!format.dns1123Label().validate('abc').hasValue()", {}, []],
  ])('%s: %s', (_, text, spec, expected) => {
    expect(messages(rule(object, { rule: text }), spec)).toEqual(expected)
  })

  it('use the message, the message expression, the reason and the field path', () => {
    const schema = rule(
      object,
      { rule: 'false', message: ' no ' },
      { rule: 'false', message: 'x', messageExpression: "'a is ' + string(self.a)" },
      { rule: 'false', message: 'never', reason: 'FieldValueForbidden', fieldPath: '.a' },
    )
    expect(messages(schema, { a: 1 })).toEqual([
      'spec: Invalid value: no',
      'spec: Invalid value: a is 1',
      'spec.a: Forbidden: never',
    ])
  })

  it('on a scalar report its value', () => {
    expect(messages(rule({ type: 'string' }, { rule: "self != 'x'", message: 'not x' }), 'x')).toEqual([
      'spec: Invalid value: "x": not x',
    ])
  })

  it('with oldSelf run only on updates of an existing value', () => {
    const schema = rule(object, { rule: 'self.a == oldSelf.a', message: 'immutable' })
    expect(messages(schema, { a: 1 })).toEqual([])
    expect(messages(schema, { a: 2 }, { a: 1 })).toEqual(['spec: Invalid value: immutable'])
    expect(messages(schema, { a: 1 }, { a: 1 })).toEqual([])
  })

  it('do not report what an update leaves unchanged', () => {
    const schema = rule(object, { rule: 'self.a > 1' })
    expect(messages(schema, { a: 1 }, { a: 1 })).toEqual([])
    expect(messages(schema, { a: 0 }, { a: 1 })).toHaveLength(1)
  })

  it('access fields whose names are not identifiers', () => {
    const schema = rule(
      { type: 'object', properties: { namespace: { type: 'string' }, 'a-b.c/d__e': { type: 'string' } } },
      { rule: "self.__namespace__ == 'n' && self.a__dash__b__dot__c__slash__d__underscores__e == 'v'" },
    )
    expect(messages(schema, { namespace: 'n', 'a-b.c/d__e': 'v' })).toEqual([])
  })

  it('that cannot be compiled are reported as warnings and skipped', () => {
    const schema = rule(
      object,
      { rule: "self.nosuchFunction('x') == ''" },
      { rule: 'nothing.like(this)' },
      { rule: 'false', message: 'kept' },
    )
    const compiled = compileSchema(schema)
    expect(compiled.warnings).toHaveLength(2)
    expect(compiled.warnings[1]).toContain('spec: rule "nothing.like(this)" cannot be evaluated and is not enforced')
    expect(compiled.validate({ spec: {} })).toHaveLength(1)
  })

  it('that would not terminate are stopped', () => {
    const list: Schema = { type: 'array', items: { type: 'integer' } }
    const text = 'self.all(a, self.all(b, self.all(c, a + b + c >= 0)))'
    const started = process.cpuUsage().user
    const found = messages(
      rule(list, { rule: text }, { rule: 'true' }),
      Array.from({ length: 2_000 }, (_, i) => i),
    )
    expect(found).toHaveLength(1)
    expect(found[0]).toContain('call cost exceeds limit for rule')
    expect(process.cpuUsage().user - started).toBeLessThan(10_000_000)
  })

  it('are not run on an object of the wrong shape, and this is reported', () => {
    const found = messages(rule(object, { rule: 'self.a > 0' }), { a: 'x' })
    expect(found[1]).toBe(
      '<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
    )
  })

  it('need the engine: prepareSchema loads it', async () => {
    expect((await prepareSchema(rule(object, { rule: 'true' }))).warnings).toEqual([])
  })

  describe('with a high cost', () => {
    const list = Array.from({ length: 20_000 }, (_, index) => `item-${index}`)
    const spec = {
      list,
      other: list.map((item) => `${item}x`),
      text: 'a'.repeat(1_000_000),
      twin: `${'a'.repeat(999_999)}b`,
      mixed: mixedText(100_000),
      digits: '1'.repeat(200_000),
      host: `http://${'é'.repeat(40)}<`,
    }
    const strings = { type: 'array', items: { type: 'string' } } as const
    const text = { type: 'string' } as const
    const schema: Schema = {
      type: 'object',
      properties: { list: strings, other: strings, text, twin: text, mixed: text, digits: text, host: text },
    }

    it.each([
      'self.list.all(x, x in self.list)',
      'self.list.exists(x, x in self.other)',
      'sets.contains(self.list, self.list)',
      'sets.intersects(self.list, self.other)',
      'self.list.all(x, self.text < self.twin)',
      'self.list.exists(x, self.text == self.twin)',
      "duration(self.digits) > duration('1s')",
      "self.text.replace('a', self.text) == 'x'",
      "self.text.replace('', self.text) == 'x'",
      "self.list.exists(a, self.list.exists(b, self.list.exists(c, a == 'z')))",
      'self.list.map(x, self.text + x).size() == 1',
      'self.list.map(x, self.list + self.list).size() == 1',
      'self.list.all(x, self.text.contains(self.twin))',
      'self.list.join(self.text).size() == 1',
      'self.list.all(x, self.list.indexOf(x) >= 0)',
      "self.text.find('(.*a){200}b') == ''",
      "self.mixed.matches('(a|b)*a(a|b){40}c')",
      'self.text.matches(self.text)',
      'quantity(self.digits).isInteger()',
      'int(self.digits) == 1',
      "optional.of(self.text).optMap(a, a + a).optMap(b, b + b).optMap(c, c + c + c + c + c + c + c + c).hasValue() && self.list.all(x, self.text + self.text != '')",
    ])('are stopped by the budget: %s', (source) => {
      expect(messages(rule(schema, { rule: source }), spec)).toEqual([
        expect.stringContaining('call cost exceeds limit for rule'),
      ])
    })

    it('a format of a long text is checked in linear time', () => {
      expect(findFormat('duration')?.(spec.text)).toBe(false)
      expect(findFormat('duration')?.('1'.repeat(1_000_000))).toBe(false)
      expect(findFormat('duration')?.('1h1.5m.5s'.repeat(100_000))).toBe(true)
    })

    it.each([
      'self.list.all(x, x.size() < 20)',
      "self.list.all(x, x.startsWith('item-'))",
      "self.list.map(x, x + '-').size() == 20000",
      'self.list == self.list',
      "self.text.matches('^a*$')",
      'self.list.isSorted() || true',
      '!isURL(self.host)',
      "self.list.exists(x, x == 'item-19999')",
      "self.text.lowerAscii().startsWith('aaa')",
      'sets.contains(self.list.slice(0, 500), self.list.slice(0, 500))',
    ])('are not stopped when the cost is that of a large object: %s', (source) => {
      expect(messages(rule(schema, { rule: source }), spec)).toEqual([])
    })
  })
})
