import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { outcomeOf, Retries } from './retries.ts'

const retriesOn = (...on: string[]) => new Retries({ count: 1, on, statusCodes: [] }, () => undefined)

describe('a request without a response', () => {
  it('is sent again on connect-failure when there was no connection, whatever its method', () => {
    for (const method of ['GET', 'POST', 'PATCH'])
      expect(retriesOn('connect-failure').take('connect', method, undefined)).toBe(true)
  })

  it('is sent again on connect-failure after a reset only if it is idempotent: the backend may have processed it', () => {
    for (const condition of ['connect-failure', 'refused-stream', 'reset-before-request']) {
      expect(retriesOn(condition).take('reset', 'POST', undefined)).toBe(false)
      expect(retriesOn(condition).take('reset', 'PATCH', undefined)).toBe(false)
      expect(retriesOn(condition).take('reset', 'GET', undefined)).toBe(true)
    }
  })

  it('is sent again on reset, whatever its method', () => {
    for (const outcome of ['connect', 'reset'] as const)
      expect(retriesOn('reset').take(outcome, 'POST', undefined)).toBe(true)
  })
})

it('a request on a kept connection that was closed is sent again a few times, and only if it is idempotent', () => {
  const retries = new Retries(undefined, () => undefined)
  expect([1, 2, 3, 4].map(() => retries.takeStale('GET', undefined))).toEqual([true, true, true, false])
  for (const method of ['POST', 'PATCH'])
    expect(new Retries(undefined, () => undefined).takeStale(method, undefined)).toBe(false)
})

it('a refused connection is no reset', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  const refused = await new Promise<Error>((resolve) => connect(port, '127.0.0.1').on('error', resolve))
  expect(outcomeOf(refused)).toBe('connect')
  expect(outcomeOf(Object.assign(new Error('read ECONNRESET'), { syscall: 'read' }))).toBe('reset')
})

it('retries wait longer from one to the next, up to 250 ms', () => {
  const retries = new Retries({ count: 2 ** 40, on: ['5xx'], statusCodes: [] }, () => undefined)
  const waits = Array.from({ length: 6 }, () => retries.take(503, 'GET', undefined) && retries.backOffMs(1))
  expect(waits).toEqual([25, 75, 175, 250, 250, 250])
  expect(retries.backOffMs(0)).toBe(0)
})
