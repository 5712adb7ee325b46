/**
 * What carries the load in a process of its own: `backend PORT`, `bare PORT BACKEND` (the smallest forwarder that node:http
 * allows) or `proxy PORT BACKEND` (the built-in proxy, which swaps its configuration on each line of stdin). Prints its port.
 */
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { build, BUILD_DEFAULTS, createProxy } from '@seamark/gateway'
import { environmentOf } from './objects.ts'

const [role = '', backendPort = '0'] = process.argv.slice(2)
const body = Buffer.alloc(1_024, 'x')

async function start(): Promise<number> {
  if (role === 'proxy') {
    const endpoint = [{ host: '127.0.0.1', port: Number(backendPort) }]
    const proxy = createProxy({ http: { host: '127.0.0.1', port: 0 }, endpoints: () => endpoint })
    proxy.apply(build(environmentOf(), BUILD_DEFAULTS).ir)
    let revision = 0
    createInterface({ input: process.stdin }).on('line', () => {
      proxy.apply(build(environmentOf(++revision), BUILD_DEFAULTS).ir)
      process.stdout.write('applied\n')
    })
    return (await proxy.listen()).http?.port ?? 0
  }
  const agent = new Agent({ keepAlive: true })
  const server = createServer((incoming, outgoing) => {
    if (role === 'backend') {
      outgoing.writeHead(200, { 'content-type': 'text/plain', 'content-length': body.length })
      return void outgoing.end(body)
    }
    const { method, url, headers } = incoming
    const call = request(
      { host: '127.0.0.1', port: Number(backendPort), method, path: url, headers, agent },
      (response) => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers)
        response.pipe(outgoing)
      },
    )
    call.on('error', () => outgoing.destroy())
    incoming.pipe(call)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

process.stdout.write(`${await start()}\n`)
process.on('disconnect', () => process.exit(0))
