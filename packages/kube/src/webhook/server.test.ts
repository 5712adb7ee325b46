import { request } from 'node:https'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAuthority, type Authority } from '../certificates.ts'
import { startListener, type Listener } from '../manager/listener.ts'
import { createLogger } from '../log.ts'
import { createMetrics } from '../metrics.ts'
import { kind, type Obj } from '../object/object.ts'
import { defineConversion } from './conversion.ts'
import { admissionPath, webhookHandler, type WebhookRegistry } from './server.ts'

const Route = kind<Obj>({ group: 'edge.test', version: 'v1', kind: 'Route', plural: 'routes', namespaced: true })
const path = '/validate-edge-test-v1-route'

let listener: Listener
let authority: Authority
const metrics = createMetrics()
const lines: string[] = []

beforeAll(async () => {
  const validate = (now?: { readonly metadata: { readonly name?: string } }) => {
    if (now?.metadata.name === 'broken') throw new TypeError('secret detail')
    return []
  }
  const registry: WebhookRegistry = {
    admissions: new Map([[admissionPath('validate', Route), { hooks: { validate }, verb: 'validate' }]]),
    conversions: [defineConversion(Route, [])],
  }
  const log = createLogger({ destination: { write: (line: string) => lines.push(line) } })
  authority = await createAuthority({ commonName: 'test' })
  const { certPem, keyPem } = await authority.issue({ commonName: 'first', dnsNames: ['localhost'], usages: 'server' })
  listener = await startListener({
    listen: '127.0.0.1:0',
    handler: webhookHandler(registry, metrics, log),
    tls: { cert: certPem, key: keyPem },
  })
})
afterAll(async () => listener.close(0))

async function call(
  method: string,
  target: string,
  body?: string,
): Promise<{ status: number; body: unknown; peer: string | undefined }> {
  return new Promise((resolve, reject) => {
    const port = Number(listener.address.split(':').at(-1))
    const options = {
      host: '127.0.0.1',
      port,
      path: target,
      method,
      ca: authority.certPem,
      servername: 'localhost',
      agent: false,
    } as const
    const outgoing = request(options, (incoming) => {
      let text = ''
      const { subject } = (incoming.socket as import('node:tls').TLSSocket).getPeerCertificate()
      incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      incoming.once('end', () =>
        resolve({ status: incoming.statusCode ?? 0, body: JSON.parse(text), peer: subject.CN as string }),
      )
    })
    outgoing.once('error', reject)
    outgoing.end(body)
  })
}
const review = (name: string) =>
  JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: { uid: 'u', operation: 'CREATE', object: { metadata: { name } } },
  })

describe('webhook server', () => {
  it('responds to reviews', async () => {
    expect(await call('POST', `${path}?timeout=10s`, review('fine'))).toMatchObject({
      status: 200,
      body: { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid: 'u', allowed: true } },
    })
  })

  it('responds 500 to a hook that throws and counts it, without the reason in the response', async () => {
    const { status, body } = await call('POST', path, review('broken'))
    expect([status, JSON.stringify(body).includes('secret detail')]).toEqual([500, false])
    expect(lines.join()).toContain('secret detail')
    expect(await metrics.registry.getSingleMetricAsString('controller_runtime_webhook_panics_total')).toContain(
      'total 1',
    )
    expect(await metrics.registry.getSingleMetricAsString('controller_runtime_webhook_requests_total')).toContain(
      `{webhook="${path}",code="500"} 1`,
    )
    expect((await call('POST', path, review('fine'))).status).toBe(200)
  })

  it('rejects requests that are not a review, too large, or for an unknown path', async () => {
    expect((await call('POST', path, '{')).status).toBe(400)
    expect((await call('POST', path, '{}')).status).toBe(400)
    expect((await call('POST', '/convert', '[]')).status).toBe(400)
    expect((await call('GET', path)).status).toBe(405)
    expect((await call('POST', '/other', '{}')).status).toBe(404)
    const under = `${review('fine').slice(0, -1)},"pad":"${'x'.repeat(7 * 1024 * 1024 - 400)}"}`
    expect((await call('POST', path, under)).status).toBe(200)
    const over = await call('POST', path, `"${'x'.repeat(7 * 1024 * 1024)}"`).catch(
      (error: NodeJS.ErrnoException) => error,
    )
    expect('status' in over ? over.status : over.code).toSatisfy((seen) =>
      [413, 'EPIPE', 'ECONNRESET'].includes(seen as never),
    )
    expect(await metrics.registry.getSingleMetricAsString('controller_runtime_webhook_requests_in_flight')).toContain(
      '} 0',
    )
  })

  it('serves a new certificate to new connections without dropping open ones', async () => {
    const port = Number(listener.address.split(':').at(-1))
    const options = {
      host: '127.0.0.1',
      port,
      path,
      method: 'POST',
      ca: authority.certPem,
      servername: 'localhost',
      agent: false,
    } as const
    const open = request(options)
    const answered = new Promise<number>((resolve, reject) => {
      open.once('response', (incoming) => resolve(incoming.resume().statusCode ?? 0))
      open.once('error', reject)
    })
    const text = review('fine')
    open.setHeader('content-length', text.length)
    open.write(text.slice(0, 10))
    await expect
      .poll(async () => metrics.registry.getSingleMetricAsString('controller_runtime_webhook_requests_in_flight'))
      .toContain(`{webhook="${path}"} 1`)
    expect((await call('POST', path, review('fine'))).peer).toBe('first')
    const { certPem, keyPem } = await authority.issue({
      commonName: 'second',
      dnsNames: ['localhost'],
      usages: 'server',
    })
    listener.secure({ cert: certPem, key: keyPem })
    expect((await call('POST', path, review('fine'))).peer).toBe('second')
    open.end(text.slice(10))
    expect(await answered).toBe(200)
  })
})
