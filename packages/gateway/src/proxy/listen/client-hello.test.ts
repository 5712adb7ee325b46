import { createServer } from 'node:net'
import { connect } from 'node:tls'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { readClientHello } from './client-hello.ts'

/** The first octets that Node's own TLS client sends. */
async function helloOf(servername: string): Promise<Buffer> {
  return await new Promise((resolve, reject) => {
    const server = createServer((socket) => {
      socket.once('data', (octets) => {
        resolve(octets)
        socket.destroy()
        server.close()
      })
    })
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      connect({ host: '127.0.0.1', port, servername }).on('error', () => undefined)
    })
    server.on('error', reject)
  })
}

describe('readClientHello', () => {
  let hello: Buffer
  beforeAll(async () => {
    hello = await helloOf('Shop.Example.test')
  })

  it('finds the name that a real client asks for', () => {
    expect(readClientHello(hello)).toEqual({ kind: 'hello', serverName: 'shop.example.test' })
  })

  it('finds no name where the client sends none', async () => {
    expect(readClientHello(await helloOf(''))).toEqual({ kind: 'hello', serverName: undefined })
  })

  it('waits for the rest of a message that is cut anywhere', () => {
    for (let length = 0; length < hello.length; length++)
      expect(readClientHello(hello.subarray(0, length)).kind).toBe('incomplete')
  })

  it('reads a message that is split into records', () => {
    const body = hello.subarray(5)
    const records = [body.subarray(0, 3), body.subarray(3, 50), body.subarray(50)].map((part) => {
      const head = Buffer.from([22, 3, 1, 0, 0])
      head.writeUInt16BE(part.length, 3)
      return Buffer.concat([head, part])
    })
    expect(readClientHello(Buffer.concat(records))).toEqual({ kind: 'hello', serverName: 'shop.example.test' })
  })

  it('refuses what is not TLS', () => {
    expect(readClientHello(Buffer.from('GET / HTTP/1.1\r\n\r\n')).kind).toBe('invalid')
  })

  it('never throws on damaged octets', () => {
    fc.assert(
      fc.property(fc.nat(2_000), fc.nat(255), (at, value) => {
        const damaged = Buffer.from(hello)
        damaged[at % damaged.length] = value
        expect(['hello', 'invalid', 'incomplete']).toContain(readClientHello(damaged).kind)
      }),
    )
  })
})
