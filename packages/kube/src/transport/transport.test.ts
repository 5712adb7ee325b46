import { getEventListeners, once } from 'node:events'
import { constants } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import { createServer } from 'node:tls'
import { afterEach, describe, expect, it } from 'vitest'
import { createAuthority } from '../certificates.ts'
import { systemClock, type Clock } from '../clock.ts'
import type { ClusterConfig } from '../config/cluster-config.ts'
import { refreshingCredentials, staticCredentials } from '../config/credentials.ts'
import { fakeClock, startPeer, startRelay, type Peer, type PeerExchange, type PeerOptions } from '../testing/index.ts'
import { createTransport } from './connect.ts'
import type { Exchange, Transport } from './transport.ts'

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

async function peerWith(script: PeerOptions['script'], options: Partial<PeerOptions> = {}): Promise<Peer> {
  const peer = await startPeer({ script, ...options })
  cleanups.push(peer.close)
  return peer
}

function transportTo(
  peer: Pick<Peer, 'url' | 'caPem'>,
  given: Partial<ClusterConfig> & { clock?: Clock } = {},
): Transport {
  const { clock = systemClock, ...config } = given
  const transport = createTransport(
    {
      name: 'peer',
      server: peer.url,
      namespace: 'default',
      credentials: staticCredentials({}, { ca: peer.caPem }),
      ...config,
    },
    clock,
  )
  cleanups.push(async () => transport.close())
  return transport
}

interface SilentServer {
  readonly url: string
  readonly caPem: string
  readonly sockets: ReadonlySet<Socket>
}

/** Negotiates HTTP/2 and then sends nothing. */
async function startSilentServer(): Promise<SilentServer> {
  const authority = await createAuthority({ commonName: 'silent-ca' })
  const { certPem: cert, keyPem: key } = await authority.issue({
    commonName: 'silent',
    ipAddresses: ['127.0.0.1'],
    usages: 'server',
  })
  const sockets = new Set<Socket>()
  const server = createServer({ cert, key, ALPNProtocols: ['h2'] }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
    socket.resume()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  })
  const { port } = server.address() as AddressInfo
  return { url: `https://127.0.0.1:${port}`, caPem: authority.certPem, sockets }
}

const get = (path = '/', more: Partial<Exchange> = {}): Exchange => ({
  method: 'GET',
  path,
  headers: {},
  lane: 'request',
  deadlineMs: 10_000,
  maxBodyBytes: 2 ** 20,
  ...more,
})

const post = (more: Partial<Exchange> = {}): Exchange => get('/', { method: 'POST', body: '{}', ...more })

