/**
 * No input ends the process, and a client gets the answers to its own requests: random requests of others in HTTP/1 syntax, or nearly, to
 * the built-in proxy in a process of its own. What does shrinks to the fewest fields of one request; proxy-fuzz.test.ts draws policies and
 * answers too, over HTTP/2 as well, and does not shrink.
 */
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { isThorough } from '@seamark/kit'
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { type LimitedProcess, startLimited } from './limited-process.ts'

/** Each has up to ten requests at once. */
const STEPS = Number(process.env['SEAMARK_WORLDS'] ?? (isThorough ? 400 : 60))
const HEAP_MIB = 512
/** For the answer to a hostile request; what has none by then is left alone. */
const PATIENCE_MS = 200
const VICTIM_PATIENCE_MS = 10_000

const oneOf = (...values: string[]): fc.Arbitrary<string> => fc.constantFrom(...values)
/** Mostly what is valid: with one fault in each part no request would get past the first check. */
const mostly = (valid: fc.Arbitrary<string>, other: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.oneof({ weight: 5, arbitrary: valid }, { weight: 1, arbitrary: other })
const text = fc.oneof(fc.string({ maxLength: 12 }), fc.string({ unit: 'binary', maxLength: 12 }))

const names = fc.oneof(
  oneOf(
    'connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings', 'content-length', 'expect',
    'host', 'x-forwarded-for', 'x-forwarded-client-cert', '__proto__', 'constructor', ' host', 'content-length ',
  ), // prettier-ignore
  text,
)
const values = fc.oneof(
  oneOf(
    '', 'close', 'chunked', 'gzip, chunked', 'identity', 'trailers', 'h2c', 'websocket', '0', '3', '-1', '+3', '0x3', '3, 3',
    '99999999999999999999', '100-continue', 'content-length', 'host', 'victim.test', 'AAMAAABkAAQAAP__', '\u00E9',
  ), // prettier-ignore
  text,
)

const requests = fc.record({
  method: mostly(
    oneOf('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE'),
    fc.oneof(oneOf('CONNECT', 'PRI', 'get'), text),
  ),
  target: mostly(
    oneOf('/', '/x?y'),
    fc.oneof(oneOf('/a#b', '*', '//', '/%zz', 'http://victim.test/stolen', 'victim.test:80', '/..;/'), text),
  ),
  version: mostly(oneOf('1.1'), oneOf('1.0', '2.0', '0.9', '9', '')),
  headers: fc.array(fc.tuple(names, values), { maxLength: 3 }),
  body: fc.oneof(
    oneOf(
      '', 'abc', '0\r\n\r\n', '3\r\nabc\r\n0\r\ntrailer: x\r\n\r\n', 'ffffffffffffffff\r\n', '3;x="\r\nabc\r\n0\r\n\r\n',
      'GET /smuggled HTTP/1.1\r\nhost: victim.test\r\n\r\n', '0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: tenant.test\r\n\r\n',
    ), // prettier-ignore
    text,
  ),
  lineEnd: mostly(oneOf('\r\n'), oneOf('\n', '\r')),
})
type HostileRequest = typeof requests extends fc.Arbitrary<infer R> ? R : never

function octetsOf({ method, target, version, headers, body, lineEnd }: HostileRequest): Buffer {
  const lines = [`${method} ${target} HTTP/${version}`, 'host: tenant.test', ...headers.map((pair) => pair.join(': '))]
  return Buffer.from(`${lines.join(lineEnd)}${lineEnd}${lineEnd}${body}`, 'latin1')
}

async function send(port: number, octets: Buffer): Promise<void> {
  await new Promise<void>((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(octets))
    const timer = setTimeout(() => socket.destroy(), PATIENCE_MS)
    // Half of an answer is given up on, too.
    socket.on('data', () => socket.end())
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

interface Running {
  readonly proxy: LimitedProcess
  readonly port: number
  /** The victim's, kept open. */
  readonly agent: Agent
}
let running: Running | undefined

async function start(): Promise<Running> {
  const proxy = startLimited('hostile-proxy.ts', [], HEAP_MIB)
  const [, port] = await proxy.line(/^ready (\d+)$/)
  return { proxy, port: Number(port), agent: new Agent({ keepAlive: true, maxSockets: 1 }) }
}

async function stop(): Promise<void> {
  running?.agent.destroy()
  await running?.proxy.stop()
  running = undefined
}
afterAll(stop)

/** What the victim's client gets: `200 victim`. */
async function askVictim({ port, agent }: Running): Promise<string> {
  return await new Promise((resolve) => {
    const options = { port, agent, host: '127.0.0.1', path: '/victim', headers: { host: 'victim.test' } }
    const call = request({ ...options, timeout: VICTIM_PATIENCE_MS }, (response) => {
      let body = ''
      response.on('data', (chunk) => (body += String(chunk)))
      response.on('end', () => resolve(`${response.statusCode} ${body}`))
      response.on('error', (error) => resolve(String(error)))
    })
    call.on('timeout', () => call.destroy(new Error('no answer')))
    call.on('error', (error) => resolve(String(error)))
    call.end()
  })
}

it(`${STEPS} steps with random requests`, { timeout: 400_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(requests, { minLength: 1, maxLength: 10 }), async (all) => {
      const the = (running ??= await start())
      await Promise.all(all.map(async (each) => send(the.port, octetsOf(each))))
      const result = [await askVictim(the), the.proxy.isRunning()]
      if (result[0] !== '200 victim') await stop()
      expect(result).toEqual(['200 victim', true])
    }),
    { numRuns: STEPS },
  )
})
