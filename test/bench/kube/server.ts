/**
 * A server for the client benches, in a process of its own: HTTPS with client certificates, HTTP/2 and HTTP/1.1, one
 * HTTP chunk per event, back-pressure obeyed. It answers every client with the same bytes.
 *
 * Usage: server.ts FOLDER, with the certificates in it; prints `ready PORT`.
 */
import { readFileSync } from 'node:fs'
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { bookmark, proxy } from './objects.ts'

const folder = process.argv[2] ?? '.'
const read = (name: string) => readFileSync(join(folder, name))
const OBJECTS = 10_000
const EVENTS = 50_000

const line = (type: string, object: unknown) => Buffer.from(`${JSON.stringify({ type, object })}\n`)
const objects = Array.from({ length: OBJECTS }, (_, index) => proxy(index, 1000 + index))
const version = 1000 + OBJECTS
const initial = objects.map((object) => line('ADDED', object))
const end = line('BOOKMARK', bookmark(version, true))
const listed = (items: unknown[]) =>
  Buffer.from(
    JSON.stringify({
      apiVersion: 'projectcontour.io/v1',
      items,
      kind: 'HTTPProxyList',
      metadata: { resourceVersion: String(version) },
    }),
  )
const whole = listed(objects)
const none = listed([])
/** Every event is another version of one of 10 000 objects. */
const events = Array.from({ length: EVENTS }, (_, index) =>
  line(index < OBJECTS ? 'ADDED' : 'MODIFIED', proxy(index % OBJECTS, version + 1 + index)),
)
const written = Buffer.from(JSON.stringify({ ...proxy(1, 77), spec: undefined, status: { currentStatus: 'valid' } }))

async function send(response: Http2ServerResponse, chunks: readonly Buffer[]): Promise<void> {
  for (const chunk of chunks) {
    if (!response.write(chunk)) await new Promise((resolve) => response.once('drain', resolve))
  }
}

async function answer(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
  const url = new URL(request.url, 'https://server')
  const isWatch = url.searchParams.get('watch') === 'true'
  response.setHeader('content-type', 'application/json')
  if (request.method !== 'GET') {
    request.resume()
    await new Promise((resolve) => request.once('end', resolve))
    response.end(written)
  } else if (!isWatch) {
    response.end(url.pathname.includes('/events-only/') ? none : whole)
  } else if (url.pathname.includes('/events-only/')) {
    // A watch that begins empty and then carries the events.
    if (url.searchParams.has('sendInitialEvents')) response.write(end)
    await send(response, events)
  } else {
    await send(response, initial)
    response.write(end)
  }
}

const server = createSecureServer(
  {
    allowHTTP1: true,
    ca: read('ca.crt'),
    cert: read('server.crt'),
    key: read('server.key'),
    requestCert: true,
    rejectUnauthorized: true,
    settings: { maxConcurrentStreams: 250 },
  },
  (request, response) => {
    answer(request, response).catch(() => undefined)
  },
)
server.on('sessionError', () => undefined)
server.listen(0, '127.0.0.1', () => process.stdout.write(`ready ${(server.address() as AddressInfo).port}\n`))
process.once('disconnect', () => process.exit())
process.stdin.resume().once('end', () => process.exit())
