/**
 * No secret in a log, an Event or a status: what a DNS service or a member cluster repeats of our requests, in whatever form and
 * at whatever place of its answer, is in no error of ours. Those errors are all that is written there.
 *
 * Each world is one service with one script of answers; worlds in which a whole manager writes its log, Events and statuses while a
 * member repeats its token are played in claims.test.ts. A violation shrinks to the shortest answer that shows it.
 */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { isThorough } from '@seamark/kit'
import { type ClusterConfig, configFromText, connect, Ingress } from '@seamark/kube'
import type { Exchange, Transport } from '@seamark/kube/testing/parts'
import { createProvider, ProviderConfig } from '@seamark/operator'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'

const WORLDS = Number(process.env['SEAMARK_WORLDS'] ?? (isThorough ? 2_000 : 500))
/** As long as what nobody guesses: a shorter part of a secret does not give it away. */
const WINDOW = 12

const secrets = fc
  .string({ unit: fc.constantFrom(...'abcXYZ019+/=-_.~"\\%é'.split('')), minLength: 16, maxLength: 64 })
  .filter((text) => text.trim() === text)
/** What a header can carry. */
const tokens = fc.string({ unit: fc.constantFrom(...'abcXYZ019+/=-_.~'.split('')), minLength: 16, maxLength: 64 })

const FORMS: Readonly<Record<string, (text: string) => string>> = {
  plain: (text) => text,
  json: (text) => JSON.stringify(text),
  jsonOfJson: (text) => JSON.stringify(JSON.stringify(text)),
  base64: (text) => Buffer.from(text).toString('base64'),
  base64url: (text) => Buffer.from(text).toString('base64url'),
  hex: (text) => Buffer.from(text).toString('hex'),
  percent: (text) => encodeURIComponent(text),
}

/** A part of an answer: text of the service, or what it repeats, perhaps cut. */
type Part = { readonly text: string } | { readonly form: string; readonly length: number }

const parts: fc.Arbitrary<readonly Part[]> = fc.array(
  fc.oneof(
    fc.record({
      text: fc.oneof(
        fc.string({ maxLength: 20 }),
        fc.integer({ min: 0, max: 320 }).map((n) => 'x'.repeat(n)),
      ),
    }),
    fc.record({ form: fc.constantFrom(...Object.keys(FORMS)), length: fc.constantFrom(1_000, 1_000, 40, 20) }),
  ),
  { minLength: 1, maxLength: 5 },
)

const answerOf = (all: readonly Part[], secret: string): string =>
  all.map((part) => ('text' in part ? part.text : (FORMS[part.form]?.(secret).slice(0, part.length) ?? ''))).join('')

/** Everything that a log line could have of an error. */
function everythingOf(error: unknown): string {
  return inspect(error, { depth: 10, showHidden: true, maxStringLength: Infinity, breakLength: Infinity })
}

function leaksOf(text: string, secret: string): string[] {
  const windows = Array.from({ length: secret.length - WINDOW + 1 }, (_, at) => secret.slice(at, at + WINDOW))
  const encoded = ['base64', 'base64url', 'hex', 'percent'].map(
    (form) => FORMS[form]?.(secret).slice(0, 2 * WINDOW) ?? '',
  )
  return [...windows, ...encoded].filter((each) => text.includes(each))
}

let answer: (path: string, headers: IncomingHttpHeaders) => { readonly status: number; readonly body: string }
const server = createServer((request, response) => {
  request.resume().on('end', () => {
    const { status, body } = answer(request.url ?? '', request.headers)
    response.writeHead(status, { 'content-type': 'application/json' }).end(body)
  })
})
let url = ''
beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const { signal } = new AbortController()
const zone = { id: 'a.test.', name: 'a.test.' }
const batch = [{ from: undefined, to: { name: 'x.a.test.', type: 'A', ttl: 60, values: ['192.0.2.1'] } }]

/** How the answer has the text: as the services do, and as no service should. */
const SHAPES: Readonly<Record<string, (text: string) => string>> = {
  error: (text) => JSON.stringify({ error: text }),
  message: (text) => JSON.stringify({ message: text }),
  bare: (text) => text,
  list: (text) => JSON.stringify([{ name: text, kind: text }]),
}

