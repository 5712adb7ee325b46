import { describe, expect, it } from 'vitest'
import { kind, type Obj } from '../object/object.ts'
import { Store } from './store.ts'
import type { StoreChange } from './store-change.ts'
import { isNewer } from '../watch/resource-version.ts'

interface Thing extends Obj {
  spec?: { host?: string }
}
kind<Thing>({ group: 'example.test', version: 'v1', kind: 'Thing', plural: 'things', namespaced: true })

const thing = (name: string, version: number, host = name, uid = `uid-${name}`): Thing => ({
  metadata: { name, namespace: 'ns', uid, resourceVersion: String(version) },
  spec: { host },
})
const decoded = (object: Thing) => ({ object, own: undefined })

function storeWith(...objects: Thing[]) {
  const changes: StoreChange<Thing>[] = []
  const store = new Store<Thing>((batch) => changes.push(...batch), { freeze: true, manager: 'me' })
  store.addIndex('host', ({ spec }) => (spec?.host === undefined ? [] : [spec.host]))
  for (const object of objects) store.stage(decoded(object))
  if (objects.length > 0) store.commit('100')
  const log = () =>
    changes.splice(0).map((change) => {
      const version = change.object.metadata.resourceVersion
      return change.type === 'updated'
        ? `updated ${change.old.metadata.resourceVersion}>${version}`
        : `${change.type} ${version}`
    })
  log()
  const seen = (key: string) => store.get(key)?.metadata.resourceVersion
  const hosts = (host: string) => store.by('host', host).map(({ metadata }) => metadata.name)
  return { store, changes, log, seen, hosts }
}

describe('versions', () => {
  it('compare as decimal strings of any length, and are not ordered when they are not numeric', () => {
    expect(isNewer('10', '9')).toBe(true)
    expect(isNewer('9', '10')).toBe(false)
    expect(isNewer('18446744073709551617', '18446744073709551616')).toBe(true)
    expect([isNewer('b', 'a'), isNewer('2', 'a'), isNewer('a', '1'), isNewer('01', '0')]).toEqual([
      false,
      false,
      false,
      false,
    ])
  })
})

