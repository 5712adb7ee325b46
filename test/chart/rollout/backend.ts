/** What is proxied to: it answers with the path, on `/slow` after a while. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

const SLOW_MS = 400

export class Backend implements AsyncDisposable {
  readonly #servers: Server[] = []

  /** The port, where it is not a socket file. */
  async listen(at: { readonly host: string } | { readonly path: string }): Promise<number> {
    const server = createServer((incoming, response) => {
      const { url = '' } = incoming
      setTimeout(() => response.end(url), url === '/slow' ? SLOW_MS : 0)
    })
    server.keepAliveTimeout = 600_000
    this.#servers.push(server)
    await once(server.listen('path' in at ? at : { ...at, port: 0 }), 'listening')
    const address = server.address() as AddressInfo | string
    return typeof address === 'string' ? 0 : address.port
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#servers) {
      server.close()
      server.closeAllConnections()
    }
  }
}
