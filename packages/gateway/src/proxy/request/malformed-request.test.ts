import { describe, expect, it } from 'vitest'
import { backend, forwardTo, irOf, raw, route, start } from '../../../testing/proxy-fixture.ts'

describe('the proxy with a malformed request', () => {
  it.each([
    [
      'a length and chunks',
      'POST / HTTP/1.1\r\nhost: x.test\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: x.test\r\n\r\n',
    ],
    ['two lengths', 'POST / HTTP/1.1\r\nhost: x.test\r\ncontent-length: 3\r\ncontent-length: 5\r\n\r\nabcde'],
    ['a space before the colon', 'POST / HTTP/1.1\r\nhost: x.test\r\ncontent-length : 3\r\n\r\nabc'],
    ['bare line feeds', 'GET / HTTP/1.1\nhost: x.test\nx: y\n\n'],
    ['two hosts', 'GET / HTTP/1.1\r\nhost: x.test\r\nhost: y.test\r\n\r\n'],
    ['no host', 'GET / HTTP/1.1\r\n\r\n'],
    ['a length that is no number', 'POST / HTTP/1.1\r\nhost: x.test\r\ncontent-length: +3\r\n\r\nabc'],
    [
      'a size of a chunk that is no number',
      'POST / HTTP/1.1\r\nhost: x.test\r\ntransfer-encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n',
    ],
    ['a bare carriage return', 'GET / HTTP/1.1\r\nhost: x.test\r\na: b\rc: d\r\n\r\n'],
    ['a null in a field', 'GET / HTTP/1.1\r\nhost: x.test\r\na: b\0c\r\n\r\n'],
  ])('refuses a request with %s, and forwards nothing of it', async (_name, octets) => {
    const one = await backend()
    const { port } = await start(irOf([route(forwardTo(['one']))]), { one: [one] })
    const answer = await raw(port, octets)
    expect(answer).toMatch(/^HTTP\/1\.1 400/)
    expect(one.seen.filter(({ url }) => url.includes('smuggled'))).toEqual([])
  })

  it('takes the host of an absolute target, not of the Host header', async () => {
    const one = await backend()
    const { port } = await start(irOf([route(forwardTo(['one']))]), { one: [one] })
    const answer = await raw(port, 'GET http://x.test/abs HTTP/1.1\r\nhost: y.test\r\nconnection: close\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 200/)
    expect(one.seen[0]).toMatchObject({ url: '/abs', headers: { host: 'x.test' } })
  })

  it('has one host: policies and conditions see no other one beside an absolute target', async () => {
    const one = await backend()
    const requestHeaders = { set: [{ name: 'x-host', value: '%REQ(Host)%' }], add: [], remove: [] }
    const { port } = await start(irOf([route(forwardTo(['one']), { requestHeaders })]), { one: [one] })
    await raw(port, 'GET http://x.test/abs HTTP/1.1\r\nhost: y.test\r\nconnection: close\r\n\r\n')
    expect(one.seen[0]).toMatchObject({ headers: { host: 'x.test', 'x-host': 'x.test' } })
  })

  it('refuses too many and too large header fields', async () => {
    const { port } = await start(irOf([route({ kind: 'direct', status: 200, body: '' })]), {})
    const many = Array.from({ length: 101 }, (_, index) => `x-${index}: 1\r\n`).join('')
    expect(await raw(port, `GET / HTTP/1.1\r\nhost: x.test\r\n${many}\r\n`)).toMatch(/^HTTP\/1\.1 431/)
    expect(await raw(port, `GET / HTTP/1.1\r\nhost: x.test\r\nx: ${'y'.repeat(70_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 431/,
    )
  })
})
