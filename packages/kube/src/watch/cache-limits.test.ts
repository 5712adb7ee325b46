import { afterEach, describe, expect, it } from 'vitest'
import { connect } from '../cache/cluster.ts'
import { staticCredentials } from '../config/credentials.ts'
import type { Informer } from '../cache/informer.ts'
import { ConfigMap } from '../object/kinds.ts'
import { startPeer, type PeerOptions } from '../testing/index.ts'

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

const limits = { maxObjects: 20, maxObjectBytes: 10_000, maxBytes: 50_000 }

const configMap = (name: string, bytes = 1) => ({
  metadata: { name, namespace: 'ns', uid: `uid-${name}`, resourceVersion: '1' },
  data: { text: 'x'.repeat(bytes) },
})
const END = { metadata: { resourceVersion: '9', annotations: { 'k8s.io/initial-events-end': 'true' } } }
const WITHOUT_STREAM = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 422, reason: 'Invalid' }

/** An informer of ConfigMaps against a server with scripted responses. */
async function informerOn(script: PeerOptions['script']): Promise<Informer<ConfigMap>> {
  const peer = await startPeer({ script })
  const credentials = staticCredentials({}, { ca: peer.caPem })
  const cluster = connect({ name: 'member', server: peer.url, namespace: 'default', credentials }, { random: () => 0 })
  const informer = cluster.informers.informer(ConfigMap, { limits })
  const stop = new AbortController()
  const running = cluster.informers.start(stop.signal)
  cleanups.push(peer.close, async () => {
    stop.abort()
    await running
    await cluster.close()
  })
  return informer
}

async function expectCutOff(informer: Informer<ConfigMap>, message: RegExp): Promise<void> {
  await expect.poll(() => informer.failure?.reason, { timeout: 10_000 }).toBe('over-limit')
  expect(informer.failure?.message).toMatch(message)
  expect(informer.state).toBe('backoff')
}

describe('limits of a cache', () => {
  it('do not affect a set within them', async () => {
    const informer = await informerOn((exchange) => {
      exchange.start()
      for (let index = 0; index < 20; index++) exchange.frame('ADDED', configMap(`c${index}`))
      exchange.frame('BOOKMARK', END)
      exchange.frame('DELETED', configMap('c0'))
      exchange.frame('ADDED', configMap('c20'))
    })
    await expect.poll(() => informer.size).toBe(20)
    await expect.poll(() => informer.hasSynced).toBe(true)
    expect([informer.state, informer.failure]).toEqual(['live', undefined])
  })

  it('abort an endless initial stream', async () => {
    const informer = await informerOn((exchange) => {
      exchange.start()
      for (let index = 0; index < 21; index++) exchange.frame('ADDED', configMap(`c${index}`))
    })
    await expectCutOff(informer, /more than 20 objects/)
    expect([informer.size, informer.hasSynced]).toEqual([0, false])
  })

  it('abort an endless sequence of pages, with and without objects', async () => {
    for (const itemsOf of [(page: number) => [configMap(`a${page}`), configMap(`b${page}`)], () => []]) {
      let page = 0
      const informer = await informerOn((exchange) => {
        if (exchange.url.searchParams.get('watch') === 'true') return exchange.reply(422, WITHOUT_STREAM)
        const metadata = { resourceVersion: '5', continue: `page-${page++}` }
        return exchange.reply(200, { metadata, items: itemsOf(page) })
      })
      await expectCutOff(informer, itemsOf(0).length === 0 ? /more than 20 pages/ : /more than 20 objects/)
    }
  })

  it('apply to objects added after the sync: the cache is no longer reported as complete', async () => {
    const informer = await informerOn((exchange) => {
      if (exchange.url.searchParams.get('sendInitialEvents') !== 'true') return exchange.reply(503, {})
      exchange.start()
      exchange.frame('ADDED', configMap('a'))
      exchange.frame('BOOKMARK', END)
      for (let index = 0; index < 30; index++) exchange.frame('ADDED', configMap(`c${index}`))
      return undefined
    })
    await expectCutOff(informer, /more than 20 objects/)
    expect(informer.size).toBeLessThanOrEqual(20)
  })

  it('apply to objects whose first event is MODIFIED, in the initial stream and after it', async () => {
    for (const isSynced of [false, true]) {
      const informer = await informerOn((exchange) => {
        if (exchange.url.searchParams.get('sendInitialEvents') !== 'true') return exchange.reply(503, {})
        exchange.start()
        if (isSynced) exchange.frame('BOOKMARK', END)
        for (let index = 0; index < 30; index++) exchange.frame('MODIFIED', configMap(`c${index}`))
        return undefined
      })
      await expectCutOff(informer, /more than 20 objects/)
      expect(informer.size).toBeLessThanOrEqual(20)
    }
  })

  it('count the new size of a changed object, and no longer that of a deleted one', async () => {
    const grown = await informerOn((exchange) => {
      if (exchange.url.searchParams.get('sendInitialEvents') !== 'true') return exchange.reply(503, {})
      exchange.start()
      for (let index = 0; index < 10; index++) exchange.frame('ADDED', configMap(`c${index}`))
      exchange.frame('BOOKMARK', END)
      for (let index = 0; index < 10; index++) exchange.frame('MODIFIED', configMap(`c${index}`, 9_000))
      return undefined
    })
    await expectCutOff(grown, /more than 50000 bytes of objects/)
    const replaced = await informerOn((exchange) => {
      exchange.start()
      exchange.frame('BOOKMARK', END)
      for (let index = 0; index < 30; index++) {
        exchange.frame('ADDED', configMap(`c${index}`, 9_000))
        exchange.frame('MODIFIED', configMap(`c${index}`, 8_000))
        exchange.frame('DELETED', configMap(`c${index}`, 8_000))
      }
      exchange.frame('ADDED', configMap('last'))
    })
    await expect.poll(() => replaced.size).toBe(1)
    expect([replaced.state, replaced.failure]).toEqual(['live', undefined])
  })

  it('reject an object above maxObjectBytes, in a watch and in a list', async () => {
    const watched = await informerOn((exchange) => {
      exchange.start()
      exchange.frame('ADDED', configMap('big', 11_000))
    })
    await expectCutOff(watched, /an object of \d+ bytes; the limit is 10000/)
    const listed = await informerOn((exchange) => {
      if (exchange.url.searchParams.get('watch') === 'true') return exchange.reply(422, WITHOUT_STREAM)
      return exchange.reply(200, { metadata: { resourceVersion: '5' }, items: [configMap('big', 11_000)] })
    })
    await expectCutOff(listed, /an object of \d+ bytes/)
  })

  it('reject objects above maxBytes in total, and a page above it', async () => {
    const watched = await informerOn((exchange) => {
      exchange.start()
      for (let index = 0; index < 10; index++) exchange.frame('ADDED', configMap(`c${index}`, 9_000))
    })
    await expectCutOff(watched, /more than 50000 bytes of objects/)
    const listed = await informerOn((exchange) => {
      if (exchange.url.searchParams.get('watch') === 'true') return exchange.reply(422, WITHOUT_STREAM)
      const items = Array.from({ length: 10 }, (_, index) => configMap(`c${index}`, 9_000))
      return exchange.reply(200, { metadata: { resourceVersion: '5' }, items })
    })
    await expectCutOff(listed, /longer than 50000 bytes/)
  })
})
