/** Incomplete requests, bodies that are rejected, and more bodies than a connection may have. */
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { connect as connectTcp } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterEach, describe, expect, it } from 'vitest'
import { type ApiServer, type ApiServerOptions, createApiServer, type ServerListenOptions } from '../index.ts'
import { MAX_BODY_BYTES, MAX_CONNECTION_BODY_BYTES } from './request-body.ts'

const maps = '/api/v1/namespaces/default/configmaps'

const cleanups: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

function start(options: ApiServerOptions = {}): ApiServer {
  const server = createApiServer(options)
  cleanups.push(async () => await server.close())
  return server
}

async function openSession(options: ApiServerOptions, listen: ServerListenOptions = {}): Promise<ClientHttp2Session> {
  const { url, caPem } = await start(options).listen({ tls: 'self-signed', ...listen })
  return openTo(url, caPem)
}

function openTo(url: string, caPem: string | undefined): ClientHttp2Session {
  const session = connect(url, { ca: caPem ?? '' })
  session.on('error', () => undefined)
  cleanups.push(() => session.destroy())
  return session
}

/** A POST whose body is not yet written. */
function post(session: ClientHttp2Session, headers: Record<string, string> = {}): ClientHttp2Stream {
  const stream = session.request(
    { ':method': 'POST', ':path': maps, 'content-type': 'application/json', ...headers },
    { endStream: false },
  )
  stream.on('error', () => undefined)
  return stream
}

async function statusOf(stream: ClientHttp2Stream): Promise<number> {
  const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
  return Number(headers[':status'])
}

async function openTls(listen: ServerListenOptions): Promise<TLSSocket> {
  const { host, port, caPem } = await start().listen({ tls: 'self-signed', ...listen })
  const socket = connectTls({ host, port, ca: caPem ?? '', ALPNProtocols: ['http/1.1'] })
  cleanups.push(() => socket.destroy())
  await once(socket, 'secureConnect')
  return socket
}

async function readAll(socket: TLSSocket): Promise<string> {
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  return text
}

describe('a request', () => {
  it('is answered while the initial events of a large watch wait on the same connection', async () => {
    const session = await openSession({})
    const data = { text: 'x'.repeat(512 * 1024) }
    for (let index = 0; index < 30; index++) {
      const created = post(session)
      created.end(JSON.stringify({ metadata: { name: `large-${index}` }, data })).resume()
      expect(await statusOf(created)).toBe(201)
    }
    const watch = session.request({
      ':path': `${maps}?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan`,
    })
    watch.on('error', () => undefined)
    expect(await statusOf(watch)).toBe(200)
    // Nothing of the watch is read.
    expect(await statusOf(session.request({ ':path': `${maps}/large-0` }).resume())).toBe(200)
  })

  it.each<[string, ApiServerOptions, Record<string, string>, number]>([
    ['without credentials', { anonymous: 'refused' }, {}, 401],
    ['with a wrong token', {}, { authorization: 'Bearer wrong' }, 401],
    ['that is not authorized', { anonymous: 'anonymous', authorization: 'RBAC' }, {}, 403],
  ])('%s gets a response before its body is read, over HTTP/2', async (_, options, headers, status) => {
    const session = await openSession(options)
    expect(await statusOf(post(session, headers))).toBe(status)
  })

  it('without credentials gets a response before its body is read, over HTTP/1.1', async () => {
    const { host, port } = await start({ anonymous: 'refused' }).listen()
    const request = httpRequest({ host, port, path: maps, method: 'POST', headers: { 'content-length': '1000' } })
    request.on('error', () => undefined)
    cleanups.push(() => request.destroy())
    request.flushHeaders()
    const [response] = (await once(request, 'response')) as [{ statusCode: number }]
    expect(response.statusCode).toBe(401)
  })

  it('that declares too large a body gets a response before the body is sent', async () => {
    const session = await openSession({})
    expect(await statusOf(post(session, { 'content-length': String(MAX_BODY_BYTES + 1) }))).toBe(413)
  })

  it('with an incomplete body times out, over HTTP/2', async () => {
    const session = await openSession({}, { bodyTimeoutMs: 20 })
    const stream = post(session)
    stream.write('{')
    expect(await statusOf(stream)).toBe(408)
  })

  it('with an incomplete body times out, over HTTPS with HTTP/1.1', async () => {
    const socket = await openTls({ bodyTimeoutMs: 20, headTimeoutMs: 20 })
    socket.write(`POST ${maps} HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{`)
    expect(await readAll(socket)).toMatch(/^HTTP\/1.1 408 /)
  })

  it('with an incomplete head times out, over HTTPS with HTTP/1.1', async () => {
    const socket = await openTls({ bodyTimeoutMs: 20, headTimeoutMs: 20 })
    socket.write(`GET ${maps} HTTP/1.1\r\nhost: x\r\nx-more: `)
    expect(await readAll(socket)).toMatch(/^HTTP\/1.1 408 /)
  })

  it('that never arrives closes an HTTP/2 connection, and an idle watch does not', async () => {
    const { url, caPem } = await start().listen({ tls: 'self-signed', idleTimeoutMs: 50 })
    const busy = openTo(url, caPem)
    const watch = busy.request({ ':path': `${maps}?watch=true` })
    watch.on('error', () => undefined)
    expect(await statusOf(watch)).toBe(200)
    // Opened after the last byte of the watch: when this one is closed, the other has been idle for longer.
    await once(openTo(url, caPem), 'close')
    expect(watch.closed).toBe(false)
  })

  it('is rejected while its connection has too many bytes of bodies in flight, and accepted afterwards', async () => {
    const session = await openSession({})
    const chunk = Buffer.alloc(MAX_BODY_BYTES - 1, ' ')
    const open: ClientHttp2Stream[] = []
    const refused = new Promise<ClientHttp2Stream>((resolve) => {
      for (let bytes = 0; bytes <= MAX_CONNECTION_BODY_BYTES; bytes += chunk.length) {
        const stream = post(session)
        open.push(stream)
        stream.once('response', ({ ':status': status }) => (status === 429 ? resolve(stream) : undefined))
        stream.write(chunk)
      }
    })
    expect(open).toContain(await refused)
    for (const stream of open) stream.close()
    await Promise.all(open.map(async (stream) => (stream.closed ? undefined : await once(stream, 'close'))))
    const next = post(session)
    next.end(JSON.stringify({ metadata: { name: 'a' } }))
    expect(await statusOf(next)).toBe(201)
  })
})

describe('a connection that sends nothing', () => {
  it('is closed after the timeout of the head', async () => {
    const { host, port } = await start().listen({ headTimeoutMs: 20, bodyTimeoutMs: 20 })
    const socket = connectTcp({ host, port })
    cleanups.push(() => socket.destroy())
    socket.on('error', () => undefined)
    socket.resume()
    await once(socket, 'close')
    expect(socket.destroyed).toBe(true)
  })
})
