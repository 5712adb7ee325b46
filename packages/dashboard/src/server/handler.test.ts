import { once } from 'node:events'
import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { memoryCluster } from '@seamark/kube/testing'
import { CachedHosts, DNSEndpoint } from '@seamark/operator'
import { expect, it } from 'vitest'
import { EventLog } from '../view/event-log.ts'
import { Overview } from '../view/overview.ts'
import { reachOf } from './address.ts'
import { pageHandler } from './handler.ts'
import { Model } from './model.ts'
import type { Pages } from './pages.ts'
import type { Session, Sessions } from './rights.ts'

const RECHECK_MS = 20

/** The stream of a user; `user.allowed` are the namespaces whose DNSEndpoints it may list. */
async function openStream() {
  const cluster = memoryCluster()
  for (const namespace of ['red', 'blue'])
    cluster.put(DNSEndpoint, {
      metadata: { namespace, name: 'web' },
      spec: {
        endpoints: [{ dnsName: `${namespace}.demo.test`, recordType: 'A', targets: ['192.0.2.1'], recordTTL: 60 }],
      },
    })
  const { informers } = cluster
  const hosts = new CachedHosts({
    informers,
    hasFleet: false,
    hasBalance: false,
    publish: undefined,
    endpointScope: {},
  })
  hosts.start(() => undefined)
  const data = { isCurrent: true, readAt: '2026-03-01T00:00:00Z' }
  const overview = new Overview({
    hosts,
    zones: undefined,
    log: new EventLog(),
    manager: () => ({
      version: '0',
      namespace: 'seamark',
      mode: 'enforce',
      pausedBy: [],
      isLeading: true,
      capabilities: [],
      data,
    }),
    hasOnlyOwnZones: false,
    epoch: 'test',
    now: () => 0,
  })
  const model = new Model(overview, () => data)
  model.update()
  const user = { allowed: ['red', 'blue'], isValid: true, isKnown: true, checks: 0 }
  const session: Session = {
    user: { username: 'ann' },
    ensure: async () => {
      const allowed = [...user.allowed]
      return { key: allowed.join(' '), may: ({ namespace = '' }) => allowed.includes(namespace) }
    },
  }
  const sessions = {
    of: async () => {
      user.checks++
      if (!user.isKnown) throw new Error('the API server does not answer')
      return user.isValid ? session : undefined
    },
  } as unknown as Sessions
  const stop = new AbortController()
  const server = createServer(
    pageHandler({
      reach: reachOf('127.0.0.1', []),
      needsToken: true,
      scheme: 'http',
      assets: undefined,
      model: () => ({ model, pages: {} as Pages }),
      sessions,
      signal: stop.signal,
      onError: () => undefined,
      recheckMs: RECHECK_MS,
    }),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const response = await new Promise<IncomingMessage>((resolve) =>
    get(
      { host: '127.0.0.1', port, path: '/api/v1/stream', agent: false, headers: { authorization: 'Bearer t' } },
      resolve,
    ),
  )
  const read = { text: '', isEnded: false }
  response.setEncoding('utf8').on('data', (chunk: string) => (read.text += chunk))
  response.on('end', () => (read.isEnded = true))
  const events = () => read.text.match(/event: \w+/g)?.map((line) => line.slice(7)) ?? []
  await expect.poll(events).toEqual(['snapshot', 'beat'])
  return {
    user,
    read,
    events,
    [Symbol.asyncDispose]: async () => {
      stop.abort()
      response.destroy()
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

it('a stream ends with a sentence when its token is not valid any more', async () => {
  await using stream = await openStream()
  stream.user.isValid = false
  await expect.poll(() => stream.read.isEnded).toBe(true)
  expect(stream.events()).toEqual(['snapshot', 'beat', 'end'])
  expect(stream.read.text).toMatch(/event: end\ndata: \{"message":"the token is not valid any more"\}\n\n$/)
})

it('a stream whose user lost a right goes on with a snapshot without what it may not see', async () => {
  await using stream = await openStream()
  expect(stream.read.text).toContain('blue.demo.test')
  stream.read.text = ''
  stream.user.allowed = ['red']
  await expect.poll(stream.events).toEqual(['snapshot', 'beat'])
  expect(stream.read.text).toContain('red.demo.test')
  expect(stream.read.text).not.toContain('blue')
})

it('a stream goes on while the API server cannot say whether its token is valid', async () => {
  await using stream = await openStream()
  stream.user.isKnown = false
  const before = stream.user.checks
  await expect.poll(() => stream.user.checks).toBeGreaterThan(before + 2)
  expect(stream.read.isEnded).toBe(false)
  stream.user.isKnown = true
  stream.user.isValid = false
  await expect.poll(() => stream.read.isEnded).toBe(true)
})
