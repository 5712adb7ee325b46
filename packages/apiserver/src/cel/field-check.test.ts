import { beforeAll, describe, expect, it } from 'vitest'
import type { Schema } from '../schema/model.ts'
import { startObject, startRule } from './budget.ts'
import { type Engine, loadEngine } from './engine.ts'

const self: Schema = {
  type: 'object',
  properties: {
    a: { type: 'string' },
    'x-y': { type: 'string' },
    list: { type: 'array', items: { type: 'object', properties: { k: { type: 'string' } } } },
    map: { type: 'object', additionalProperties: { type: 'object', properties: { v: { type: 'integer' } } } },
    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  },
}

describe('field references of a rule', () => {
  let engine: Engine
  beforeAll(async () => (engine = await loadEngine()))

  it.each([
    'self.a == "x"',
    'self.x__dash__y == "x"',
    'has(self.a) && self.list.all(x, x.k == "a")',
    'self.list[0].k == "a"',
    'self.map["q"].v > 1',
    'self.map.q.v > 1',
    'self.map.all(key, self.map[key].v > 1)',
    'self.map.all(key, value, value.v > 1)',
    'self.free.anything.goes == 1',
    'self.?a.orValue("") == ""',
    'self.list.filter(x, x.k != "").map(x, x.k).size() > 0',
    'oldSelf.a == self.a',
  ])('are declared: %s', (rule) => {
    expect(engine.explainRule(rule, self, 'boolean')).toBeUndefined()
  })

  it.each([
    ['self.nosuch == 1', '1:5', 'nosuch'],
    ['has(self.nosuch)', '1:4', 'nosuch'],
    ['self.list.all(x, x.nosuch == 1)', '1:19', 'nosuch'],
    ['self.list[0].nosuch == 1', '1:13', 'nosuch'],
    ['self.map["q"].nosuch == 1', '1:14', 'nosuch'],
    ['self.map.all(key, value, value.nosuch == 1)', '1:31', 'nosuch'],
    ['true &&\n self.nosuch', '2:6', 'nosuch'],
  ])('are undefined: %j at %s, field %s', (rule, position, field) => {
    expect(engine.explainRule(rule, self, 'boolean')).toContain(
      `compilation failed: ERROR: <input>:${position}: undefined field '${field}'\n | `,
    )
  })

  it('determine the type of the result, which is checked', () => {
    expect(engine.explainRule('self.a', self, 'boolean')).toBe('cel expression must evaluate to a bool')
    expect(engine.explainRule('1', self, 'string')).toBe('messageExpression must evaluate to a string')
    expect(engine.explainRule('self.a', self, 'string')).toBeUndefined()
  })

  it.each([
    ['self.list.all(i, v, i < 2 && v.k != "z")', true],
    ['self.list.exists(i, v, i == 1 && v.k == "b")', true],
    ['self.map.exists(k, v, k == "q" && v.v == 3)', true],
    ['self.map.all(k, v, v.v > 3)', false],
    ['(self.list).existsOne(i, v, v.k == "a")', true],
    ['self.list.transformList(i, v, v.k + "!") == ["a!", "b!"]', true],
    ['self.list.transformList(i, v, i > 0, v.k) == ["b"]', true],
    ['self.map.transformMap(k, v, v.v + 1)["q"] == 4', true],
    ['self.map.transformMap(k, v, v.v > 5, v.v).size() == 0', true],
    ['self.list.all(i, v, self.list.exists(j, w, i == j && v.k == w.k))', true],
  ])('with two variables: %s is %s', (rule, expected) => {
    const value = { list: [{ k: 'a' }, { k: 'b' }], map: { q: { v: 3n } } }
    startObject()
    startRule()
    expect(engine.compile(rule).evaluate({ self: value })).toBe(expected)
  })
})