describe('a store', () => {
  it('indexes an object that changed while its set was staged by its last values only', () => {
    const { store, hosts } = storeWith()
    store.stage(decoded(thing('a', 1, 'old.test')))
    store.stage(decoded(thing('a', 2, 'new.test')))
    store.commit('9')
    expect([hosts('old.test'), hosts('new.test')]).toEqual([[], ['a']])
    store.delete(thing('a', 10, 'new.test'))
    store.upsert(decoded(thing('a', 11, 'third.test', 'uid-2')))
    expect([hosts('old.test'), hosts('new.test'), hosts('third.test')]).toEqual([[], [], ['a']])
  })

  it('shows nothing of a set that is still being staged, then all of it at once', () => {
    const { store, changes } = storeWith()
    store.stage(decoded(thing('a', 1)))
    store.stage(decoded(thing('b', 2)))
    expect([store.hasSynced, store.get('ns/a'), store.by('host', 'a'), changes.length]).toEqual([
      false,
      undefined,
      [],
      0,
    ])
    store.commit('5')
    expect(store.hasSynced).toBe(true)
    expect(store.list().map(({ metadata }) => metadata.name)).toEqual(['a', 'b'])
    expect(changes.every((change) => change.type === 'added' && change.initial)).toBe(true)
  })

  it('returns the object it was given, not a copy, frozen', () => {
    const object = thing('a', 1)
    const { store } = storeWith(object)
    expect(store.get('ns/a')).toBe(object)
    expect(() => {
      object.spec = {}
    }).toThrow(TypeError)
  })

  it('changes indexes together with the object', () => {
    const { store, hosts } = storeWith(thing('a', 1, 'x'), thing('b', 2, 'x'))
    expect(hosts('x')).toEqual(['a', 'b'])
    store.upsert(decoded(thing('a', 101, 'y')))
    expect([hosts('x'), hosts('y')]).toEqual([['b'], ['a']])
    store.delete(thing('b', 102, 'x'))
    expect(hosts('x')).toEqual([])
    store.addIndex('late', ({ metadata }) => [metadata.name ?? ''])
    expect(store.by('late', 'a')).toHaveLength(1)
  })

  it('keeps reads and other indexes consistent when an index function throws', () => {
    const errors: string[] = []
    const store = new Store<Thing>(() => undefined, { onIndexError: (name) => errors.push(name) })
    store.addIndex('bad', () => {
      throw new Error('odd object')
    })
    store.stage(decoded(thing('a', 1)))
    store.commit('1')
    store.upsert(decoded(thing('a', 2)))
    expect(store.get('ns/a')?.metadata.resourceVersion).toBe('2')
    expect(errors.length).toBeGreaterThan(0)
  })

  it('reports what a relist changed, synthesises deletions, and does not report unchanged objects', () => {
    const { store, log } = storeWith(thing('same', 1), thing('changed', 2), thing('gone', 3), thing('remade', 4))
    for (const object of [
      thing('same', 1),
      thing('changed', 150),
      thing('new', 151),
      thing('remade', 152, 'h', 'other'),
    ]) {
      store.stage(decoded(object))
    }
    store.commit('160')
    expect(log().toSorted()).toEqual(['added 151', 'added 152', 'deleted 3', 'deleted 4', 'updated 2>150'])
  })

  it('keeps the cached object when a relist returns the same version', () => {
    const first = thing('a', 1)
    const { store } = storeWith(first)
    store.stage(decoded(thing('a', 1)))
    store.commit('120')
    expect(store.get('ns/a')).toBe(first)
  })

  it('drops a staged set without any effect', () => {
    const { store, log } = storeWith(thing('a', 1))
    store.stage(decoded(thing('b', 2)))
    store.discard()
    store.stage(decoded(thing('a', 1)))
    store.commit('110')
    expect([log(), store.list().length]).toEqual([[], 1])
  })

  it('counts what a staged set would remove', () => {
    const { store } = storeWith(thing('a', 1), thing('b', 2), thing('c', 3))
    store.stage(decoded(thing('a', 1)))
    store.stage(decoded(thing('d', 4)))
    expect(store.removals).toEqual({ known: 3, removed: 2 })
  })

  it('is known to be empty once cleared, and reports every deletion', () => {
    const { store, log, hosts } = storeWith(thing('a', 1), thing('b', 2))
    store.clear()
    expect([log(), store.list(), store.hasSynced, hosts('a')]).toEqual([['deleted 1', 'deleted 2'], [], true, []])
  })

  it('finds an object that returns with other values only by those: after a clear, and after a removal while staged', () => {
    const cleared = storeWith(thing('a', 1, 'old.test'))
    cleared.store.clear()
    cleared.store.upsert(decoded(thing('a', 2, 'new.test')))
    expect([cleared.hosts('old.test'), cleared.hosts('new.test')]).toEqual([[], ['a']])

    const staged = storeWith()
    staged.store.stage({ object: thing('a', 1, 'old.test'), own: new Map([['', '{"f:spec":{}}']]) })
    staged.store.unstage('ns/a')
    staged.store.commit('9')
    expect(staged.store.ownFields('ns/a', '')).toBeUndefined()
    staged.store.upsert(decoded(thing('a', 10, 'new.test')))
    expect([staged.hosts('old.test'), staged.hosts('new.test')]).toEqual([[], ['a']])
  })

  it('fills an index that is added while a set is staged with the staged objects too', () => {
    const { store } = storeWith()
    store.stage(decoded(thing('a', 1)))
    store.addIndex('name', ({ metadata }) => [metadata.name ?? ''])
    store.stage(decoded(thing('b', 2)))
    store.commit('9')
    expect(['a', 'b'].map((name) => store.by('name', name).length)).toEqual([1, 1])
  })

  it('has no owned fields of an object that was deleted', () => {
    const { store } = storeWith()
    store.commit('1')
    store.upsert({ object: thing('a', 2), own: new Map([['', '{"f:spec":{}}']]) })
    expect(store.ownFields('ns/a', '')).toBe('{"f:spec":{}}')
    store.delete(thing('a', 3))
    expect(store.ownFields('ns/a', '')).toBeUndefined()
  })

  it('reports the same version only once', () => {
    const { store, log } = storeWith(thing('a', 1))
    store.upsert(decoded(thing('a', 1)))
    expect(log()).toEqual([])
  })
})

