/** Requests that are small to send and were expensive to answer: patches, nesting, YAML, rules, formats and history. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type LimitedServer, startLimitedServer } from './limited-server.ts'

/** Most memory of the whole process: heap, buffers, code. */
const PEAK_MIB = 1200

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const frees = '/apis/abuse.dev/v1/namespaces/default/frees'
const jsonPatch = 'application/json-patch+json'
const strategic = 'application/strategic-merge-patch+json'
const apply = 'application/apply-patch+yaml'

function definition(plural: string, kind: string, spec: object): object {
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } }
  return {
    metadata: { name: `${plural}.abuse.dev` },
    spec: {
      group: 'abuse.dev',
      scope: 'Namespaced',
      names: { plural, kind },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  }
}

const free = (name: string, spec: unknown): object => ({
  apiVersion: 'abuse.dev/v1',
  kind: 'Free',
  metadata: { name },
  spec,
})

const nested = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
const nestedFree = (name: string, levels: number): string =>
  `{"apiVersion":"abuse.dev/v1","kind":"Free","metadata":{"name":"${name}"},"spec":${nested(levels)}}`

describe('the API server under expensive requests', () => {
  let server: LimitedServer

  beforeEach(async () => {
    server = await startLimitedServer()
    const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
    expect((await server.request('POST', definitions, { body: definition('frees', 'Free', open) })).status).toBe(201)
  }, 60_000)

  afterEach(async () => {
    try {
      expect(await server.isReady()).toBe(true)
      const peak = await server.peakMib()
      if (peak !== undefined) expect(peak).toBeLessThan(PEAK_MIB)
    } finally {
      await server.stop()
    }
  })

  async function create(name: string, spec: unknown): Promise<void> {
    const { status, text } = await server.request('POST', frees, { body: free(name, spec) })
    expect(status, text.slice(0, 300)).toBe(201)
  }

  it('refuses a JSON patch whose copies double the object twenty times', async () => {
    await create('bomb', { text: 'x'.repeat(100_000) })
    const body = Array.from({ length: 20 }, (_, index) => ({ op: 'copy', from: '/spec', path: `/spec/c${index}` }))
    expect((await server.request('PATCH', `${frees}/bomb`, { body, type: jsonPatch })).status).toBe(422)
  })

  it('refuses a JSON patch whose copies nest the object deeper each time', async () => {
    await create('tower', { n: {} })
    const body = Array.from({ length: 14 }, (_, index) => ({
      op: 'copy',
      from: '/spec/n',
      path: `/spec${'/n'.repeat(2 ** index)}/n`,
    }))
    expect((await server.request('PATCH', `${frees}/tower`, { body, type: jsonPatch })).status).toBe(422)
  })

  it('answers a JSON patch of ten thousand insertions into a long list', async () => {
    await create('list', { list: Array.from({ length: 200_000 }, () => 0) })
    const body = Array.from({ length: 10_000 }, (_, index) => ({
      op: 'add',
      path: `/spec/list/${index % 2 === 0 ? '-' : index}`,
      value: index,
    }))
    expect((await server.request('PATCH', `${frees}/list`, { body, type: jsonPatch })).status).toBe(200)
  })

  it('merges thousands of items in reverse order', async () => {
    const path = '/apis/apps/v1/namespaces/default/deployments'
    const env = Array.from({ length: 8000 }, (_, index) => ({ name: `E${index}`, value: 'x' }))
    const template = (items: object[]) => ({ containers: [{ name: 'c', image: 'i', env: items }] })
    const labels = { app: 'a' }
    const spec = { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: template(env) } }
    const created = await server.request('POST', path, { body: { metadata: { name: 'many' }, spec } })
    expect(created.status, created.text.slice(0, 300)).toBe(201)
    const items = env.toReversed().map(({ name }) => ({ name, value: 'y' }))
    const order = { '$setElementOrder/env': items.map(({ name }) => ({ name })) }
    for (const container of [
      { name: 'c', env: items },
      { name: 'c', env: items, ...order },
    ]) {
      const body = { spec: { template: { spec: { containers: [container] } } } }
      expect((await server.request('PATCH', `${path}/many`, { body, type: strategic })).status).toBe(200)
    }
    const applied = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'many' }, spec }
    const forced = `${path}/many?fieldManager=x&force=true`
    expect((await server.request('PATCH', forced, { body: applied, type: apply })).status).toBe(200)
  })

  it('merges thousands of repeated finalizers', async () => {
    const path = '/api/v1/namespaces/default/configmaps'
    await server.request('POST', path, { body: { metadata: { name: 'repeated' } } })
    const finalizers = Array.from({ length: 40_000 }, (_, index) => `a.b/${index % 20_000}`)
    const sent = { body: { metadata: { finalizers } }, type: strategic }
    expect((await server.request('PATCH', `${path}/repeated`, sent)).status).toBe(200)
  })

  it.each([1001, 9990, 100_000])('refuses an object of %d levels in every format', async (levels) => {
    const body = nestedFree(`deep-${levels}`, levels)
    const requests = [
      await server.request('POST', frees, { body }),
      await server.request('POST', frees, { body, type: 'application/yaml' }),
      await server.request('POST', frees, { body: ` ${body}`, type: 'application/yaml' }),
      await server.request('PATCH', `${frees}/deep?fieldManager=x`, { body, type: apply }),
      await server.request('PATCH', `${frees}/deep`, {
        body: `{"spec":${nested(levels)}}`,
        type: 'application/merge-patch+json',
      }),
    ]
    expect(requests.map(({ status }) => status)).toEqual([400, 400, 400, 400, 400])
  })

  it('answers an object of many deep branches', async () => {
    const branches = Array.from({ length: 80 }, (_, index) => `"b${index}":${nested(900)}`)
    const body = nestedFree('wide', 1).replace('{"a":1}', `{${branches.join(',')}}`)
    const created = await server.request('POST', frees, { body })
    expect(created.status, created.text.slice(0, 300)).toBe(201)
    const patched = await server.request('PATCH', `${frees}/wide`, {
      body: [{ op: 'add', path: '/spec/b0/more', value: 1 }],
      type: jsonPatch,
    })
    expect(patched.status).toBe(200)
  })

  it('refuses YAML whose aliases multiply', async () => {
    const levels = Array.from({ length: 9 }, (_, index) => {
      const items =
        index === 0 ? Array.from({ length: 9 }, () => 'x') : Array.from({ length: 9 }, () => `*l${index - 1}`)
      return `l${index}: &l${index} [${items.join(', ')}]`
    })
    const { status } = await server.request('POST', frees, { body: levels.join('\n'), type: 'application/yaml' })
    expect(status).toBe(400)
  })

  it('ends rules and formats that would take long', async () => {
    const strings = { type: 'array', items: { type: 'string' } }
    const text = { type: 'string' }
    const rules = [
      'self.list.all(x, x in self.list)',
      'sets.contains(self.list, self.other)',
      'self.list.all(x, self.text < self.twin)',
      "self.text.replace('', self.text) == 'x'",
      "duration(self.digits) > duration('1s')",
      'self.list.all(a, self.list.exists(b, a == b && self.text.contains(self.twin)))',
      "self.text.find('(.*a){200}b') == ''",
      'quantity(self.digits).isInteger()',
    ]
    const list = Array.from({ length: 20_000 }, (_, index) => `item-${index}`)
    const spec = {
      list,
      other: list.map((item) => `${item}x`),
      text: 'a'.repeat(200_000),
      twin: `${'a'.repeat(199_999)}b`,
      digits: '1'.repeat(200_000),
    }
    for (const [index, rule] of rules.entries()) {
      const properties = { list: strings, other: strings, text, twin: text, digits: text }
      const schema = { type: 'object', properties, 'x-kubernetes-validations': [{ rule }] }
      const plural = `ruled${index}s`
      const created = await server.request('POST', definitions, { body: definition(plural, `Ruled${index}`, schema) })
      expect(created.status, created.text.slice(0, 300)).toBe(201)
      const body = { apiVersion: 'abuse.dev/v1', kind: `Ruled${index}`, metadata: { name: 'a' }, spec }
      const reply = await server.request('POST', `/apis/abuse.dev/v1/namespaces/default/${plural}`, { body })
      expect([rule, reply.status]).toEqual([rule, 422])
      expect(reply.text).toContain('call cost exceeds limit')
    }
    const formats = [
      'duration',
      'email',
      'hostname',
      'uri',
      'date-time',
      'cidr',
      'rgbcolor',
      'isbn',
      'creditcard',
      'uuid',
    ]
    const properties = Object.fromEntries(formats.map((format) => [format, { type: 'string', format }]))
    const body = definition('formatteds', 'Formatted', { type: 'object', properties })
    expect((await server.request('POST', definitions, { body })).status).toBe(201)
    for (const filling of ['1', 'a', ' ', '1.', 'a.', '-', '%', 'é', '1h']) {
      const value = `${filling.repeat(100_000 / filling.length)}!`
      const object = {
        apiVersion: 'abuse.dev/v1',
        kind: 'Formatted',
        metadata: { name: 'a' },
        spec: Object.fromEntries(formats.map((format) => [format, value])),
      }
      const reply = await server.request('POST', '/apis/abuse.dev/v1/namespaces/default/formatteds', { body: object })
      expect(reply.status).toBe(422)
    }
  })

  it('keeps no more history than its bytes', async () => {
    await create('large', { text: '' })
    const text = 'x'.repeat(1_400_000)
    const update = async (from: number, to: number): Promise<void> => {
      for (let index = from; index < to; index += 1) {
        const body = { spec: { text, index } }
        const { status } = await server.request('PATCH', `${frees}/large`, {
          body,
          type: 'application/merge-patch+json',
        })
        expect(status).toBe(200)
      }
    }
    // 280 MB, more than the 256 MiB of the history; 140 MB more replace as much.
    await update(0, 200)
    const before = await server.peakMib()
    await update(200, 300)
    const after = await server.peakMib()
    if (before !== undefined && after !== undefined) expect(after - before).toBeLessThan(64)
  })
})
