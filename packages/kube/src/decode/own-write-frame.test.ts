import { describe, expect, it } from 'vitest'
import { createDecoder } from './decode.ts'
import { kind, type Obj } from '../object/object.ts'
import { Store } from '../cache/store.ts'

interface Thing extends Obj {
  spec?: { host?: string }
}
const Thing = kind<Thing>({ group: 'example.test', version: 'v1', kind: 'Thing', plural: 'things', namespaced: true })

const thing = (version: string, host: string, resourceVersionElsewhere?: string): Thing => ({
  metadata: {
    labels: { resourceVersion: resourceVersionElsewhere ?? '' },
    managedFields: [{ manager: 'me', operation: 'Apply', fieldsV1: { 'f:spec': {} } }],
    name: 'a',
    namespace: 'ns',
    resourceVersion: version,
    uid: 'uid',
  },
  spec: { host },
})

function setUp() {
  const store = new Store<Thing>(() => undefined, { manager: 'me' })
  store.commit('100')
  const pendingWrites = {
    get hasPending() {
      return store.hasPendingWrites
    },
    find: (key: string, version: string) => store.findPendingWrite(key, version),
  }
  const decoder = createDecoder(Thing, { pendingWrites, keepManagedFieldsOf: 'me' })
  const read = (type: string, object: Thing) => {
    const bytes = Buffer.from(JSON.stringify({ type, object }))
    return decoder.frame(bytes, 0, bytes.length)
  }
  return { store, read }
}

describe('the watch event of an own write', () => {
  it('is the cached response itself, with the owned fields', () => {
    const { store, read } = setUp()
    store.offer(thing('110', 'ours'))
    const written = store.get('ns/a')
    for (const type of ['ADDED', 'MODIFIED']) {
      const frame = read(type, thing('110', 'not looked at'))
      expect(frame).toMatchObject({ type, own: new Map([['', '{"f:spec":{}}']]) })
      expect('object' in frame && frame.object).toBe(written)
    }
  })

  it('leaves the cached response in place, and the next event is parsed', () => {
    const { store, read } = setUp()
    store.offer(thing('110', 'ours'))
    const written = store.get('ns/a')
    const frame = read('ADDED', thing('110', 'ours'))
    if (frame.type === 'ADDED') store.upsert(frame)
    expect([store.get('ns/a') === written, store.ownFields('ns/a', '')]).toEqual([true, '{"f:spec":{}}'])
    expect(read('MODIFIED', thing('110', 'read'))).toMatchObject({ object: { spec: { host: 'read' } } })
  })

  it.each([
    ['another version', 'MODIFIED', thing('111', 'read')],
    ['a deletion', 'DELETED', thing('110', 'read')],
    ['the version in another field', 'MODIFIED', thing('111', 'read', '110')],
    ['another object', 'MODIFIED', { ...thing('110', 'read'), metadata: { name: 'b', resourceVersion: '110' } }],
  ])('is not %s', (_, type, object) => {
    const { store, read } = setUp()
    store.offer(thing('110', 'ours'))
    expect(read(type, object)).toMatchObject({ object: { spec: { host: 'read' } } })
  })
})
