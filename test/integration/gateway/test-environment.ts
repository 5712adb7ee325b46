/**
 * What the scenarios run on: an API server, `seamark gateway` and echo servers in the place of pods, all in one process in a
 * network namespace of its own.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
} from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { type Client, EndpointSlice, Namespace, Secret, Service } from '@seamark/kube'
import { createAuthority, type Authority } from '@seamark/kube/certificates'
import { POD_ADDRESSES } from './network-namespace.ts'
import { type StartedVerb, startVerb } from './started-verb.ts'

export interface Seen {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** What the backend that answered has seen, if one did. */
  readonly seen: (Seen & { readonly backend: string }) | undefined
}

export interface Ask {
  readonly host: string
  readonly path?: string
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly isTls?: boolean
  /** Over TLS. @default the host */
  readonly serverName?: string
  /** @default that of the main listener */
  readonly port?: number
}

/** An echo server with a name; `behave` may replace its answers. */
export class Backend {
  readonly name: string
  readonly requests: Seen[] = []
  behave: ((request: IncomingMessage, respond: (status: number, body?: string) => void) => void) | undefined
  readonly #server: Server
  port = 0

  constructor(name: string) {
    this.name = name
    this.#server = createServer((request, response) => {
      let body = ''
      request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
      request.on('end', () => {
        const seen = { method: request.method ?? '', path: request.url ?? '', headers: request.headers, body }
        this.requests.push(seen)
        const respond = (status: number, text?: string) => {
          response.writeHead(status, { 'content-type': 'application/json', 'x-backend': name })
          response.end(text ?? JSON.stringify({ backend: name, ...seen }))
        }
        if (this.behave === undefined) respond(200)
        else this.behave(request, respond)
      })
    })
    this.#server.on('upgrade', (request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n')
      socket.on('data', (chunk: Buffer) => socket.write(`${name}:${chunk.toString()}`))
      socket.on('error', () => socket.destroy())
      void request
    })
  }

  async listen(host: string): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, host, resolve))
    const address = this.#server.address()
    this.port = typeof address === 'object' && address !== null ? address.port : 0
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

type Backends = readonly [Backend, Backend, Backend]

export class TestEnvironment {
  readonly client: Client
  readonly kubeconfigFile: string
  readonly authority: Authority
  readonly backends: Backends
  /** Flags of every gateway of this environment. */
  gatewayFlags: readonly string[] = []
  http = { host: '', port: 0 }
  https = { host: '', port: 0 }
  #gateway: StartedVerb | undefined
  #names = 0

  private constructor(client: Client, kubeconfigFile: string, authority: Authority, backends: Backends) {
    this.client = client
    this.kubeconfigFile = kubeconfigFile
    this.authority = authority
    this.backends = backends
  }

  static async start(client: Client, kubeconfigFile: string): Promise<TestEnvironment> {
    const backends: Backends = [new Backend('pod-1'), new Backend('pod-2'), new Backend('pod-3')]
    await Promise.all(backends.map(async (backend, index) => backend.listen(POD_ADDRESSES[index] ?? '')))
    const authority = await createAuthority({ commonName: 'test' })
    return new TestEnvironment(client, kubeconfigFile, authority, backends)
  }

  /** Runs `seamark gateway` until `stopGateway`. */
  async startGateway(...flags: string[]): Promise<void> {
    const gateway = await startVerb('gateway', this.#flags(flags), process.env)
    this.#setAddresses(await gateway.line('ready'))
    this.#gateway = gateway
  }

  /** Runs `seamark gateway` in a process of its own; resolves when it is ready. */
  async spawnGateway(...flags: string[]): Promise<ChildProcess> {
    const program = join(import.meta.dirname, '../../../bin/seamark')
    const child = spawn(program, ['gateway', ...this.#flags(flags)], { stdio: ['ignore', 'pipe', 'inherit'] })
    const line = await new Promise<string>((resolve, reject) => {
      let output = ''
      child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
        output += chunk
        const ready = /^ready (.*)$/m.exec(output)?.[1]
        if (ready !== undefined) resolve(ready)
      })
      child.once('exit', (code) => reject(new Error(`the gateway ended with ${code}`)))
    })
    this.#setAddresses(line)
    return child
  }

  #flags(more: readonly string[]): string[] {
    return [
      '--kubeconfig',
      this.kubeconfigFile,
      '--namespace=default',
      '--http-listen=127.0.0.1:0',
      '--https-listen=127.0.0.1:0',
      '--ingress-status-address=192.0.2.10,lb.example.test',
      ...this.gatewayFlags,
      ...more,
    ]
  }

