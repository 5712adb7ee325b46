/**
 * A kube client's transport without a network: every exchange is a `fetch` of the simulation, so a whole manager runs on
 * the in-process API server, with its crash points, latency and virtual clock.
 *
 * Guarantees: deadlines and aborts look as they do on a wire; a lost answer is a RESET.
 */
import { Readable } from 'node:stream'
import type { InProcessFetch } from '@seamark/apiserver'
import { type ClusterConfig, type Clock, configFromText, messageOf, TransportError } from '@seamark/kube'
import type { Exchange, Transport } from '@seamark/kube/testing/parts'

const url = 'http://in-process'

/** What `connect` wants beside the transport; nothing in it is ever dialled. */
export function inProcessConfig(name = 'simulated'): ClusterConfig {
  return configFromText(
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name, cluster: { server: url } }],
      users: [{ name, user: {} }],
      contexts: [{ name, context: { cluster: name, user: name } }],
      'current-context': name,
    }),
  )
}

/** `prefix`: of a logical cluster, such as `/clusters/fra1`. */
export function inProcessTransport(fetch: InProcessFetch, clock: Clock, prefix = ''): Transport {
  const open = new Set<AbortController>()

  async function start(exchange: Exchange) {
    const controller = new AbortController()
    let why: TransportError | undefined
    const stop = (code: 'ABORTED' | 'DEADLINE') => {
      why ??= new TransportError(code, `${exchange.method} ${exchange.path}: ${code.toLowerCase()}`)
      controller.abort(why)
    }
    const onAbort = () => stop('ABORTED')
    if (exchange.signal?.aborted === true) onAbort()
    exchange.signal?.addEventListener('abort', onAbort, { once: true })
    const cancelDeadline = clock.after(Math.max(0, exchange.deadlineMs), () => stop('DEADLINE'))
    open.add(controller)
    const release = () => {
      cancelDeadline()
      exchange.signal?.removeEventListener('abort', onAbort)
      open.delete(controller)
    }
    const { method, headers, body, path } = exchange
    try {
      const given = { method, headers: headers as Record<string, string>, signal: controller.signal }
      const response = await fetch(`${url}${prefix}${path}`, { ...given, ...(body !== undefined && { body }) })
      return { response, release, cancelDeadline, onAbort }
    } catch (cause) {
      release()
      throw why ?? new TransportError('RESET', `${method} ${path}: ${messageOf(cause)}`, { cause })
    }
  }

  return {
    async send(exchange) {
      const { response, release } = await start(exchange)
      try {
        const body = Buffer.from(await response.arrayBuffer())
        return { status: response.status, headers: Object.fromEntries(response.headers), body }
      } finally {
        release()
      }
    },
    async open(exchange) {
      const { response, release, cancelDeadline, onAbort } = await start(exchange)
      cancelDeadline()
      const body = Readable.fromWeb(response.body ?? new ReadableStream())
      // Who cancels is gone by the time the stream breaks.
      body.on('error', () => undefined)
      body.once('close', release)
      return { status: response.status, headers: Object.fromEntries(response.headers), body, cancel: onAbort }
    },
    async close() {
      const closed = new TransportError('CLOSED', 'the client is closed')
      for (const controller of open) controller.abort(closed)
    },
    get stats() {
      return { sessions: 1, streams: open.size }
    },
  }
}
