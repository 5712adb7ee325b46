import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { ask, backend, forwardTo, irOf, listen, route, start } from '../../../testing/proxy-fixture.ts'
import type { Ir, WeightedAddress } from '../../ir/model.ts'

function retryingIr(name: string, addresses: readonly WeightedAddress[]): Ir {
  const retry = { count: 1, on: ['connect-failure'], statusCodes: [] }
  const cluster = { name, upstream: { kind: 'addresses', addresses }, balancing: 'random' } as const
  return irOf([route(forwardTo([name], { retry }))], [cluster])
}

async function otherBackend(): Promise<WeightedAddress> {
  const { host, port } = await backend((_request, respond) => respond(200, {}, 'other'))
  return { host, port, weight: 1, priority: 1 }
}

it('a request is retried although a new configuration has removed its cluster meanwhile', async () => {
  const other = await otherBackend()
  const failing = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => {
      proxy.apply(retryingIr('two', [other]))
      socket.destroy()
    })
  })
  const address = { ...(await listen(failing)), weight: 1, priority: 0 }
  const { proxy, port } = await start(retryingIr('one', [address, other]), {})
  expect(await ask(port)).toMatchObject({ status: 200, body: 'other' })
})

it('a backend that is lost between two requests of a kept connection costs no request: the next one answers', async () => {
  let requests = 0
  const lost = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', () => {
      requests++
      if (requests === 1) return void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlost')
      // New connections are refused from now on.
      lost.close()
      socket.destroy()
    })
  })
  const addresses = [{ ...(await listen(lost)), weight: 1, priority: 0 }, await otherBackend()]
  const { port } = await start(retryingIr('one', addresses), {})
  expect(await ask(port)).toMatchObject({ status: 200, body: 'lost' })
  expect(await ask(port)).toMatchObject({ status: 200, body: 'other' })
  expect(requests).toBe(2)
})
