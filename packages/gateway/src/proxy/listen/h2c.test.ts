import { once } from 'node:events'
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ask, backend, forwardTo, irOf, listen, route, start } from '../../../testing/proxy-fixture.ts'

describe('HTTP/2 without TLS', () => {
  it('is served on the port of HTTP/1.1', async () => {
    const one = await backend((request, respond) =>
      respond(200, {}, `${request.method} ${request.url} ${request.text}`),
    )
    const { port } = await start(irOf([route(forwardTo(['one']))]), { one: [one] })
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    onTestFinished(() => session.destroy())
    const stream = session.request({ ':method': 'POST', ':path': '/a', ':authority': 'x.test' })
    stream.end('body')
    let text = ''
    for await (const chunk of stream.setEncoding('utf8')) text += String(chunk)
    expect(text).toBe('POST /a body')
  })

  it('answers 408 to a client that stops in the middle of a body', async () => {
    const one = await backend()
    const { port } = await start(irOf([route(forwardTo(['one'], { idleTimeoutMs: 20 }))]), { one: [one] })
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    onTestFinished(() => session.destroy())
    const stream = session.request({ ':method': 'POST', ':authority': 'x.test' }, { endStream: false })
    stream.on('error', () => undefined)
    stream.write('ab')
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
    expect(headers[':status']).toBe(408)
  })

  it('is not confused with a method of HTTP/1.1 that starts alike and arrives in pieces', async () => {
    const { port } = await start(irOf([route({ kind: 'direct', status: 200, body: 'ok' })]), {})
    const answer = await new Promise<string>((resolve) => {
      const socket = connect({ host: '127.0.0.1', port, noDelay: true }, () =>
        // The proxy runs in this event loop: it reads the first piece before the second one is sent.
        socket.write('P', () =>
          setImmediate(() =>
            setImmediate(() => socket.write('RI / HTTP/1.1\r\nhost: x.test\r\nconnection: close\r\n\r\n')),
          ),
        ),
      )
      let text = ''
      socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      socket.on('close', () => resolve(text))
      socket.on('error', () => undefined)
    })
    // There is no method PRI.
    expect(answer).toMatch(/^HTTP\/1.1 400 /)
    expect((await ask(port, '/', { method: 'PUT' })).status).toBe(200)
  })

  it('speaks HTTP/2 to backends that ask for it, trailers included', async () => {
    const server = createHttp2Server()
    server.on('stream', (stream, headers) => {
      stream.respond({ ':status': 200, path: headers[':path'] ?? '' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.end('two')
    })
    const at = await listen(server)
    const { port } = await start(irOf([route(forwardTo(['one']))], [{ name: 'one', protocol: 'h2c' }]), { one: [at] })
    expect(await ask(port, '/h2')).toMatchObject({ status: 200, body: 'two', headers: { path: '/h2' } })
  })
})