describe('reading our own writes', () => {
  it('shows an update before the watch event, whose old object is that of the previous watch event', () => {
    const { store, log, seen, hosts } = storeWith(thing('a', 1, 'old'))
    store.offer(thing('a', 110, 'new'))
    expect([seen('ns/a'), hosts('new'), hosts('old'), log()]).toEqual(['110', ['a'], [], []])
    store.upsert(decoded(thing('a', 105, 'between')))
    expect([seen('ns/a'), log()]).toEqual(['110', ['updated 1>105']])
    store.upsert(decoded(thing('a', 110, 'new')))
    expect([seen('ns/a'), log()]).toEqual(['110', ['updated 105>110']])
    store.upsert(decoded(thing('a', 111, 'later')))
    expect([seen('ns/a'), hosts('later'), log()]).toEqual(['111', ['a'], ['updated 110>111']])
  })

  it('shows a create, and the watch still reports it as added', () => {
    const { store, log, seen } = storeWith(thing('x', 1))
    store.offer(thing('a', 110))
    expect([seen('ns/a'), log(), [...store.watched()].length]).toEqual(['110', [], 1])
    store.upsert(decoded(thing('a', 110)))
    expect(log()).toEqual(['added 110'])
  })

  it('keeps indexes and owned fields when the watch reports the write, and then lists the object of the watch event', () => {
    const { store, hosts } = storeWith(thing('a', 1, 'old'))
    const written = thing('a', 110, 'new')
    written.metadata.managedFields = [{ manager: 'me', operation: 'Apply', fieldsV1: { 'f:spec': {} } }]
    store.offer(written)
    expect(store.list()).toHaveLength(1)
    const echo = thing('a', 110, 'new')
    store.upsert(decoded(echo))
    expect([hosts('new'), hosts('old'), store.ownFields('ns/a', '')]).toEqual([['a'], [], '{"f:spec":{}}'])
    expect(store.get('ns/a')).toBe(echo)
    expect(store.list()[0]).toBe(echo)
  })

  it('never goes back to an older response', () => {
    const { store, seen } = storeWith(thing('a', 1))
    store.offer(thing('a', 120))
    store.offer(thing('a', 115))
    expect(seen('ns/a')).toBe('120')
  })

  it('does not restore an object that the watch has already reported deleted', () => {
    const { store, seen } = storeWith(thing('a', 1))
    store.upsert(decoded(thing('b', 110)))
    store.delete(thing('b', 111))
    store.offer(thing('b', 110))
    expect(seen('ns/b')).toBeUndefined()
  })

  it('keeps what was written before the first sync, when the list is older', () => {
    const { store, seen, log } = storeWith()
    store.offer(thing('a', 110))
    store.stage(decoded(thing('a', 50)))
    store.commit('100')
    expect([seen('ns/a'), log()]).toEqual(['110', ['added 50']])
    store.upsert(decoded(thing('a', 110)))
    expect(log()).toEqual(['updated 50>110'])
  })

  it('hides a deleted object until the watch confirms it', () => {
    const { store, log, seen, hosts } = storeWith(thing('a', 1))
    store.offerDeleted('ns/a', 'uid-a')
    expect([seen('ns/a'), hosts('a'), log()]).toEqual([undefined, [], []])
    store.upsert(decoded(thing('a', 105)))
    expect([seen('ns/a'), log()]).toEqual([undefined, ['updated 1>105']])
    store.delete(thing('a', 110))
    expect([seen('ns/a'), log()]).toEqual([undefined, ['deleted 110']])
  })

  it('counts an object once after its deletion was followed by a new object of the name, by the watch or by an own write', () => {
    const byWatch = storeWith(thing('a', 1))
    byWatch.store.offerDeleted('ns/a', 'uid-a')
    expect(byWatch.store.removals.known).toBe(1)
    byWatch.store.upsert(decoded(thing('a', 120, 'a', 'uid-2')))
    expect([byWatch.store.removals.known, byWatch.store.hasPendingWrites]).toEqual([1, false])

    const byWrite = storeWith(thing('a', 1))
    byWrite.store.offerDeleted('ns/a', 'uid-a')
    byWrite.store.offer(thing('a', 120, 'a', 'uid-2'))
    expect([byWrite.store.removals.known, byWrite.seen('ns/a')]).toEqual([1, '120'])
  })

  it('does not hide another object of the same name', () => {
    const { store, seen } = storeWith(thing('a', 1))
    store.offerDeleted('ns/a', 'uid-of-an-older-one')
    expect(seen('ns/a')).toBe('1')
    store.offerDeleted('ns/a', 'uid-a')
    store.upsert(decoded(thing('a', 112, 'a', 'uid-new')))
    expect(seen('ns/a')).toBe('112')
  })

  it('shows a recreated object while the watch still reports the deletion of the old one', () => {
    const { store, log, seen } = storeWith(thing('a', 1))
    store.offerDeleted('ns/a', 'uid-a')
    store.offer(thing('a', 112, 'a', 'uid-new'))
    store.delete(thing('a', 111))
    expect([seen('ns/a'), log()]).toEqual(['112', ['deleted 111']])
    store.upsert(decoded(thing('a', 112, 'a', 'uid-new')))
    expect([seen('ns/a'), log()]).toEqual(['112', ['added 112']])
  })

  it('reports the deletion of an object shown only by an own write: by the watch, by a list, or when the kind is removed', () => {
    const byWatch = storeWith(thing('a', 10))
    byWatch.store.offer(thing('b', 110))
    byWatch.store.delete(thing('b', 111))
    expect([byWatch.seen('ns/b'), byWatch.log()]).toEqual([undefined, ['deleted 111']])

    const byList = storeWith(thing('a', 10))
    byList.store.offer(thing('b', 110))
    byList.store.stage(decoded(thing('a', 10)))
    byList.store.commit('120')
    expect([byList.seen('ns/b'), byList.log()]).toEqual([undefined, ['deleted 110']])

    const byKind = storeWith(thing('a', 10))
    byKind.store.offer(thing('b', 110))
    byKind.store.clear()
    expect(byKind.log()).toEqual(['deleted 10', 'deleted 110'])
  })

  it('is kept after a relist older than the write, and replaced by a newer one', () => {
    const { store, seen, log } = storeWith(thing('a', 1), thing('b', 2))
    store.offer(thing('a', 150))
    store.offerDeleted('ns/b', 'uid-b')
    store.stage(decoded(thing('a', 1)))
    store.stage(decoded(thing('b', 2)))
    store.commit('140')
    expect([seen('ns/a'), seen('ns/b'), log()]).toEqual(['150', undefined, []])
    store.stage(decoded(thing('a', 155)))
    store.commit('160')
    expect([seen('ns/a'), log().toSorted()]).toEqual(['155', ['deleted 2', 'updated 1>155']])
  })

  it('is dropped when the server was restored to an older version', () => {
    const { store, seen } = storeWith(thing('a', 1))
    store.offer(thing('a', 150))
    store.stage(decoded(thing('a', 20)))
    store.commit('50')
    expect(seen('ns/a')).toBe('20')
  })

  it('is disabled when versions cannot be compared', () => {
    const { store } = storeWith(thing('a', 1))
    store.offer({
      metadata: { name: 'a', namespace: 'ns', uid: 'uid-a', resourceVersion: 'opaque' },
      spec: { host: 'new' },
    })
    expect(store.get('ns/a')?.spec?.host).toBe('a')
  })

  it('keeps the owned fields of the response, and no managedFields in the cache', () => {
    const { store } = storeWith(thing('a', 1))
    const written = thing('a', 110)
    written.metadata.managedFields = [{ manager: 'me', operation: 'Apply', fieldsV1: { 'f:spec': {} } }]
    store.offer(written)
    expect(store.ownFields('ns/a', '')).toBe('{"f:spec":{}}')
    expect(store.get('ns/a')?.metadata.managedFields).toBeUndefined()
    expect(written.metadata.managedFields).toHaveLength(1)
  })
})
