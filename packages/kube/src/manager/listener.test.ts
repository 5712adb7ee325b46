import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { startListener } from './listener.ts'

it('answers CONNECT with 405, and goes on', async () => {
  const listener = await startListener({ listen: '127.0.0.1:0', handler: (_, response) => response.end('ok') })
  try {
    const socket = connect(Number(listener.address.split(':').at(-1)), '127.0.0.1')
    socket.write('CONNECT other.test:443 HTTP/1.1\r\nhost: other.test:443\r\n\r\n')
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 405 [^]*allow: GET, HEAD\r\n/)
    expect(await (await fetch(`http://${listener.address}/`)).text()).toBe('ok')
  } finally {
    await listener.close(0)
  }
})
