/**
 * The HTTPS server of webhooks: reads a review, calls the hooks, responds.
 *
 * Guarantees: it serves as soon as it has a certificate, without caches or leadership; a body above 7 MiB, a wrong
 * method or a text that is not a review is rejected; a hook that throws is counted and results in a 500, never in the
 * end of the process; new connections use a new certificate while open ones continue.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { KubeError, messageOf } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { Metrics, WebhookMetrics } from '../metrics.ts'
import type { Kind, Obj } from '../object/object.ts'
import { admitDefaults, admitValid, type AdmissionHooks } from './admission.ts'
import { convertReview, type Conversion } from './conversion.ts'
import { BadReview, parseAdmission, parseConversion } from './review.ts'

/** kube-apiserver sends two objects of at most 3 MiB each, and the envelope. */
const MAX_BODY_BYTES = 7 * 1024 * 1024

const CONVERSION_PATH = '/convert'

/** The paths of controller-runtime, so that existing webhook configurations work. */
export function admissionPath(verb: 'mutate' | 'validate', kind: Kind): string {
  return `/${verb}-${kind.group.replaceAll('.', '-')}-${kind.version}-${kind.kind.toLowerCase()}`
}

export interface WebhookRegistry {
  readonly admissions: Map<string, { hooks: AdmissionHooks<Obj>; verb: 'mutate' | 'validate' }>
  readonly conversions: Conversion[]
}

/** Returns the response to a parsed body. */
type Responder = (body: unknown) => Promise<object>

class TooLarge extends KubeError {
  constructor() {
    super('BODY_TOO_LARGE', `the body is larger than ${MAX_BODY_BYTES} bytes`)
  }
}

export function webhookHandler(
  { admissions, conversions }: WebhookRegistry,
  metrics: Metrics,
  log: Logger,
): RequestListener {
  const routes = new Map<string, { respond: Responder; metrics: WebhookMetrics }>()
  for (const [path, { hooks, verb }] of admissions) {
    const admit = verb === 'mutate' ? admitDefaults<Obj> : admitValid<Obj>
    const respond: Responder = async (body) => {
      const response = await admit(hooks, parseAdmission(body))
      return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response }
    }
    routes.set(path, { respond, metrics: metrics.webhook(path, 'admission') })
  }
  if (conversions.length > 0) {
    const respond: Responder = async (body) => {
      const response = convertReview(conversions, parseConversion(body))
      return { apiVersion: 'apiextensions.k8s.io/v1', kind: 'ConversionReview', response }
    }
    routes.set(CONVERSION_PATH, { respond, metrics: metrics.webhook(CONVERSION_PATH, 'conversion') })
  }

  return (request, response) => {
    const [path = ''] = (request.url ?? '').split('?', 1)
    const route = routes.get(path)
    if (route === undefined) return send(response, 404, { message: 'no webhook is served here' })
    if (request.method !== 'POST') return send(response, 405, { message: 'webhooks are called by POST' })
    const startedAt = performance.now()
    route.metrics.started()
    void handleRequest(request, route.respond).then(([code, body, error]) => {
      route.metrics.finished(code, (performance.now() - startedAt) / 1_000)
      if (code === 500) {
        route.metrics.panicked()
        log.error({ webhook: path, err: error }, 'webhook is broken')
      }
      send(response, code, body)
    })
  }
}

/**
 * Never rejects. The message of a hook's exception is only logged: it may contain data that the caller must not see.
 */
async function handleRequest(
  request: IncomingMessage,
  respond: Responder,
): Promise<[code: number, body: object, error?: unknown]> {
  try {
    const body = parseJson(await readBody(request))
    return [200, await respond(body)]
  } catch (error) {
    if (error instanceof TooLarge) return [413, { message: error.message }]
    if (error instanceof BadReview) return [400, { message: error.message }]
    return [500, { message: 'the webhook failed; its log says why' }, error]
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new BadReview(`the body is not JSON: ${messageOf(error)}`)
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > MAX_BODY_BYTES) throw new TooLarge()
      chunks.push(chunk)
    }
  } catch (error) {
    throw error instanceof TooLarge ? error : new BadReview(`the body did not arrive: ${messageOf(error)}`)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function send(response: ServerResponse, code: number, body: object): void {
  if (response.destroyed) return
  // Otherwise the unread rest of the body would be parsed as the next request.
  const connection = code === 413 ? { connection: 'close' } : {}
  response.writeHead(code, { 'content-type': 'application/json', ...connection }).end(JSON.stringify(body))
}
