import { afterEach, describe, expect, it } from 'vitest'
import { OwnWrites } from './own-writes.ts'
import { createClient, type ClientOptions, type RequestObserver } from './client.ts'
import { refreshingCredentials, staticCredentials, type Credentials } from '../config/credentials.ts'
import {
  AlreadyExists,
  ApiError,
  BadRequest,
  Conflict,
  DecodeError,
  Forbidden,
  Gone,
  InternalServerError,
  Invalid,
  MethodNotAllowed,
  NotFound,
  ServerTimeout,
  ServiceUnavailable,
  TooManyRequests,
  Unauthorized,
} from '../errors.ts'
import { ConfigMap, Namespace } from '../object/kinds.ts'
import { createRest } from './rest.ts'
import { fakeClock, startPeer, type PeerExchange, type PeerOptions } from '../testing/index.ts'
import type { Clock } from '../clock.ts'

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

interface Given extends ClientOptions {
  credentials?: (caPem: string) => Credentials
  clock?: Clock
  observer?: RequestObserver
  peer?: Partial<PeerOptions>
}

async function clientOn(script: PeerOptions['script'], given: Given = {}) {
  const { credentials, clock, observer, peer: peerOptions, ...options } = given
  const peer = await startPeer({ script, ...peerOptions })
  const config = {
    name: 'test',
    server: peer.url,
    namespace: 'default',
    credentials: credentials?.(peer.caPem) ?? staticCredentials({}, { ca: peer.caPem }),
  }
  const rest = createRest(config, {
    random: () => 0,
    ...(clock !== undefined && { clock }),
    ...(observer !== undefined && { observer }),
  })
  cleanups.push(peer.close, rest.close)
  return { peer, rest, client: createClient(rest, { fieldManager: 'me', ...options }) }
}

const refusal = (code: number, reason: string, more: object = {}) => ({
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  code,
  reason,
  message: `because ${reason}`,
  ...more,
})

const map = (name = 'a'): ConfigMap => ({ metadata: { name, namespace: 'ns', resourceVersion: '7' }, data: { x: '1' } })

