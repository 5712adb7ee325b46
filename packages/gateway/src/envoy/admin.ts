/** The admin interface of an Envoy, over its socket file. */
import { request } from 'node:http'
import type { ListenAddress } from '../ir/listen-addresses.ts'

export class EnvoyAdmin {
  readonly #socketPath: string

  constructor(socketPath: string) {
    this.#socketPath = socketPath
  }

  /** Configuration from the control plane is in effect. */
  async isReady(): Promise<boolean> {
    const answer = await this.#ask('GET', '/ready').catch(() => undefined)
    return answer?.status === 200
  }

  /** Addresses of the listeners that accept connections, by name. */
  async listeners(): Promise<Map<string, ListenAddress>> {
    const { body } = await this.#ask('GET', '/listeners?format=json')
    const { listener_statuses: found = [] } = JSON.parse(body) as {
      listener_statuses?: {
        name: string
        local_address?: { socket_address?: { address: string; port_value: number } }
      }[]
    }
    return new Map(
      found.flatMap(({ name, local_address: local }) => {
        const address = local?.socket_address
        return address === undefined ? [] : [[name, { host: address.address, port: address.port_value }] as const]
      }),
    )
  }

  /** New connections are refused, and responses announce that the connection is closed. */
  async drain(): Promise<void> {
    await this.#ask('POST', '/healthcheck/fail')
    await this.#ask('POST', '/drain_listeners')
  }

  /** Requests that wait for their response. */
  async activeRequests(): Promise<number> {
    const { body } = await this.#ask('GET', '/stats?filter=^http%5C.ingress_https%3F%5C.downstream_rq_active%24')
    return body.split('\n').reduce((sum, line) => sum + Number(line.split(': ')[1] ?? 0), 0)
  }

  async #ask(method: string, path: string): Promise<{ status: number; body: string }> {
    return await new Promise((resolve, reject) => {
      const call = request({ socketPath: this.#socketPath, method, path, agent: false }, (response) => {
        let body = ''
        response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
        response.on('error', reject)
      })
      call.setTimeout(ANSWER_MS, () => call.destroy(new Error('the admin interface of Envoy does not answer')))
      call.on('error', reject)
      call.end()
    })
  }
}

const ANSWER_MS = 2_000
