import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { startDnslbServer } from './dnslb-server.ts'

async function start() {
  const server = await startDnslbServer({
    listen: '127.0.0.1:0',
    health: () => ({ isHealthy: true, text: 'ok' }),
    metrics: async () => 'x 1\n',
  })
  onTestFinished(async () => server.close())
  return { url: `http://${server.address}`, port: Number(server.address.split(':')[1]) }
}

it('answers GET and HEAD of its two paths', async () => {
  const { url } = await start()
  const ask = async (path: string, method: string) => (await fetch(`${url}${path}`, { method })).status
  expect(await Promise.all(['/healthz', '/metrics'].flatMap((path) => [ask(path, 'GET'), ask(path, 'HEAD')]))).toEqual([
    200, 200, 200, 200,
  ])
  expect([await ask('/metrics', 'POST'), await ask('/', 'GET')]).toEqual([405, 404])
})

it('closes the clients that are idle longest, and answers the probe beside them', async () => {
  const { url, port } = await start()
  const closed: number[] = []
  const sockets: Socket[] = []
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  for (let index = 0; index < 300; index++) {
    const socket = connect({ host: '127.0.0.1', port })
    sockets.push(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => closed.push(index))
    await once(socket, 'connect')
    // Half of them begin a request, which does not end.
    if (index % 2 === 1) socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\nx: ')
  }
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  // 250 of one address.
  await expect.poll(() => closed.length).toBeGreaterThanOrEqual(50)
  expect(closed.filter((index) => index >= 100)).toEqual([])
})
