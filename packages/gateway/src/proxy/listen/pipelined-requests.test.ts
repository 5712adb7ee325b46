import { expect, it } from 'vitest'
import { backend, forwardTo, irOf, openSocket, route, start } from '../../../testing/proxy-fixture.ts'

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x.test\r\n\r\n`
const paths = (count: number) => Array.from({ length: count }, (_, index) => `/${index}`)

it('requests that a client sends ahead are answered in their order, and few of them are asked for at a time', async () => {
  let [open, most] = [0, 0]
  const one = await backend(({ url = '' }, respond) => {
    most = Math.max(most, ++open)
    setImmediate(() => {
      open--
      respond(200, {}, `<${url}>`)
    })
  })
  const { port } = await start(irOf([route(forwardTo(['one']))]), { one: [one] })
  const { socket, text } = openSocket(port)
  socket.write(paths(300).map(get).join(''))
  await expect.poll(() => text().match(/<.*?>/g)?.length).toBe(300)
  expect(text().match(/<.*?>/g)).toEqual(paths(300).map((path) => `<${path}>`))
  expect(most).toBeLessThanOrEqual(2)
})

it('a body of thousands of chunks arrives whole, and what follows it is the next request', async () => {
  const one = await backend()
  const { port } = await start(irOf([route(forwardTo(['one']))]), { one: [one] })
  const { socket, text } = openSocket(port)
  const chunks = Array.from({ length: 20_000 }, (_, index) => `1\r\n${index % 10}\r\n`).join('')
  const head = 'POST /body HTTP/1.1\r\nhost: x.test\r\ntransfer-encoding: chunked\r\n\r\n'
  socket.write(`${head}${chunks}0\r\nx: y\r\n\r\n${get('/next')}${head}4\r\n\r\n\r\n\r\n0\r\n\r\n`)
  await expect.poll(() => text().split('HTTP/1.1 200 ').length, { timeout: 10_000 }).toBe(4)
  expect(one.seen.map(({ url }) => url)).toEqual(['/body', '/next', '/body'])
  expect(one.seen.map(({ body }) => body)).toEqual(['0123456789'.repeat(2_000), '', '\r\n\r\n'])
})
