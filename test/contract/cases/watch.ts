/** Watches (B3.3). */
import { expect } from 'vitest'
import { area, type CaseContext, merge, ok } from '../case.ts'
import type { Event, Json } from '../client.ts'

const version = (object: Json): string => String((object['metadata'] as Json)['resourceVersion'])
const name = (event: Event | undefined): string => String(event?.object['metadata']?.['name'])
const brief = (event: Event | undefined): string => `${event?.type} ${name(event)}`

async function create(t: CaseContext, widget: string, fields: object = {}): Promise<Json> {
  return await ok(t.client.request('POST', t.widgets, { body: t.widget(widget, fields) }), 201)
}

async function relabel(t: CaseContext, widget: string, labels: object): Promise<Json> {
  return await ok(t.client.request('PATCH', `${t.widgets}/${widget}`, { ...merge, body: { metadata: { labels } } }))
}

const oldEtcd = 'needs etcd 3.4.25 or newer for progress notifications'

export const watch = [
  ...area('B3.3 watch', {
    'without a version starts with the current state': async (t) => {
      await create(t, 'a')
      await create(t, 'b')
      const watch = await t.client.watch(t.widgets)
      expect([brief(await watch.next()), brief(await watch.next())].sort()).toEqual(['ADDED a', 'ADDED b'])
      watch.close()
    },
    'from version 0 starts with the current state': async (t) => {
      await create(t, 'a')
      const watch = await t.client.watch(t.widgets, { query: { resourceVersion: 0 } })
      expect(brief(await watch.next())).toBe('ADDED a')
      watch.close()
    },
    'from a version delivers the later changes': async (t) => {
      const a = await create(t, 'a')
      await create(t, 'b')
      const watch = await t.client.watch(t.widgets, { query: { resourceVersion: version(a) } })
      expect(brief(await watch.next())).toBe('ADDED b')
      watch.close()
    },
    'delivers create, change and delete': async (t) => {
      const list = await ok(t.client.request('GET', t.widgets))
      const watch = await t.client.watch(t.widgets, { query: { resourceVersion: version(list) } })
      await create(t, 'a')
      await relabel(t, 'a', { x: 'y' })
      await ok(t.client.request('DELETE', `${t.widgets}/a`))
      expect([brief(await watch.next()), brief(await watch.next()), brief(await watch.next())]).toEqual([
        'ADDED a',
        'MODIFIED a',
        'DELETED a',
      ])
      watch.close()
    },
    'contains the whole object with kind': async (t) => {
      const list = await ok(t.client.request('GET', t.maps))
      const watch = await t.client.watch(t.maps, {
        query: { resourceVersion: version(list), fieldSelector: 'metadata.name=a' },
      })
      await ok(t.client.request('POST', t.maps, { body: t.map('a', { data: { k: 'v' } }) }), 201)
      expect((await watch.next())?.object).toMatchObject({ kind: 'ConfigMap', apiVersion: 'v1', data: { k: 'v' } })
      watch.close()
    },
    'a DELETED event has the last state at the version of the delete': async (t) => {
      const a = await create(t, 'a', { spec: { size: 4 } })
      const watch = await t.client.watch(t.widgets, { query: { resourceVersion: version(a) } })
      await ok(t.client.request('DELETE', `${t.widgets}/a`))
      const event = await watch.next()
      expect(event?.type).toBe('DELETED')
      expect(event?.object).toMatchObject({ spec: { size: 4 } })
      expect(Number(version(event?.object as Json))).toBeGreaterThan(Number(version(a)))
      watch.close()
    },
    'one object by field selector': async (t) => {
      const list = await ok(t.client.request('GET', t.widgets))
      const watch = await t.client.watch(t.widgets, {
        query: { resourceVersion: version(list), fieldSelector: 'metadata.name=b' },
      })
      await create(t, 'a')
      await create(t, 'b')
      expect(brief(await watch.next())).toBe('ADDED b')
      watch.close()
    },
    'across namespaces': async (t) => {
      const list = await ok(t.client.request('GET', `/apis/${t.group}/v1/widgets`))
      const watch = await t.client.watch(`/apis/${t.group}/v1/widgets`, {
        query: { resourceVersion: version(list), fieldSelector: `metadata.namespace=${t.ns}` },
      })
      await create(t, 'a')
      expect(brief(await watch.next())).toBe('ADDED a')
      watch.close()
    },
    'an object that starts matching is ADDED': async (t) => {
      const a = await create(t, 'a')
      const watch = await t.client.watch(t.widgets, { query: { resourceVersion: version(a), labelSelector: 'on=yes' } })
      await relabel(t, 'a', { on: 'yes' })
      expect(brief(await watch.next())).toBe('ADDED a')
      watch.close()
    },
    'an object that stops matching is DELETED with its new state': async (t) => {
      const a = await create(t, 'a', { metadata: { name: 'a', labels: { on: 'yes' } } })
      const watch = await t.client.watch(t.widgets, { query: { resourceVersion: version(a), labelSelector: 'on=yes' } })
      const changed = await relabel(t, 'a', { on: 'no' })
      const event = await watch.next()
      expect(brief(event)).toBe('DELETED a')
      expect(version(event?.object as Json)).toBe(version(changed))
      watch.close()
    },
    'an update without changes causes no event': async (t) => {
      const a = await create(t, 'a', { spec: { size: 2 } })
      const watch = await t.client.watch(t.widgets, { query: { resourceVersion: version(a) } })
      await ok(t.client.request('PATCH', `${t.widgets}/a`, { ...merge, body: { spec: { size: 2 } } }))
      await create(t, 'b')
      expect(brief(await watch.next())).toBe('ADDED b')
      watch.close()
    },
    'a dry run causes no event': async (t) => {
      const list = await ok(t.client.request('GET', t.widgets))
      const watch = await t.client.watch(t.widgets, { query: { resourceVersion: version(list) } })
      await ok(t.client.request('POST', t.widgets, { body: t.widget('dry'), query: { dryRun: 'All' } }), 201)
      await create(t, 'real')
      expect(brief(await watch.next())).toBe('ADDED real')
      watch.close()
    },
    'ends after timeoutSeconds': async (t) => {
      const watch = await t.client.watch(t.widgets, { query: { timeoutSeconds: 1 } })
      expect(await watch.next()).toBeUndefined()
    },
    'in another version delivers that version': async (t) => {
      await create(t, 'a')
      const watch = await t.client.watch(`/apis/${t.group}/v1beta1/namespaces/${t.ns}/widgets`)
      expect((await watch.next())?.object['apiVersion']).toBe(`${t.group}/v1beta1`)
      watch.close()
    },
    'of a Table sends one row per event, columns once': async (t) => {
      await create(t, 'a', { spec: { size: 5 } })
      const watch = await t.client.watch(t.widgets, {
        headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
      })
      const first = await watch.next()
      expect(first?.object).toMatchObject({ kind: 'Table', rows: [{ cells: ['a', 5, 'red', expect.any(String)] }] })
      expect((first?.object['columnDefinitions'] as unknown as unknown[] | undefined)?.length).toBe(4)
      await relabel(t, 'a', { x: 'y' })
      expect((await watch.next())?.object['columnDefinitions'] ?? null).toBeNull()
      watch.close()
    },
    'of PartialObjectMetadata sends metadata': async (t) => {
      await create(t, 'a')
      const watch = await t.client.watch(t.widgets, {
        headers: { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' },
      })
      const event = await watch.next()
      expect(event?.object['kind']).toBe('PartialObjectMetadata')
      expect(event?.object).not.toHaveProperty('spec')
      watch.close()
    },
    'events arrive in the order of their versions': async (t) => {
      const list = await ok(t.client.request('GET', t.widgets))
      const watch = await t.client.watch(t.widgets, { query: { resourceVersion: version(list) } })
      await Promise.all(Array.from({ length: 20 }, async (_, index) => await create(t, `w${index}`)))
      const seen: number[] = []
      for (let count = 0; count < 20; count += 1) seen.push(Number(version((await watch.next())?.object as Json)))
      expect(seen).toEqual([...seen].sort((a, b) => a - b))
      watch.close()
    },
    'a marked delete is MODIFIED, the last finalizer DELETED': async (t) => {
      const a = await create(t, 'a', { metadata: { name: 'a', finalizers: ['contract.dev/hold'] } })
      const watch = await t.client.watch(t.widgets, { query: { resourceVersion: version(a) } })
      await ok(t.client.request('DELETE', `${t.widgets}/a`))
      await ok(t.client.request('PATCH', `${t.widgets}/a`, { ...merge, body: { metadata: { finalizers: null } } }))
      expect([brief(await watch.next()), brief(await watch.next())]).toEqual(['MODIFIED a', 'DELETED a'])
      watch.close()
    },
  }),
  ...area(
    'B3.3 WatchList',
    {
      'sendInitialEvents sends the current state and a final bookmark': async (t) => {
        await create(t, 'a')
        const query = { allowWatchBookmarks: true, sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' }
        const watch = await t.client.watch(t.widgets, { query })
        const seen = await watch.until((event) => event.type === 'BOOKMARK')
        expect(seen.map((event) => event.type)).toEqual(['ADDED', 'BOOKMARK'])
        expect(seen[1]?.object).toMatchObject({
          kind: 'Widget',
          metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } },
        })
        await create(t, 'b')
        expect(brief(await watch.next())).toBe('ADDED b')
        watch.close()
      },
      'sendInitialEvents of an empty collection sends the bookmark immediately': async (t) => {
        const query = { allowWatchBookmarks: true, sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' }
        const watch = await t.client.watch(t.widgets, { query })
        expect((await watch.next())?.type).toBe('BOOKMARK')
        watch.close()
      },
      'sendInitialEvents applies selectors': async (t) => {
        await create(t, 'a')
        await create(t, 'b', { metadata: { name: 'b', labels: { on: 'yes' } } })
        const query = {
          allowWatchBookmarks: true,
          sendInitialEvents: true,
          resourceVersionMatch: 'NotOlderThan',
          labelSelector: 'on=yes',
        }
        const watch = await t.client.watch(t.widgets, { query })
        const seen = await watch.until((event) => event.type === 'BOOKMARK')
        expect(seen.map(brief)).toEqual(['ADDED b', 'BOOKMARK undefined'])
        watch.close()
      },
    },
    { notOnReal: oldEtcd },
  ),
]
