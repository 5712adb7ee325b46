import { exampleState } from '../../../testing/example.ts'
import { describe, expect, it } from 'vitest'
import { parseQuery } from './search-query.ts'

const found = (query: string): string[] => exampleState.hosts.filter(parseQuery(query).host).map(({ name }) => name)

describe('a search', () => {
  it.each([
    ['', ['api.demo.test', 'shop.demo.test', 'xn--bcher-kva.demo.test']],
    ['shop', ['shop.demo.test']],
    ['SHOP demo', ['shop.demo.test']],
    ['203.0.113.30', ['shop.demo.test']],
    ['us1', ['shop.demo.test']],
    ['cluster:eu1', ['api.demo.test', 'shop.demo.test']],
    ['cluster:eu', []],
    ['zone:demo.test state:broken', ['xn--bcher-kva.demo.test']],
    ['state:held', ['api.demo.test']],
    ['books/books', ['xn--bcher-kva.demo.test']],
    ['other:thing', []],
  ])('for "%s" finds %j', (query, hosts) => {
    expect(found(query)).toEqual(hosts)
  })

  it('finds needs, events and clusters too', () => {
    const search = parseQuery('ap1')
    expect(exampleState.needsYou.filter(search.need).map(({ id }) => id)).toEqual(['cluster/ap1'])
    expect(exampleState.lastHour.filter(search.event).map(({ id }) => id)).toEqual(['e3'])
    expect(exampleState.clusters.filter(search.cluster).map(({ name }) => name)).toEqual(['ap1'])
  })
})
