import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Obj } from '../object/object.ts'
import { admitDefaults, admitValid } from './admission.ts'
import { diff, type PatchOperation } from './json-patch.ts'
import { parseAdmission } from './review.ts'

interface Route extends Obj {
  spec: { host: string; port?: number }
}

const reviewOf = (request: object) => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: { uid: 'u', operation: 'CREATE', userInfo: { username: 'jane' }, ...request },
})
const route = (host: string, extra: object = {}): Route => ({ metadata: { name: 'a' }, spec: { host, ...extra } })
const patchOf = (patch: string | undefined) =>
  JSON.parse(Buffer.from(patch ?? '', 'base64').toString()) as PatchOperation[]

/** Applies the RFC 6902 operations that `diff` generates; independent of the implementation. */
function apply(value: unknown, operations: readonly PatchOperation[]): unknown {
  const root = { value: structuredClone(value) }
  for (const operation of operations) {
    const segments = ['value', ...operation.path.split('/').slice(1)].map((segment) =>
      segment.replaceAll('~1', '/').replaceAll('~0', '~'),
    )
    const last = segments.pop() ?? ''
    const parent = segments.reduce<unknown>((node, segment) => (node as Record<string, unknown>)[segment], root)
    if (Array.isArray(parent)) {
      if (operation.op === 'remove') parent.splice(Number(last), 1)
      else if (last === '-') parent.push(operation.value)
      else parent[Number(last)] = operation.value
    } else if (operation.op === 'remove') delete (parent as Record<string, unknown>)[last]
    else
      Object.defineProperty(parent, last, {
        value: operation.value,
        enumerable: true,
        configurable: true,
        writable: true,
      })
  }
  return root.value
}

describe('json patch', () => {
  it('transforms one value into the other, for any two', () => {
    const key = fc.constantFrom('a', 'b', 'a/b', '~', '', 'constructor', 'toString', '0')
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom(0, 1, '', 'x', true, null),
        fc.array(tie('value'), { maxLength: 4 }),
        fc.dictionary(key, tie('value'), { maxKeys: 4, noNullPrototype: true }),
      ),
    }))
    fc.assert(
      fc.property(value, value, (from, to) => {
        expect(apply(from, diff(from, to))).toEqual(to)
        expect(diff(to, structuredClone(to))).toEqual([])
      }),
      { numRuns: 1_000 },
    )
  })

  it('treats __proto__ as an ordinary name', () => {
    const to = JSON.parse('{"__proto__":{"polluted":true}}') as object
    expect(diff({}, to)).toEqual([{ op: 'add', path: '/__proto__', value: { polluted: true } }])
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })
})

describe('admission', () => {
  it('patches the defaulted fields, and nothing else', async () => {
    const hooks = {
      default: (object: Route) => {
        object.spec.host = object.spec.host.toLowerCase()
        object.spec.port ??= 443
      },
    }
    const object = { ...route('A.test'), unknown: { kept: [1, 2] } }
    const response = await admitDefaults(hooks, parseAdmission(reviewOf({ object })))
    expect(response).toMatchObject({ uid: 'u', allowed: true, patchType: 'JSONPatch' })
    expect(patchOf(response.patch)).toEqual([
      { op: 'replace', path: '/spec/host', value: 'a.test' },
      { op: 'add', path: '/spec/port', value: 443 },
    ])
    expect(object.spec.host).toBe('A.test')
    const filled = await admitDefaults(hooks, parseAdmission(reviewOf({ object: route('a.test', { port: 1 }) })))
    expect(filled).toEqual({ uid: 'u', allowed: true })
  })

  it('rejects with every problem and its field, and returns warnings', async () => {
    const hooks = {
      validate: () => ['spec.host: must not end with a dot', 'nothing works', 'warning: port 80 is deprecated'],
    }
    expect(await admitValid(hooks, parseAdmission(reviewOf({ object: route('a.') })))).toEqual({
      uid: 'u',
      allowed: false,
      warnings: ['port 80 is deprecated'],
      status: {
        code: 422,
        reason: 'Invalid',
        message: 'spec.host: must not end with a dot; nothing works',
        details: { causes: [{ field: 'spec.host', message: 'must not end with a dot' }, { message: 'nothing works' }] },
      },
    })
    const warned = { validate: async () => ['warning: only this'] }
    expect(await admitValid(warned, parseAdmission(reviewOf({ object: route('a') })))).toEqual({
      uid: 'u',
      allowed: true,
      warnings: ['only this'],
    })
  })

  it('passes old and new object of the operation, and the user', async () => {
    const seen: unknown[] = []
    const hooks = {
      validate: (now: unknown, old: unknown, info: unknown) => {
        seen.push([now !== undefined, old !== undefined, info])
        return []
      },
    }
    const object = route('a')
    await admitValid(hooks, parseAdmission(reviewOf({ object })))
    await admitValid(hooks, parseAdmission(reviewOf({ operation: 'UPDATE', object, oldObject: object, dryRun: true })))
    await admitValid(
      hooks,
      parseAdmission(reviewOf({ operation: 'DELETE', object: null, oldObject: object, namespace: 'web', name: 'a' })),
    )
    const userInfo = { username: 'jane' }
    expect(seen).toEqual([
      [true, false, { operation: 'CREATE', dryRun: false, userInfo }],
      [true, true, { operation: 'UPDATE', dryRun: true, userInfo }],
      [false, true, { operation: 'DELETE', dryRun: false, userInfo, namespace: 'web', name: 'a' }],
    ])
  })

  it.each([
    [undefined],
    [null],
    [[]],
    ['text'],
    [{}],
    [{ ...reviewOf({}), kind: 'Other' }],
    [{ ...reviewOf({}), apiVersion: 'admission.k8s.io/v1beta1' }],
    [reviewOf({ uid: '' })],
    [reviewOf({ operation: 'EXPLODE' })],
  ])('rejects a body that is not a review: %j', (body) => {
    expect(() => parseAdmission(body)).toThrow(/AdmissionReview/)
  })
})
