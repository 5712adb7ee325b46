import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { ask, forwardTo, irOf, listen, route, start } from '../../../testing/proxy-fixture.ts'

it.each(['http1', 'tls', 'h2c', 'h2'] as const)(
  'no spelling of a loopback address as the name of a backend is connected to over %s',
  async (protocol) => {
    let connections = 0
    const server = createServer((socket) => {
      connections++
      socket.destroy()
    })
    const { port } = await listen(server)
    for (const host of ['127.1', '2130706433', '0x7f000001', '0177.0.0.1', '[::ffff:127.0.0.1]']) {
      const upstream = { kind: 'dns', host, port } as const
      const { port: proxy } = await start(irOf([route(forwardTo(['one']))], [{ protocol, upstream }]), {})
      expect([host, (await ask(proxy)).status, connections]).toEqual([host, 503, 0])
    }
  },
)
