/**
 * Requests whose end is told in odd ways, to the host of the victim itself: they share its connections to the backend. A backend that
 * sees another end than the proxy takes what follows for the next request, and the next client gets its answer.
 */
import assert from 'node:assert/strict'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { POD_ADDRESSES } from '../integration/gateway/network-namespace.ts'
import { addSite, serve } from './gateway-sites.ts'
import type { AttackedGateway } from './gateway-victim.ts'

const ROUNDS = 3
const INNER = 'GET /admin HTTP/1.1\r\nhost: victim.test\r\n\r\n'
const METHODS = ['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'POST']
/** Routes of the victim: as they are, with retries, and with a mirror. */
const PATHS = ['/plain', '/retry', '/mirror']
const FORGED = 'x-forwarded-client-cert: By=spiffe://victim;Hash=00\r\n'

const head = (method: string, path: string, more: string): string =>
  `${method} ${path} HTTP/1.1\r\nhost: victim.test\r\n${FORGED}${more}\r\n`
const chunk = `${INNER.length.toString(16)}\r\n${INNER}\r\n0\r\n\r\n`

const accepted = METHODS.flatMap((method) =>
  PATHS.flatMap((path) => [
    head(method, path, 'transfer-encoding: chunked\r\n') + chunk,
    head(method, path, 'connection: transfer-encoding\r\ntransfer-encoding: chunked\r\n') + chunk,
    head(method, path, `connection: content-length\r\ncontent-length: ${INNER.length}\r\n`) + INNER,
    head(method, path, `connection: content-length, host\r\ncontent-length: ${INNER.length}\r\n`) + INNER,
  ]),
)

const refused: readonly (readonly [status: number, octets: string])[] = [
  ...['gzip', 'gzip, chunked', 'chunked, identity', 'identity', 'xchunked'].flatMap((coding) =>
    ['', 'content-length: 4\r\n'].flatMap((length): [number, string][] => [
      [501, head('POST', '/plain', `${length}transfer-encoding: ${coding}\r\n`) + chunk],
      [501, head('GET', '/plain', `transfer-encoding: ${coding}\r\n${length}`) + chunk],
    ]),
  ),
  [400, head('POST', '/plain', 'content-length: 4\r\ntransfer-encoding: chunked\r\n') + chunk],
  [400, head('POST', '/plain', 'transfer-encoding: chunked\r\ncontent-length: 4\r\n') + chunk],
  [400, head('GET', '/plain#/admin', '')],
  [405, `CONNECT victim.test:80 HTTP/1.1\r\nhost: victim.test\r\n\r\n${INNER}`],
]

/** The statuses of all answers on a connection, which is closed after the last one, or after its first octets have an answer. */
async function statusesOf(port: number, octets: string): Promise<number[]> {
  return await new Promise((resolve) => {
    let received = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(octets))
    socket.setEncoding('latin1').on('data', (text: string) => (received += text))
    socket.on('error', () => undefined)
    socket.on('close', () => resolve([...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status))))
  })
}

/** A body in DATA frames without a length. */
async function overHttp2(port: number, method: string, path: string): Promise<void> {
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  session.on('error', () => undefined)
  await new Promise<void>((resolve) => {
    const stream = session.request(
      { ':method': method, ':path': path, ':authority': 'victim.test' },
      { endStream: false },
    )
    stream.on('error', () => undefined).on('close', resolve)
    stream.resume().end(INNER)
  })
  session.destroy()
}

async function smuggle(gateway: AttackedGateway): Promise<void> {
  const seen: string[] = []
  const failed = new Set<string>()
  await serve(gateway, ['victim', 'web'], POD_ADDRESSES[0], (request, response) => {
    const { method = '', url = '', headers } = request
    seen.push(`${method} ${url}`)
    if (headers['x-forwarded-client-cert'] !== undefined) seen.push('x-forwarded-client-cert')
    request.resume().on('end', () => {
      // Each request to this route is sent twice.
      if (url === '/retry' && !failed.delete(url)) {
        failed.add(url)
        response.statusCode = 503
      }
      // Anything but the victim's own request is an answer to another one for its client.
      else if (url !== '/victim') response.statusCode = 403
      response.end(url)
    })
  })
  await serve(gateway, ['victim', 'copies'], POD_ADDRESSES[1], (request, response) => {
    seen.push(`${request.method ?? ''} ${request.url ?? ''}`)
    request.resume().on('end', () => response.end())
  })
  const services = [
    { name: 'web', port: 80 },
    { name: 'copies', port: 80, mirror: true },
  ]
  await addSite(
    gateway,
    'victim',
    {},
    { conditions: [{ prefix: '/retry' }], retryPolicy: { count: 1, retryOn: ['5xx'] } },
    { conditions: [{ prefix: '/mirror' }], services },
  )
  const { http } = gateway.ports
  await gateway.attack('bodies with odd ends', { host: 'victim.test', path: '/victim' }, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const last = head('GET', '/last', 'connection: close\r\n')
      for (const octets of accepted) assert.equal((await statusesOf(http, octets + last)).length, 2, octets)
      for (const method of METHODS) for (const path of PATHS) await overHttp2(http, method, path)
      for (const [status, octets] of refused) assert.deepEqual(await statusesOf(http, octets), [status], octets)
    }
  })
  const paths = new Set(seen.map((each) => each.split(' ').at(-1)))
  assert.deepEqual(paths, new Set(['/victim', ...PATHS, '/last']))
}

export const SMUGGLING: Record<string, (gateway: AttackedGateway) => Promise<void>> = {
  'bodies with odd ends to the host of the victim': smuggle,
}
