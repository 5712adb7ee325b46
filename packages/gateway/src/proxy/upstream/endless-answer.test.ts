/** Backends whose answers never end: nothing that nobody waits for goes on. */
import { createServer } from 'node:http'
import { expect, it, onTestFinished } from 'vitest'
import { ask, forwardTo, irOf, listen, manualClock, route, start, backend } from '../../../testing/proxy-fixture.ts'

/** Answers each request without an end; how many of the answers are still being sent. */
async function endless(status: number) {
  let open = 0
  let begun = 0
  const server = createServer((request, response) => {
    open++
    begun++
    response.writeHead(status)
    const send = () => {
      while (response.write(Buffer.alloc(16_384)));
    }
    response.on('drain', send)
    response.on('close', () => open--)
    send()
  })
  const at = await listen(server)
  onTestFinished(() => server.closeAllConnections())
  return { at, open: () => open, begun: () => begun }
}

it('the body of an answer to a health check is not read', async () => {
  const { at, open, begun } = await endless(200)
  const healthCheck = {
    path: '/',
    host: 'h',
    intervalMs: 1_000,
    timeoutMs: 500,
    unhealthyThreshold: 3,
    healthyThreshold: 1,
    expectedStatuses: [],
  }
  const clock = manualClock()
  await start(irOf([], [{ name: 'one', healthCheck }]), { one: [at] }, { clock })
  await expect.poll(begun).toBe(1)
  await expect.poll(open).toBe(0)
})

it('an answer that is followed by a retry is not read to its end', async () => {
  const { at, open, begun } = await endless(503)
  const one = await backend()
  const retry = { count: 1, on: ['5xx'], statusCodes: [], perTryTimeoutMs: 1_000 }
  const { port } = await start(irOf([route(forwardTo(['one'], { retry }))]), { one: [one, at] })
  for (let count = 0; count < 4; count++) expect((await ask(port)).status).toBe(200)
  expect(begun()).toBeGreaterThan(0)
  await expect.poll(open).toBe(0)
})