it(`a DNS service that repeats a credential, in ${WORLDS} worlds`, { timeout: 300_000 }, async () => {
  const world = fc.record({
    type: fc.constantFrom('powerdns', 'coredns'),
    secret: secrets,
    /** That etcd gives for the password, and is sent instead of it. */
    session: tokens,
    parts,
    repeats: fc.constantFrom('secret', 'session'),
    shape: fc.constantFrom(...Object.keys(SHAPES)),
    status: fc.constantFrom(200, 400, 401, 403, 404, 422, 500),
  })
  await fc.assert(
    fc.asyncProperty(world, async ({ type, secret, session, repeats, shape, status, ...rest }) => {
      const key = type === 'powerdns' ? Buffer.from(secret).toString('base64') : secret
      const repeated = type === 'coredns' && repeats === 'session' ? session : key
      answer = (path) =>
        path.endsWith('/authenticate') && repeats === 'session'
          ? { status: 200, body: JSON.stringify({ token: session }) }
          : { status, body: SHAPES[shape]?.(answerOf(rest.parts, repeated)) ?? '' }
      const common = { name: 'x', zones: ['a.test'], url, requestsPerSecond: 1_000 }
      const config = ProviderConfig.parse(
        type === 'powerdns'
          ? { ...common, type, apiKeyFrom: { env: 'KEY' } }
          : { ...common, type, username: 'u', passwordFrom: { env: 'KEY' } },
      )
      const provider = await createProvider(config, { env: { KEY: key } })
      const results = await Promise.allSettled([
        provider.zones(signal),
        provider.read(zone, 'all', signal),
        provider.apply(zone, batch, signal),
      ])
      await provider.close?.()
      for (const result of results)
        if (result.status === 'rejected') expect(leaksOf(everythingOf(result.reason), repeated)).toEqual([])
    }),
    { numRuns: WORLDS },
  )
})

/** A member that answers everything so. */
function echoTransport(status: number, bodyOf: (headers: Exchange['headers']) => string): Transport {
  const send = async ({ headers }: Exchange) => ({
    status,
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(bodyOf(headers)),
  })
  return {
    send,
    open: async () => Promise.reject(new Error('not asked')),
    close: async () => undefined,
    stats: { sessions: 1, streams: 0 },
  }
}

const configOf = (token: string): ClusterConfig =>
  configFromText(
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'm', cluster: { server: 'http://127.0.0.1:1' } }],
      users: [{ name: 'm', user: { token } }],
      contexts: [{ name: 'm', context: { cluster: 'm', user: 'm' } }],
      'current-context': 'm',
    }),
  )

it(`a member cluster that repeats its token, in ${WORLDS} worlds`, { timeout: 300_000 }, async () => {
  const world = fc.record({
    token: tokens,
    parts,
    shape: fc.constantFrom('message', 'bare', 'reason'),
    status: fc.constantFrom(200, 400, 401, 403, 404, 409, 422, 500),
  })
  await fc.assert(
    fc.asyncProperty(world, async ({ token, shape, status, parts: all }) => {
      const transport = echoTransport(status, ({ authorization = '' }) => {
        const text = answerOf(
          all.map((part) =>
            'form' in part && !['plain', 'json', 'jsonOfJson'].includes(part.form) ? { ...part, form: 'plain' } : part,
          ),
          String(authorization).replace('Bearer ', ''),
        )
        if (shape === 'bare') return text
        return JSON.stringify({
          kind: 'Status',
          apiVersion: 'v1',
          status: 'Failure',
          reason: shape === 'reason' ? text : 'Forbidden',
          message: text,
          code: status,
        })
      })
      const member = connect(configOf(token), { transport })
      const results = await Promise.allSettled([
        member.client.get(Ingress, 'a/b'),
        member.client.list(Ingress),
        member.client.create(Ingress, { metadata: { namespace: 'a', name: 'b' } }),
        member.client.delete(Ingress, 'a/b'),
      ])
      await member.close()
      for (const result of results) {
        // An object that was read is no message: what of it is written down is played in claims.test.ts.
        if (result.status === 'rejected') expect(leaksOf(everythingOf(result.reason), token)).toEqual([])
      }
    }),
    { numRuns: WORLDS },
  )
})
