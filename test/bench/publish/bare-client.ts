/** A bare `node:http2` client of an API server: one session, no cache, no retries. The baselines are made of it. */
import { readFileSync } from 'node:fs'
import { type ClientHttp2Session, connect } from 'node:http2'
import { parse } from 'yaml'

interface Kubeconfig {
  clusters: { cluster: { server: string; 'certificate-authority-data': string } }[]
  users: { user: { 'client-certificate-data'?: string; 'client-key-data'?: string; token?: string } }[]
}

export interface BareClient {
  /** Resolves with the body; rejects for a status of 300 and more. */
  readonly send: (method: string, path: string, body?: string) => Promise<string>
  /** Calls `onLine` with each line of the answer, until the client is closed. */
  watch(path: string, onLine: (line: string) => void): void
  close(): void
}

const pem = (text: string | undefined): string => Buffer.from(text ?? '', 'base64').toString()

export function bareClient(kubeconfigPath: string): BareClient {
  const config = parse(readFileSync(kubeconfigPath, 'utf8')) as Kubeconfig
  const user = config.users[0]?.user
  const session: ClientHttp2Session = connect(config.clusters[0]?.cluster.server ?? '', {
    ca: pem(config.clusters[0]?.cluster['certificate-authority-data']),
    cert: pem(user?.['client-certificate-data']),
    key: pem(user?.['client-key-data']),
  })
  const common = {
    accept: 'application/json',
    ...(user?.token !== undefined && { authorization: `Bearer ${user.token}` }),
  }
  return {
    send: async (method, path, body) =>
      new Promise((resolve, reject) => {
        const type = method === 'PATCH' ? 'application/apply-patch+yaml' : 'application/json'
        const stream = session.request({
          ':method': method,
          ':path': path,
          ...common,
          ...(body !== undefined && { 'content-type': type }),
        })
        let status = 0
        const chunks: Buffer[] = []
        stream.on('response', (headers) => (status = Number(headers[':status'])))
        stream.on('data', (chunk: Buffer) => chunks.push(chunk))
        stream.on('error', reject)
        stream.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          if (status >= 300) reject(new Error(`${method} ${path}: ${status} ${text.slice(0, 300)}`))
          else resolve(text)
        })
        stream.end(body)
      }),
    watch(path, onLine) {
      const stream = session.request({ ':method': 'GET', ':path': path, ...common })
      let rest = ''
      stream.setEncoding('utf8').on('data', (text: string) => {
        const lines = (rest + text).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) onLine(line)
      })
      // The stream breaks when the client is closed.
      stream.on('error', () => undefined)
      stream.end()
    },
    close: () => session.destroy(),
  }
}