describe('the verbs', () => {
  it('send the requests that the API expects', async () => {
    const sent: { line: string; type: unknown; body: unknown }[] = []
    const { client } = await clientOn(async (exchange) => {
      const body = await exchange.body()
      sent.push({
        line: `${exchange.method} ${exchange.path}`,
        type: exchange.headers['content-type'],
        body: body === '' ? undefined : JSON.parse(body),
      })
      exchange.reply(200, { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a' }, items: [] })
    })
    const whole = { apiVersion: 'v1', kind: 'ConfigMap', ...map() }
    await client.get(ConfigMap, 'ns/a')
    await client.list(ConfigMap, { namespace: 'ns', labelSelector: 'a in (b)', limit: 5 })
    await client.create(ConfigMap, map())
    await client.update(ConfigMap, map())
    await client.updateStatus(ConfigMap, map())
    await client.apply(ConfigMap, map())
    await client.apply(ConfigMap, map(), { force: false, fieldManager: 'other', dryRun: true })
    await client.patch(ConfigMap, 'ns/a', 'merge', { data: null })
    await client.patch(ConfigMap, 'ns/a', 'json', [{ op: 'test', path: '/a', value: 1 }], { subresource: 'status' })
    await client.patch(ConfigMap, 'ns/a', 'strategic', {})
    await client.delete(ConfigMap, 'ns/a', {
      precondition: { uid: 'u', resourceVersion: '7' },
      propagationPolicy: 'Foreground',
      gracePeriodSeconds: 0,
    })
    await client.deleteCollection(Namespace, { labelSelector: 'x=y' })
    const json = 'application/json'
    expect(sent).toEqual([
      { line: 'GET /api/v1/namespaces/ns/configmaps/a', type: undefined, body: undefined },
      {
        line: 'GET /api/v1/namespaces/ns/configmaps?labelSelector=a%20in%20(b)&limit=5',
        type: undefined,
        body: undefined,
      },
      { line: 'POST /api/v1/namespaces/ns/configmaps?fieldManager=me', type: json, body: whole },
      { line: 'PUT /api/v1/namespaces/ns/configmaps/a?fieldManager=me', type: json, body: whole },
      { line: 'PUT /api/v1/namespaces/ns/configmaps/a/status?fieldManager=me', type: json, body: whole },
      {
        line: 'PATCH /api/v1/namespaces/ns/configmaps/a?fieldManager=me&force=true',
        type: 'application/apply-patch+yaml',
        body: whole,
      },
      {
        line: 'PATCH /api/v1/namespaces/ns/configmaps/a?fieldManager=other&dryRun=All',
        type: 'application/apply-patch+yaml',
        body: whole,
      },
      {
        line: 'PATCH /api/v1/namespaces/ns/configmaps/a?fieldManager=me',
        type: 'application/merge-patch+json',
        body: { data: null },
      },
      {
        line: 'PATCH /api/v1/namespaces/ns/configmaps/a/status?fieldManager=me',
        type: 'application/json-patch+json',
        body: [{ op: 'test', path: '/a', value: 1 }],
      },
      {
        line: 'PATCH /api/v1/namespaces/ns/configmaps/a?fieldManager=me',
        type: 'application/strategic-merge-patch+json',
        body: {},
      },
      {
        line: 'DELETE /api/v1/namespaces/ns/configmaps/a',
        type: json,
        body: {
          apiVersion: 'v1',
          kind: 'DeleteOptions',
          preconditions: { uid: 'u', resourceVersion: '7' },
          propagationPolicy: 'Foreground',
          gracePeriodSeconds: 0,
        },
      },
      {
        line: 'DELETE /api/v1/namespaces?labelSelector=x%3Dy',
        type: json,
        body: { apiVersion: 'v1', kind: 'DeleteOptions' },
      },
    ])
  })

  it('offer every write and the result of every deletion to the cache', async () => {
    const offered: string[] = []
    const answers = new Map<string, unknown>([
      ['status', { kind: 'Status', apiVersion: 'v1', status: 'Success', details: { uid: 'u1' } }],
      ['waits', { kind: 'ConfigMap', metadata: { name: 'waits', uid: 'u2', deletionTimestamp: 'now' } }],
      ['gone', { kind: 'ConfigMap', metadata: { name: 'gone', uid: 'u3' } }],
      ['scale', { kind: 'Scale', metadata: { name: 'scale' } }],
    ])
    const { client } = await clientOn(
      (exchange) => exchange.reply(200, answers.get(exchange.url.pathname.split('/')[6] ?? '')),
      {
        cache: {
          offer: (_kind, written) => offered.push(`written ${written.metadata.name}`),
          ownWrites: () => new OwnWrites(),
          offerDeleted: (_kind, key, uid) => offered.push(`deleted ${key} ${uid}`),
        },
      },
    )
    for (const name of ['status', 'waits', 'gone']) await client.delete(ConfigMap, `ns/${name}`)
    await client.update(ConfigMap, map('scale'), { subresource: 'scale' })
    await client.apply(ConfigMap, map('waits'))
    expect(offered).toEqual(['deleted ns/status u1', 'written waits', 'deleted ns/gone u3', 'written waits'])
  })

  it('return undefined from find for an absent object', async () => {
    const { client } = await clientOn((exchange) => exchange.reply(404, refusal(404, 'NotFound')))
    expect(await client.find(ConfigMap, 'ns/a')).toBeUndefined()
    await expect(client.get(ConfigMap, 'ns/a')).rejects.toBeInstanceOf(NotFound)
  })

  it('watch as a generator that ends with the stream and throws the error of the stream', async () => {
    const { client } = await clientOn((exchange) => {
      exchange.frame('ADDED', { metadata: { name: 'a', resourceVersion: '1', managedFields: [{ manager: 'x' }] } })
      exchange.frame('BOOKMARK', { metadata: { resourceVersion: '5' } })
      if (exchange.url.searchParams.get('resourceVersion') === '9') exchange.frame('ERROR', refusal(410, 'Expired'))
      exchange.end()
    })
    const seen: string[] = []
    for await (const { type, object } of client.watch(ConfigMap))
      seen.push(`${type} ${object.metadata.resourceVersion} ${object.metadata.managedFields?.length ?? 0}`)
    expect(seen).toEqual(['ADDED 1 1', 'BOOKMARK 5 0'])
    const consume = async () => {
      for await (const event of client.watch(ConfigMap, { resourceVersion: '9' })) seen.push(event.type)
    }
    await expect(consume()).rejects.toBeInstanceOf(Gone)
  })

  it('stop a watch when the consumer returns', async () => {
    let closed: Promise<void> | undefined
    const { client } = await clientOn((exchange) => {
      ;({ closed } = exchange)
      exchange.frame('ADDED', { metadata: { name: 'a' } })
    })
    for await (const event of client.watch(ConfigMap)) {
      expect(event.type).toBe('ADDED')
      break
    }
    await closed
  })
})

describe('error responses', () => {
  it.each([
    [400, 'BadRequest', BadRequest],
    [401, 'Unauthorized', Unauthorized],
    [403, 'Forbidden', Forbidden],
    [404, 'NotFound', NotFound],
    [405, 'MethodNotAllowed', MethodNotAllowed],
    [409, 'Conflict', Conflict],
    [409, 'AlreadyExists', AlreadyExists],
    [410, 'Expired', Gone],
    [422, 'Invalid', Invalid],
    [429, 'TooManyRequests', TooManyRequests],
    [500, 'InternalError', InternalServerError],
    [500, 'ServerTimeout', ServerTimeout],
    [503, 'ServiceUnavailable', ServiceUnavailable],
    [504, 'Timeout', ServerTimeout],
    [418, 'Teapot', ApiError],
  ] as const)('%i %s are typed, with the Status inside', async (code, reason, type) => {
    const causes = [{ field: 'spec.x', message: 'odd' }]
    const { client } = await clientOn((exchange) =>
      exchange.reply(code, refusal(code, reason, { details: { causes } })),
    )
    const error = await client.create(ConfigMap, map()).catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(type)
    expect(error).toMatchObject({ code: reason, httpStatus: code, status: { details: { causes } } })
    expect(String(error)).toContain(`because ${reason}`)
  })

  it('without a Status are typed by HTTP status, and no foreign body is quoted', async () => {
    const { client } = await clientOn((exchange) => exchange.reply(503, '<html>proxy page with secret-token</html>'))
    const error = await client.create(ConfigMap, map()).catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(ServiceUnavailable)
    expect(String(error)).not.toContain('secret-token')
  })

  it.each(['[]', 'null', '"text"', '{}'])('are decode errors for a success with %s', async (body) => {
    const { client } = await clientOn((exchange) => exchange.reply(200, body))
    await expect(client.get(ConfigMap, 'a/b')).rejects.toBeInstanceOf(DecodeError)
    await expect(client.find(ConfigMap, 'a/b')).rejects.toBeInstanceOf(DecodeError)
    await expect(client.list(ConfigMap)).rejects.toBeInstanceOf(DecodeError)
  })

  it('are decode errors for a success that is not JSON', async () => {
    const { client } = await clientOn((exchange) => exchange.reply(200, '<html>'))
    await expect(client.get(ConfigMap, 'ns/a')).rejects.toBeInstanceOf(DecodeError)
    await expect(client.find(ConfigMap, 'ns/a')).rejects.toBeInstanceOf(DecodeError)
  })
})

describe('credentials on requests', () => {
  it('are loaded afresh once after 401, and the request is repeated', async () => {
    let loads = 0
    const { peer, client } = await clientOn(
      (exchange) => {
        if (exchange.headers['authorization'] === 'Bearer token-2') exchange.reply(200, map())
        else exchange.reply(401, refusal(401, 'Unauthorized'))
      },
      {
        credentials: (ca) =>
          refreshingCredentials(async () => ({ headers: { authorization: `Bearer token-${++loads}` }, tls: { ca } })),
      },
    )
    const answers = await Promise.all(Array.from({ length: 6 }, async () => client.apply(ConfigMap, map())))
    expect(answers).toHaveLength(6)
    expect([loads, peer.requests.length]).toEqual([2, 12])
  })

  it('that are rejected again end in Unauthorized, without a secret in it and without a loop', async () => {
    const { peer, client } = await clientOn((exchange) => exchange.reply(401, refusal(401, 'Unauthorized')), {
      credentials: (ca) => staticCredentials({ authorization: 'Bearer hunter2' }, { ca }),
    })
    const error: unknown = await client.get(ConfigMap, 'ns/a').catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(Unauthorized)
    expect(JSON.stringify(error) + String(error) + String((error as Error).stack)).not.toContain('hunter2')
    expect(peer.requests).toHaveLength(2)
  })
})

describe('retries', () => {
  const busyTwice = (exchange: PeerExchange) => {
    if (exchange.index < 2) exchange.reply(429, refusal(429, 'TooManyRequests'), { 'retry-after': '3' })
    else exchange.reply(200, map())
  }

  it('honour Retry-After, even for a create', async () => {
    const clock = fakeClock()
    const { peer, client } = await clientOn(busyTwice, { clock })
    const answer = client.create(ConfigMap, map())
    for (let round = 0; round < 200 && peer.requests.length < 3; round++) await clock.advance(50)
    await answer
    expect(peer.requests).toHaveLength(3)
    expect(clock.monotonic()).toBeGreaterThanOrEqual(6000)
  })

  it('do not send a write again once its guard throws, and never guard a read', async () => {
    const clock = fakeClock()
    const { peer, rest, client } = await clientOn(busyTwice, { clock })
    let isShut = false
    rest.guardWrites(({ method, path }) => {
      if (isShut) throw new Error(`${method} ${path} is refused`)
    })
    const refusal = client.create(ConfigMap, map()).then(
      () => 'sent',
      (error: Error) => error.message,
    )
    for (let round = 0; round < 200 && peer.requests.length < 1; round++) await clock.advance(0)
    isShut = true
    for (let round = 0; round < 100; round++) await clock.advance(50)
    expect(await refusal).toBe('POST /api/v1/namespaces/ns/configmaps is refused')
    expect(peer.requests).toHaveLength(1)
    const read = client.get(ConfigMap, 'ns/a')
    for (let round = 0; round < 200 && peer.requests.length < 3; round++) await clock.advance(50)
    expect((await read).metadata.name).toBe('a')
  })

  it('stop at the deadline, and return the requested wait', async () => {
    const { peer, client } = await clientOn((exchange) =>
      exchange.reply(429, refusal(429, 'TooManyRequests'), { 'retry-after': '60' }),
    )
    await expect(client.apply(ConfigMap, map())).rejects.toMatchObject({ retryAfterMs: 60_000 })
    expect(peer.requests).toHaveLength(1)
  })

  it('repeat an apply after 503 with Retry-After, and never a create', async () => {
    const script = (exchange: PeerExchange) => {
      if (exchange.index === 0) exchange.reply(503, refusal(503, 'ServiceUnavailable'), { 'retry-after': '0' })
      else exchange.reply(200, map())
    }
    const first = await clientOn(script)
    expect((await first.client.apply(ConfigMap, map())).metadata.name).toBe('a')
    const second = await clientOn(script)
    await expect(second.client.create(ConfigMap, map())).rejects.toBeInstanceOf(ServiceUnavailable)
    expect(second.peer.requests).toHaveLength(1)
  })

  it('end after ten responses with Retry-After', async () => {
    const { peer, client } = await clientOn((exchange) =>
      exchange.reply(429, refusal(429, 'TooManyRequests'), { 'retry-after': '0' }),
    )
    await expect(client.get(ConfigMap, 'ns/a')).rejects.toBeInstanceOf(TooManyRequests)
    expect(peer.requests).toHaveLength(11)
  })

  it('repeat once a read whose connection was lost, and never a write', async () => {
    const script = (exchange: PeerExchange) => (exchange.index === 0 ? exchange.reset() : exchange.reply(200, map()))
    const reading = await clientOn(script)
    expect((await reading.client.get(ConfigMap, 'ns/a')).metadata.name).toBe('a')
    const writing = await clientOn(script)
    await expect(writing.client.create(ConfigMap, map())).rejects.toMatchObject({ code: 'RESET' })
    expect(writing.peer.requests).toHaveLength(1)
  })
})

describe('observation and raw requests', () => {
  it('accept one signal for many requests without a warning', async () => {
    const warnings: string[] = []
    const onWarning = (warning: Error) => warnings.push(warning.message)
    process.on('warning', onWarning)
    cleanups.push(async () => void process.off('warning', onWarning))
    const { client } = await clientOn((exchange) => exchange.reply(200, map()))
    const { signal } = new AbortController()
    await Promise.all(Array.from({ length: 20 }, async () => client.get(ConfigMap, 'ns/a', { signal })))
    // Warnings are emitted in a later turn.
    await new Promise((resolve) => setImmediate(resolve))
    expect(warnings).toEqual([])
  })

  it('count every exchange by code, method and host', async () => {
    const seen: string[] = []
    const { peer, client } = await clientOn(
      (exchange) => (exchange.method === 'GET' ? exchange.reply(200, map()) : exchange.reset()),
      {
        observer: { request: ({ code, method, host }) => seen.push(`${code} ${method} ${host}`) },
      },
    )
    await client.get(ConfigMap, 'ns/a')
    await client.create(ConfigMap, map()).catch(() => undefined)
    const { host } = new URL(peer.url)
    expect(seen).toEqual([`200 GET ${host}`, `<error> POST ${host}`])
  })

  it('return any status', async () => {
    const { client } = await clientOn((exchange) => exchange.reply(418, 'short and stout', { 'x-kind': 'teapot' }), {
      peer: { protocol: 'h1', secure: false },
    })
    const answer = await client.request({ method: 'GET', path: '/healthz', query: { verbose: '1', none: undefined } })
    expect([answer.status, answer.headers['x-kind'], answer.body.toString()]).toEqual([
      418,
      'teapot',
      'short and stout',
    ])
  })
})

describe('what a hostile server answers', () => {
  const token = 'secret-token-of-the-member-0123456789'
  const credentials = (ca: string) => staticCredentials({ authorization: `Bearer ${token}` }, { ca })

  it('repeats no credential in an error, nor control characters or a long text', async () => {
    const { client } = await clientOn(
      (exchange) => {
        const { headers } = exchange
        const message = `\u001B[2Jdenied: ${JSON.stringify(headers)}\n${'x'.repeat(100_000)}`
        const details = { causes: [{ message: `of ${headers['authorization'] as string}` }] }
        exchange.reply(403, { ...refusal(403, 'Forbidden', { details }), message })
      },
      { credentials },
    )
    const error = await client.get(ConfigMap, 'default/a').catch((failure: unknown) => failure)
    expect(error).toBeInstanceOf(Forbidden)
    const { message, status } = error as Forbidden
    expect(message).toContain('denied: ')
    expect(message).not.toMatch(/\p{Cc}/u)
    expect(message.length).toBeLessThan(2_200)
    expect(`${message} ${JSON.stringify(status)}`).not.toContain(token)
  })

  it('repeats no credential in an ERROR event of a watch, nor in an answer without a type', async () => {
    const { client } = await clientOn(
      (exchange) => {
        const text = String(exchange.headers['authorization'])
        if (!exchange.url.searchParams.has('watch')) return exchange.reply(200, { gitVersion: text })
        exchange.start()
        return exchange.frame('ERROR', { ...refusal(500, 'InternalError'), message: text })
      },
      { credentials },
    )
    const watch = async () => {
      for await (const event of client.watch(ConfigMap)) throw new Error(event.type)
    }
    await expect(watch()).rejects.toThrow('Bearer [credential removed]')
    const { body } = await client.request({ method: 'GET', path: '/version' })
    expect(body.toString()).toBe('{"gitVersion":"Bearer [credential removed]"}')
  })

  it('is not collected without end: 1 MiB of an answer without a type, 16 MiB of one object', async () => {
    let sent = 0
    const { client } = await clientOn((exchange) => {
      exchange.start()
      const chunk = Buffer.alloc(2 ** 18, 'x')
      let isOpen = true
      void exchange.closed.then(() => (isOpen = false))
      const more = () => {
        // Ends in case that nobody gives up.
        if (!isOpen || sent > 64 * 2 ** 20) return exchange.end()
        exchange.write(chunk)
        sent += chunk.length
        setImmediate(more)
      }
      more()
    })
    await expect(client.request({ method: 'GET', path: '/readyz' })).rejects.toThrow('longer than 1048576 bytes')
    expect(sent).toBeLessThan(16 * 2 ** 20)
    await expect(client.get(ConfigMap, 'default/a')).rejects.toThrow('longer than 16777216 bytes')
  })
})