async function until(isTrue: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error(`not within 20 s: ${String(isTrue)}`)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe.each([
  { protocol: 'h2' as const, secure: true },
  { protocol: 'h1' as const, secure: true },
  { protocol: 'h1' as const, secure: false },
])('a transport to $protocol, secure $secure', ({ protocol, secure }) => {
  it('carries method, path, headers and body both ways', async () => {
    const peer = await peerWith(
      async (exchange) =>
        exchange.reply(201, { got: await exchange.body(), header: exchange.headers['x-one'] }, { 'x-two': 'b' }),
      { protocol, secure },
    )
    const answer = await transportTo(peer).send(post({ path: '/a?b=c', headers: { 'x-one': 'a' }, body: '{"ü":1}' }))
    expect(answer.status).toBe(201)
    expect(answer.headers['x-two']).toBe('b')
    expect(JSON.parse(answer.body.toString())).toEqual({ got: '{"ü":1}', header: 'a' })
    expect(peer.requests).toEqual(['POST /a?b=c'])
  })

  it('ends a request at its deadline', async () => {
    const peer = await peerWith(() => undefined, { protocol, secure })
    await expect(transportTo(peer).send(get('/', { deadlineMs: 100 }))).rejects.toMatchObject({ code: 'DEADLINE' })
  })

  it('ends a request when the caller aborts', async () => {
    const controller = new AbortController()
    const peer = await peerWith(() => controller.abort(), { protocol, secure })
    await expect(transportTo(peer).send(get('/', { signal: controller.signal }))).rejects.toMatchObject({
      code: 'ABORTED',
    })
  })

  it('sends nothing for a caller that has aborted already', async () => {
    const peer = await peerWith((exchange) => exchange.reply(200, 'ok'), { protocol, secure })
    const transport = transportTo(peer)
    const aborted = { method: 'DELETE', signal: AbortSignal.abort() }
    for (const path of ['/without-connection', '/with-connection']) {
      await expect(transport.send(get(path, aborted))).rejects.toMatchObject({ code: 'ABORTED' })
      await expect(transport.open(get(path, aborted))).rejects.toMatchObject({ code: 'ABORTED' })
      await transport.send(get('/connect'))
    }
    expect(peer.requests).toEqual(['GET /connect', 'GET /connect'])
  })

  it('reads no more of a body than maxBodyBytes', async () => {
    const peer = await peerWith((exchange) => exchange.reply(200, 'x'.repeat(100_000)), { protocol, secure })
    await expect(transportTo(peer).send(get('/', { maxBodyBytes: 1000 }))).rejects.toMatchObject({
      code: 'BODY_TOO_LARGE',
    })
  })

  it('reports a truncated response as a reset that may have been processed', async () => {
    const peer = await peerWith(
      (exchange) => {
        exchange.write('half')
        exchange.reset()
      },
      { protocol, secure },
    )
    await expect(transportTo(peer).send(post())).rejects.toMatchObject({ code: 'RESET', unprocessed: false })
  })

  it('reports a refused connection as certainly unprocessed', async () => {
    const peer = await peerWith(() => undefined, { protocol, secure })
    await peer.close()
    await expect(transportTo(peer).send(post())).rejects.toMatchObject({ code: 'CONNECT', unprocessed: true })
  })

  it('streams a body and distinguishes a clean end from a broken connection', async () => {
    const open: PeerExchange[] = []
    const peer = await peerWith((exchange) => void open.push(exchange), { protocol, secure })
    const transport = transportTo(peer)
    const endings = await Promise.all(
      ['clean', 'cut'].map(async (how, index) => {
        const opening = transport.open(get(`/${how}`, { lane: 'watch' }))
        await until(() => open.length > index)
        const exchange = open.find(({ path }) => path === `/${how}`)
        exchange?.start()
        exchange?.write('first')
        const { body, status } = await opening
        const events: string[] = []
        body.on('error', () => events.push('error'))
        body.on('end', () => events.push('end'))
        await new Promise<void>((resolve) => body.once('data', () => resolve()))
        if (how === 'clean') exchange?.end()
        else exchange?.reset()
        await new Promise<void>((resolve) => body.once('close', () => resolve()))
        return { status, isClean: events.includes('end') && !events.includes('error') }
      }),
    )
    expect(endings).toEqual([
      { status: 200, isClean: true },
      { status: 200, isClean: false },
    ])
  })

  it('leaves no listener on the signal of its caller', async () => {
    const open: PeerExchange[] = []
    const peer = await peerWith(
      (exchange) => {
        if (exchange.path !== '/stream') return exchange.reply(200, 'ok')
        exchange.write('first')
        open.push(exchange)
      },
      { protocol, secure },
    )
    const transport = transportTo(peer)
    const { signal } = new AbortController()
    for (const path of ['/connect', '/connected']) await transport.send(get(path, { signal }))
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    const { body } = await transport.open(get('/stream', { signal }))
    expect(getEventListeners(signal, 'abort').length).toBeGreaterThan(0)
    open[0]?.end()
    const closed = once(body, 'close')
    body.resume()
    await closed
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  })

  it('ends a stream when the caller aborts', async () => {
    const peer = await peerWith((exchange) => exchange.write('first'), { protocol, secure })
    const controller = new AbortController()
    const { body } = await transportTo(peer).open(get('/', { signal: controller.signal }))
    const closed = new Promise<void>((resolve) => body.on('error', () => undefined).once('close', () => resolve()))
    controller.abort()
    await closed
    expect(body.destroyed).toBe(true)
  })

  it('closes every connection, and fails open requests', async () => {
    const peer = await peerWith(() => undefined, { protocol, secure })
    const transport = transportTo(peer)
    const pending = transport.send(get()).catch((error: unknown) => error)
    await until(() => peer.requests.length === 1)
    await transport.close()
    expect(await pending).toBeInstanceOf(Error)
    await until(() => peer.openConnections === 0)
    expect(peer.openConnections).toBe(0)
    // A later request fails, too, instead of waiting for a connection.
    await expect(transport.send(get())).rejects.toMatchObject({ code: 'CLOSED' })
  })
})

describe('HTTP/2 sessions', () => {
  it('use one connection for many requests', async () => {
    const peer = await peerWith((exchange) => exchange.reply(200, 'ok'))
    const transport = transportTo(peer)
    await Promise.all(Array.from({ length: 80 }, async () => transport.send(get())))
    expect(peer.connections).toBe(1)
  })

  it('never exceed the stream limit of a peer minus a reserve, and open another connection instead', async () => {
    const open = new Map<number, number>()
    let most = 0
    const waiting: PeerExchange[] = []
    const peer = await peerWith(
      (exchange) => {
        const streams = (open.get(exchange.connection) ?? 0) + 1
        open.set(exchange.connection, streams)
        most = Math.max(most, streams)
        waiting.push(exchange)
      },
      { maxConcurrentStreams: 10 },
    )
    const transport = transportTo(peer)
    const answers = Array.from({ length: 20 }, async () => transport.send(get()))
    await until(() => waiting.length === 20)
    for (const exchange of waiting) exchange.reply(200, 'ok')
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200))
    expect(most).toBe(9)
    expect(peer.connections).toBe(3)
  })

  it('queue beyond their last connection and serve the queue as streams end', async () => {
    const peer = await peerWith((exchange) => exchange.reply(200, 'ok'), { maxConcurrentStreams: 2 })
    const transport = transportTo(peer)
    const answers = await Promise.all(Array.from({ length: 50 }, async () => transport.send(get())))
    expect(answers).toHaveLength(50)
    expect(peer.connections).toBeLessThanOrEqual(8)
  })

  it('keep watches, requests and the lease on separate connections', async () => {
    const byLane = new Map<string, Set<number>>()
    const peer = await peerWith((exchange) => {
      const lane = String(exchange.headers['x-lane'])
      byLane.set(lane, (byLane.get(lane) ?? new Set()).add(exchange.connection))
      if (lane === 'watch') exchange.start()
      else exchange.reply(200, 'ok')
    })
    const transport = transportTo(peer)
    const lanes = (lane: Exchange['lane']) => get('/', { lane, headers: { 'x-lane': lane } })
    const streams = await Promise.all(Array.from({ length: 5 }, async () => transport.open(lanes('watch'))))
    await transport.send(lanes('request'))
    await transport.send(lanes('lease'))
    const all = [...byLane.values()].flatMap((connections) => [...connections])
    expect(new Set(all).size).toBe(3)
    for (const { cancel, body } of streams) {
      body.on('error', () => undefined)
      cancel()
    }
  })

  it('renew a lease while a hundred watches fill their connections', async () => {
    const peer = await peerWith(
      (exchange) => {
        if (exchange.url.searchParams.has('watch')) exchange.start()
        else exchange.reply(200, 'renewed')
      },
      { maxConcurrentStreams: 100 },
    )
    const transport = transportTo(peer)
    const watches = await Promise.all(
      Array.from({ length: 120 }, async () => transport.open(get('/?watch=1', { lane: 'watch' }))),
    )
    const renewed = await transport.send(get('/lease', { lane: 'lease', deadlineMs: 5000 }))
    expect(renewed.body.toString()).toBe('renewed')
    for (const { cancel, body } of watches) {
      body.on('error', () => undefined)
      cancel()
    }
  })

  it('send even a create again when the peer certainly refused the stream', async () => {
    const peer = await peerWith((exchange) => {
      if (exchange.index === 0) exchange.reset(constants.NGHTTP2_REFUSED_STREAM)
      else exchange.reply(201, 'made')
    })
    expect((await transportTo(peer).send(post())).status).toBe(201)
    expect(peer.requests).toHaveLength(2)
  })

  it('count the time until a refusal as part of the deadline', async () => {
    const clock = fakeClock()
    const refusals: PeerExchange[] = []
    const peer = await peerWith((exchange) => {
      if (exchange.index === 0) exchange.reply(200, 'connected')
      else if (exchange.index === 1) refusals.push(exchange)
      // The second attempt is never answered.
      else exchange.start()
    })
    const transport = transportTo(peer, { clock })
    await transport.send(get('/first'))
    const result = transport.send(post({ deadlineMs: 10_000 })).catch((error: unknown) => error)
    await until(() => refusals.length === 1)
    await clock.advance(9_000)
    refusals[0]?.reset(constants.NGHTTP2_REFUSED_STREAM)
    await until(() => peer.requests.length === 3)
    await clock.advance(1_001)
    expect(await result).toMatchObject({ code: 'DEADLINE' })
  })

  it('never send a create again after another kind of reset', async () => {
    const peer = await peerWith((exchange) => exchange.reset(constants.NGHTTP2_INTERNAL_ERROR))
    await expect(transportTo(peer).send(post())).rejects.toMatchObject({ code: 'RESET' })
    expect(peer.requests).toHaveLength(1)
  })

  it('use another connection after GOAWAY while open streams continue', async () => {
    const held: PeerExchange[] = []
    const peer = await peerWith((exchange) => {
      if (exchange.path === '/watch') {
        exchange.start()
        held.push(exchange)
        exchange.goaway()
      } else exchange.reply(200, String(exchange.connection))
    })
    const transport = transportTo(peer)
    const first = await transport.send(get('/one'))
    const stream = await transport.open(get('/watch'))
    const seen: string[] = []
    stream.body.on('data', (chunk: Buffer) => seen.push(chunk.toString()))
    await until(() => held.length === 1)
    const second = await transport.send(get('/two'))
    held[0]?.write('still here')
    await until(() => seen.length === 1)
    expect([first.body.toString(), second.body.toString(), seen[0]]).toEqual(['0', '1', 'still here'])
    stream.body.on('error', () => undefined)
    stream.cancel()
  })

  it('send requests again that a GOAWAY left unprocessed', async () => {
    const peer = await peerWith((exchange) => {
      // The first request of the first connection is processed; the peer ignores the others.
      if (exchange.connection > 0 || exchange.index === 0) exchange.reply(200, 'ok')
      else if (exchange.index === 1) exchange.goaway(1)
    })
    const transport = transportTo(peer)
    await transport.send(get('/warm'))
    const answers = await Promise.all(Array.from({ length: 5 }, async () => transport.send(post({ deadlineMs: 5000 }))))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  })

  it('do not send a POST again that a GOAWAY covered and the peer then reset: it may have been processed', async () => {
    const peer = await peerWith((exchange) => {
      if (exchange.method !== 'POST') return exchange.reply(200, 'ok')
      exchange.goaway()
      return exchange.reset(constants.NGHTTP2_INTERNAL_ERROR)
    })
    const transport = transportTo(peer)
    await transport.send(get('/warm'))
    await expect(transport.send(post({ deadlineMs: 5000 }))).rejects.toMatchObject({ unprocessed: false })
    expect((await transport.send(get('/after'))).body.toString()).toBe('ok')
    expect(peer.requests.filter((request) => request.startsWith('POST'))).toHaveLength(1)
  })

  it('drop a peer that stops responding within 45 seconds', async () => {
    const clock = fakeClock()
    const peer = await peerWith((exchange) => exchange.start())
    const relay = await startRelay(peer.port)
    cleanups.push(relay.close)
    const transport = transportTo(peer, { server: `https://127.0.0.1:${relay.port}`, clock })
    const { body } = await transport.open(get('/?watch=1', { lane: 'watch', deadlineMs: 600_000 }))
    let end: string | undefined
    body.on('error', () => (end ??= 'error'))
    body.on('close', () => (end ??= 'close'))
    await clock.advance(30_000)
    relay.freeze()
    await clock.advance(30_000)
    expect(end).toBeUndefined()
    await clock.advance(15_000)
    await until(() => end !== undefined)
    expect(transport.stats.streams).toBe(0)
  })

  it('stay open when an idle peer responds to pings', async () => {
    const clock = fakeClock()
    const peer = await peerWith((exchange) => exchange.start())
    const transport = transportTo(peer, { clock })
    const { body, cancel } = await transport.open(get('/?watch=1', { lane: 'watch', deadlineMs: 600_000 }))
    let hasEnded = false
    body.on('close', () => (hasEnded = true)).on('error', () => undefined)
    for (let minute = 0; minute < 4; minute++) {
      // In the second half minute nothing is received.
      await clock.advance(60_000)
      await peer.roundTrip()
    }
    expect(hasEnded).toBe(false)
    expect(peer.pings).toBeGreaterThan(1)
    cancel()
  })

  it('are replaced when the TLS material changes, and the old one drains', async () => {
    const clock = fakeClock()
    let common = 'one'
    const peer = await peerWith((exchange) => exchange.reply(200, String(exchange.connection)), {
      requestClientCertificate: true,
    })
    const credentials = refreshingCredentials(async () => {
      const pair = await peer.issueClient(common)
      return { headers: {}, tls: { ca: peer.caPem, cert: pair.certPem, key: pair.keyPem } }
    }, clock)
    await credentials.headers()
    const transport = transportTo(peer, { credentials })
    const before = await transport.send(get())
    common = 'two'
    credentials.invalidate()
    await credentials.headers()
    const after = await transport.send(get())
    expect([before.body.toString(), after.body.toString()]).toEqual(['0', '1'])
    await until(() => peer.openConnections <= 2)
    expect(credentials.tls().version).toBe(2)
  })

  it('reject a server whose certificate is from another authority', async () => {
    const peer = await peerWith((exchange) => exchange.reply(200, 'ok'))
    const transport = transportTo(peer, { credentials: staticCredentials({}, {}) })
    await expect(transport.send(get())).rejects.toMatchObject({ code: 'CONNECT' })
  })

  it('verify the name in tls-server-name', async () => {
    const peer = await peerWith((exchange) => exchange.reply(200, 'ok'))
    const named = (serverName: string) =>
      transportTo(peer, { credentials: staticCredentials({}, { ca: peer.caPem, serverName }) })
    expect((await named('peer.test').send(get())).status).toBe(200)
    await expect(named('other.test').send(get())).rejects.toMatchObject({ code: 'CONNECT' })
  })

  it('end a connection without SETTINGS after ten seconds, and when the client closes', async () => {
    const clock = fakeClock()
    const silent = await startSilentServer()
    const transport = transportTo(silent, { clock })
    const first = transport.send(get('/', { deadlineMs: 60_000 })).catch((error: unknown) => error)
    await until(() => silent.sockets.size === 1 && clock.pending >= 3)
    await clock.advance(10_000)
    expect(await first).toMatchObject({ code: 'CONNECT', unprocessed: true })
    await until(() => silent.sockets.size === 0)
    const second = transport.send(get('/', { deadlineMs: 60_000 })).catch((error: unknown) => error)
    await until(() => silent.sockets.size === 1)
    await transport.close()
    expect(await second).toMatchObject({ code: 'CLOSED' })
    await until(() => silent.sockets.size === 0)
    expect(clock.pending).toBe(0)
  })

  it('serve the queue with the connections left when no further one can be opened', async () => {
    const open: PeerExchange[] = []
    const peer = await peerWith((exchange) => void open.push(exchange), { maxConcurrentStreams: 1 })
    let dials = 0
    const transport = transportTo(peer, { guard: () => (dials++ === 0 ? undefined : 'no further connection') })
    const first = transport.send(get('/first'))
    await until(() => open.length === 1)
    const second = transport.send(get('/second'))
    await until(() => dials === 2)
    // The dial has failed when a request on another lane, which dials later, has failed, too.
    await expect(transport.send(get('/lease', { lane: 'lease' }))).rejects.toThrow('no further connection')
    open[0]?.reply(200, 'ok')
    expect((await first).status).toBe(200)
    await until(() => open.length === 2)
    open[1]?.reply(200, 'ok')
    expect((await second).status).toBe(200)
  })

  it('leave no request in the queue that was aborted there', async () => {
    const open: PeerExchange[] = []
    const peer = await peerWith((exchange) => void open.push(exchange), { maxConcurrentStreams: 1 })
    const transport = transportTo(peer)
    const first = transport.send(get('/first', { lane: 'lease' }))
    await until(() => open.length === 1)
    const abort = new AbortController()
    const queued = transport.send(get('/queued', { lane: 'lease', signal: abort.signal }))
    const last = transport.send(get('/last', { lane: 'lease' }))
    abort.abort()
    await expect(queued).rejects.toMatchObject({ code: 'ABORTED', unprocessed: true })
    open[0]?.reply(200, 'ok')
    await first
    await until(() => open.length === 2)
    open[1]?.reply(200, 'ok')
    await last
    expect(peer.requests).toEqual(['GET /first', 'GET /last'])
    expect(peer.connections).toBe(1)
  })

  it('open no connection to an address that the guard rejects', async () => {
    const peer = await peerWith((exchange) => exchange.reply(200, 'ok'))
    const refuse = () => 'not here'
    const byAddress = transportTo(peer, { guard: refuse })
    await expect(byAddress.send(get())).rejects.toThrow('not here')
    const byName = transportTo(peer, { guard: refuse, server: `https://localhost:${peer.port}` })
    await expect(byName.send(get())).rejects.toThrow('not here')
    expect(peer.connections).toBe(0)
  })
})