  #setAddresses(line: string): void {
    const [http = '', https = ''] = line.split(' ')
    this.http = addressOf(http)
    this.https = addressOf(https)
  }

  async stopGateway(): Promise<void> {
    await this.#gateway?.stop()
    this.#gateway = undefined
  }

  close(): void {
    for (const backend of this.backends) backend.close()
  }

  /** A namespace for one scenario. */
  async namespace(labels: Record<string, string> = {}): Promise<string> {
    const name = `s${++this.#names}`
    await this.client.create(Namespace, { metadata: { name, labels } })
    return name
  }

  /** A Service whose endpoints are these backends (all by default). */
  async service(
    namespace: string,
    name: string,
    backends: readonly Backend[] = this.backends.slice(0, 1),
    port = 80,
  ): Promise<void> {
    await this.client.create(Service, {
      metadata: { namespace, name },
      spec: { ports: [{ name: 'http', port, protocol: 'TCP' }] },
    })
    await this.endpoints(namespace, name, backends)
  }

  /** Services `one`, `two` and `three` in front of `pod-1`, `pod-2` and `pod-3`. */
  async threeServices(namespace: string): Promise<void> {
    for (const [index, name] of ['one', 'two', 'three'].entries())
      await this.service(namespace, name, this.backends.slice(index, index + 1))
  }

  async endpoints(namespace: string, service: string, backends: readonly Backend[]): Promise<void> {
    for (const [index, backend] of this.backends.entries()) {
      const metadata = {
        namespace,
        name: `${service}-${index}`,
        labels: { 'kubernetes.io/service-name': service },
      }
      const isUsed = backends.includes(backend)
      const address = POD_ADDRESSES[index] ?? ''
      await this.client.apply(EndpointSlice, {
        metadata,
        addressType: 'IPv4',
        endpoints: isUsed ? [{ addresses: [address], conditions: { ready: true } }] : [],
        ports: [{ name: 'http', port: backend.port, protocol: 'TCP' }],
      })
    }
  }

  async certificate(namespace: string, name: string, dnsNames: readonly string[]): Promise<void> {
    const { certPem, keyPem } = await this.authority.issue({
      commonName: dnsNames[0] ?? '',
      dnsNames,
      usages: 'server',
    })
    await this.client.apply(Secret, {
      metadata: { namespace, name },
      type: 'kubernetes.io/tls',
      data: { 'tls.crt': base64(certPem), 'tls.key': base64(keyPem) },
    })
  }

  async ask({
    host,
    path = '/',
    method = 'GET',
    headers = {},
    body,
    isTls = false,
    serverName = host,
    port,
  }: Ask): Promise<Answer> {
    const at = port === undefined ? {} : { port }
    const socket = isTls ? await this.connectTls(serverName, at) : undefined
    try {
      return await new Promise<Answer>((resolve, reject) => {
        const request = httpRequest(
          {
            ...this.http,
            ...at,
            method,
            path,
            headers: { host, ...headers },
            // Node ignores createConnection when an agent is given.
            ...(socket === undefined ? { agent: false } : { createConnection: () => socket }),
          },
          (response) => {
            let text = ''
            response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
            response.on('error', reject)
            response.on('end', () =>
              resolve({
                status: response.statusCode ?? 0,
                headers: response.headers,
                body: text,
                seen: text.startsWith('{') ? (JSON.parse(text) as Answer['seen']) : undefined,
              }),
            )
          },
        )
        request.on('error', reject)
        request.end(body)
      })
    } finally {
      socket?.destroy()
    }
  }

  async connectTls(
    serverName: string | undefined,
    options: {
      alpn?: string[]
      minVersion?: 'TLSv1.2' | 'TLSv1.3'
      maxVersion?: 'TLSv1.2' | 'TLSv1.3'
      port?: number
    } = {},
  ): Promise<TLSSocket> {
    return await new Promise((resolve, reject) => {
      const socket = connectTls({
        ...this.https,
        ...(options.port !== undefined && { port: options.port }),
        ...(serverName !== undefined && { servername: serverName }),
        ca: this.authority.certPem,
        ...(serverName === undefined && { rejectUnauthorized: false }),
        ...(options.alpn !== undefined && { ALPNProtocols: options.alpn }),
        ...(options.minVersion !== undefined && { minVersion: options.minVersion }),
        ...(options.maxVersion !== undefined && { maxVersion: options.maxVersion }),
      })
      socket.once('secureConnect', () => resolve(socket))
      socket.once('error', reject)
    })
  }

  /** Octets to the HTTP port; resolves with everything that came back when the proxy closed the connection. */
  async raw(octets: string): Promise<string> {
    return await new Promise((resolve, reject) => {
      const socket = connect(this.http, () => socket.write(octets))
      let text = ''
      socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      socket.on('close', () => resolve(text))
      socket.on('error', reject)
    })
  }

  async askHttp2(host: string, path: string): Promise<{ status: number; body: string }> {
    const socket = await this.connectTls(host, { alpn: ['h2'] })
    const session = connectHttp2(`https://${host}`, { createConnection: () => socket })
    try {
      return await new Promise((resolve, reject) => {
        session.on('error', reject)
        const stream = session.request({ ':path': path, ':authority': host })
        let [status, body] = [0, '']
        stream.on('response', (headers) => (status = Number(headers[':status'])))
        stream.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
        stream.on('end', () => resolve({ status, body }))
        stream.on('error', reject)
        stream.end()
      })
    } finally {
      session.destroy()
    }
  }

  /** Sends a WebSocket upgrade and one message; the answer of the backend, or the status of the refusal. */
  async upgrade(host: string, path: string): Promise<string> {
    return await new Promise((resolve, reject) => {
      const request = httpRequest({
        ...this.http,
        path,
        headers: { host, connection: 'Upgrade', upgrade: 'websocket' },
        agent: false,
      })
      request.on('upgrade', (_response, socket) => {
        socket.on('data', (chunk: Buffer) => {
          resolve(chunk.toString())
          socket.destroy()
        })
        socket.write('hello')
      })
      request.on('response', (response) => {
        response.resume()
        resolve(String(response.statusCode))
      })
      request.on('error', reject)
      request.end()
    })
  }

  /** Waits until the check returns without throwing; only a failure takes long. */
  async eventually(check: () => Promise<void>): Promise<void> {
    const deadline = Date.now() + 20_000
    for (;;) {
      try {
        return await check()
      } catch (error) {
        if (Date.now() > deadline) throw error
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
  }

  /** Waits for a status. */
  async expectStatus(ask: Ask, status: number): Promise<Answer> {
    let answer: Answer | undefined
    await this.eventually(async () => {
      answer = await this.ask(ask)
      if (answer.status !== status)
        throw new Error(`${ask.host}${ask.path ?? '/'} answered ${answer.status}, not ${status}: ${answer.body}`)
    })
    if (answer === undefined) throw new Error('no answer')
    return answer
  }
}

function addressOf(text: string): { host: string; port: number } {
  const colon = text.lastIndexOf(':')
  return { host: text.slice(0, colon), port: Number(text.slice(colon + 1)) }
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')
