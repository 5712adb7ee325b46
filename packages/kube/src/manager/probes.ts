/**
 * Health, readiness and metrics over HTTP, in the format expected of Kubernetes components.
 *
 * `/healthz` and `/readyz` respond 200 or 500; `?verbose` and every failure list the checks by name; `/readyz/NAME`
 * runs one check. A check is a synchronous function that returns the problem, or undefined. One that throws has failed.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Registry } from 'prom-client'
import { messageOf } from '../errors.ts'

/** Description of the current problem, or undefined. */
export type Check = () => string | undefined

export interface Checks {
  readonly healthz: ReadonlyMap<string, Check>
  readonly readyz: ReadonlyMap<string, Check>
}

export function probesHandler(checks: Checks): RequestListener {
  return (request, response) => {
    const { segments, query } = parseTarget(request)
    const [endpoint, name] = segments
    const set =
      endpoint === 'healthz' || endpoint === 'livez'
        ? checks.healthz
        : endpoint === 'readyz'
          ? checks.readyz
          : undefined
    if (set === undefined) return answer(response, 404, 'not found\n')
    const wanted = name === undefined ? [...set] : [...set].filter(([each]) => each === name)
    if (name !== undefined && wanted.length === 0) return answer(response, 404, 'no such check\n')
    const results = wanted.map(([each, check]) => ({ name: each, wrong: runCheck(check) }))
    const isOk = results.every(({ wrong }) => wrong === undefined)
    if (isOk && !query.has('verbose')) return answer(response, 200, 'ok')
    const lines = results.map((each) =>
      each.wrong === undefined ? `[+]${each.name} ok` : `[-]${each.name} failed: ${each.wrong}`,
    )
    answer(response, isOk ? 200 : 500, `${lines.join('\n')}\n${endpoint} check ${isOk ? 'passed' : 'failed'}\n`)
  }
}

/** `registries` is called at each scrape; no series is in two of them. */
export function metricsHandler(registries: () => readonly Registry[]): RequestListener {
  return (request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD')
      // The body is not read.
      response.setHeader('connection', 'close')
      return answer(response, 405, 'method not allowed\n')
    }
    if (parseTarget(request).segments.join('/') !== 'metrics') return answer(response, 404, 'not found\n')
    const all = registries()
    Promise.all(all.map(async (registry) => registry.metrics())).then(
      (texts) => answer(response, 200, texts.join('\n'), all[0]?.contentType),
      (error: unknown) => answer(response, 500, `${messageOf(error)}\n`),
    )
  }
}

function runCheck(check: Check): string | undefined {
  try {
    return check()
  } catch (error) {
    return messageOf(error)
  }
}

/** A request target may be any text, including `//`: it is split, not parsed as a URL. */
function parseTarget({ url = '' }: IncomingMessage): { segments: string[]; query: URLSearchParams } {
  const [path = '', query = ''] = url.split('?', 2)
  return { segments: path.split('/').filter((segment) => segment !== ''), query: new URLSearchParams(query) }
}

function answer(response: ServerResponse, status: number, text: string, type = 'text/plain; charset=utf-8'): void {
  response.writeHead(status, { 'content-type': type, 'x-content-type-options': 'nosniff' }).end(text)
}
