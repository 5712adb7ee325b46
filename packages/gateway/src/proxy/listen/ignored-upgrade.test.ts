import { expect, it } from 'vitest'
import { backend, forwardTo, irOf, openSocket, raw, route, start } from '../../../testing/proxy-fixture.ts'

const UPGRADE = 'connection: Upgrade, HTTP2-Settings\r\nhttp2-settings: AAMAAABk\r\n'

it.each(['h2c', 'TLS/1.2', 'h2c, websocket'])(
  'a request that offers %s is answered as one without the offer, with its body and what follows',
  async (protocol) => {
    const one = await backend()
    const { port } = await start(irOf([route(forwardTo(['one'], { hasWebsocket: true }))]), { one: [one] })
    const first = `POST /a HTTP/1.1\r\nhost: x.test\r\n${UPGRADE}upgrade: ${protocol}\r\ncontent-length: 3\r\n\r\nabc`
    const second = `GET /b HTTP/1.1\r\nhost: x.test\r\nupgrade: ${protocol}\r\n${UPGRADE}connection: close\r\n\r\n`
    const answer = await raw(port, first.replace('Upgrade,', 'close, Upgrade,'))
    expect(answer).toMatch(/^HTTP\/1.1 200 /)
    expect(one.seen).toMatchObject([{ url: '/a', body: 'abc' }])
    expect(one.seen[0]?.headers).not.toHaveProperty('upgrade')
    expect(one.seen[0]?.headers).not.toHaveProperty('http2-settings')
    expect(await raw(port, second)).toMatch(/^HTTP\/1.1 200 /)
    // The connection goes on.
    const { socket, text } = openSocket(port)
    socket.write(`${first}GET /c HTTP/1.1\r\nhost: x.test\r\n\r\n`)
    await expect.poll(() => text().split('HTTP/1.1 200 ').length).toBe(3)
    expect(one.seen.map(({ url }) => url).slice(-1)).toEqual(['/c'])
  },
)

it('an offer behind a request that is not answered yet gets 403, in its turn or on a closed connection', async () => {
  const one = await backend((_request, respond) => setTimeout(() => respond(200), 50))
  const { port } = await start(irOf([route(forwardTo(['one']))]), { one: [one] })
  const get = 'GET / HTTP/1.1\r\nhost: x.test\r\n'
  const answer = await raw(port, `${get}\r\n${get}upgrade: h2c\r\n${UPGRADE}\r\n`)
  expect(answer).not.toMatch(/ 200 [^]* 403 [^]* 200 /)
  expect(answer.length).toBeGreaterThan(0)
})
