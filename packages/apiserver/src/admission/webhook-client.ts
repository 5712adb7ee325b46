/**
 * HTTPS client for webhooks: one POST of a review. Only the CA bundle of the configuration is trusted; time and
 * response size are limited. Connections are reused per bundle.
 */
import { Agent, request } from 'node:https'
import { getPath, isRecord, type Json } from '../codec/object-shape.ts'

const responseLimit = 10 * 1024 * 1024

/** Base URL at which this process reaches a Service; undefined when it is unreachable. */
export type ResolveService = (namespace: string, name: string, port: number) => string | undefined

export interface WebhookTarget {
  readonly url: string
  readonly caBundle: string | undefined
}

/** By CA bundle, the least recently used first. */
const agents = new Map<string, Agent>()
/** Bundles are rotated: the connections of those that are no longer used are closed. */
const MAX_AGENTS = 64

function agentFor(caBundle: string | undefined): Agent {
  const key = caBundle ?? ''
  let agent = agents.get(key)
  if (agent === undefined) {
    const [oldest] = agents
    if (oldest !== undefined && agents.size >= MAX_AGENTS) {
      agents.delete(oldest[0])
      retire(oldest[1])
    }
    agent = new Agent({ keepAlive: true, ...(caBundle !== undefined && { ca: Buffer.from(caBundle, 'base64') }) })
  } else agents.delete(key)
  agents.set(key, agent)
  return agent
}

/** Requests in flight are completed; their connections are closed afterwards, idle ones now. */
function retire(agent: Agent): void {
  agent.maxFreeSockets = 0
  for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy()
}

/** The target of a clientConfig. Throws when it names a Service that this process cannot reach. */
export function readTarget(clientConfig: unknown, resolveService: ResolveService): WebhookTarget {
  const bundle = getPath(clientConfig, 'caBundle')
  const caBundle = typeof bundle === 'string' && bundle !== '' ? bundle : undefined
  const url = getPath(clientConfig, 'url')
  if (typeof url === 'string') return { url, caBundle }
  const service = getPath(clientConfig, 'service')
  const [namespace, name] = [String(getPath(service, 'namespace')), String(getPath(service, 'name'))]
  const base = resolveService(namespace, name, Number(getPath(service, 'port') ?? 443))
  if (base === undefined)
    throw new Error(
      `service ${JSON.stringify(`${namespace}/${name}`)} is not reachable from the embedded API server; use clientConfig.url or resolveService`,
    )
  return { url: `${base}${String(getPath(service, 'path') ?? '')}`, caBundle }
}

/** A refused connection in Go's format; other errors keep their message. */
function dialText(error: Error & { code?: string; address?: string; port?: number }): string {
  const { code, address, port, message } = error
  return code === 'ECONNREFUSED' ? `dial tcp ${address}:${port}: connect: connection refused` : message
}

export async function postReview(target: WebhookTarget, review: Json, timeoutMs: number): Promise<Json> {
  const url = new URL(target.url)
  if (url.protocol !== 'https:') throw new Error(`webhook URL ${target.url} is not https`)
  url.searchParams.set('timeout', `${Math.ceil(timeoutMs / 1000)}s`)
  const body = Buffer.from(JSON.stringify(review))
  const text = await new Promise<string>((resolve, reject) => {
    const call = request(
      url,
      {
        method: 'POST',
        agent: agentFor(target.caBundle),
        headers: { 'content-type': 'application/json', accept: 'application/json, */*', 'content-length': body.length },
        signal: AbortSignal.timeout(timeoutMs),
      },
      (response) => {
        const chunks: Buffer[] = []
        let size = 0
        response.on('data', (chunk: Buffer) => {
          size += chunk.length
          if (size > responseLimit) response.destroy(new Error('the answer is too large'))
          else chunks.push(chunk)
        })
        response.on('error', reject)
        response.on('end', () => {
          const answer = Buffer.concat(chunks).toString()
          if (response.statusCode === 200) resolve(answer)
          else
            reject(
              new Error(
                `an error on the server (${JSON.stringify(answer.slice(0, 200))}) has prevented the request from succeeding`,
              ),
            )
        })
      },
    )
    call.on('error', (error) =>
      reject(
        error.name === 'AbortError' || error.name === 'TimeoutError'
          ? new Error('context deadline exceeded')
          : new Error(`Post ${JSON.stringify(url.href)}: ${dialText(error)}`, { cause: error }),
      ),
    )
    call.end(body)
  })
  const parsed = JSON.parse(text) as unknown
  if (!isRecord(parsed)) throw new Error('the answer is not an object')
  return parsed
}
