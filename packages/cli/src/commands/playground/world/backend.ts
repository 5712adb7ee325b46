/** The program behind a gateway: answers with the name of its cluster, after a delay that can be set. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export class Backend {
  readonly #server: Server
  /** Before each answer. */
  delayMs = 0
  isStopped = false

  private constructor(text: string) {
    this.#server = createServer((_request, response) => {
      if (this.isStopped) {
        response.destroy()
        return
      }
      const timer = setTimeout(() => response.end(text), this.delayMs)
      response.on('close', () => clearTimeout(timer))
    })
  }

  static async start(text: string): Promise<Backend> {
    const backend = new Backend(text)
    await new Promise<void>((resolve) => backend.#server.listen(0, '127.0.0.1', resolve))
    return backend
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }
}
