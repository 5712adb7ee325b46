import { connect, constants } from 'node:http2'
import { expect, it } from 'vitest'
import { backend, forwardTo, irOf, route, start } from '../../../testing/proxy-fixture.ts'
import { MAX_RESETS } from './client-connections.ts'

it.each([
  [MAX_RESETS / 2, false],
  [MAX_RESETS * 2, true],
])('a client of HTTP/2 that takes %i requests back at once loses its connection: %s', async (count, isLost) => {
  const one = await backend()
  const { port } = await start(irOf([route(forwardTo(['one']))]), { one: [one] })
  const session = connect(`http://127.0.0.1:${port}`)
  session.on('error', () => undefined)
  let left = count
  for (let index = 0; index < count; index++) {
    const stream = session.request({ ':authority': 'x.test' })
    stream.on('error', () => undefined).on('close', () => left--)
    stream.close(constants.NGHTTP2_CANCEL)
  }
  await expect.poll(() => left).toBe(0)
  const status = new Promise((resolve) => {
    session.on('close', () => resolve(undefined))
    if (session.destroyed) return resolve(undefined)
    const stream = session.request({ ':authority': 'x.test' })
    stream.on('response', (headers) => resolve(headers[':status']))
    stream.on('error', () => undefined).resume()
  })
  expect(await status).toBe(isLost ? undefined : 200)
  session.destroy()
})
