import { request as https } from 'node:https'
import { connect } from 'node:http2'
import { type Authority, type CertificatePair, createAuthority } from '@seamark/kube/certificates'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ApiServer, createApiServer, type ServerListener } from '../index.ts'

const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const headers = { 'content-type': 'application/json' }
const body = '{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}'

interface Review {
  readonly code?: number
  readonly status?: { userInfo?: { username: string; groups: string[] } }
}

describe('a client certificate', () => {
  let authority: Authority
  let server: ApiServer
  let listener: ServerListener
  let credentials: CertificatePair
  beforeAll(async () => {
    authority = await createAuthority({ commonName: 'clients' })
    const serving = await authority.issue({ commonName: 'server', ipAddresses: ['127.0.0.1'], usages: 'server' })
    credentials = await authority.issue({ commonName: 'jane', organizations: ['dev', 'ops'], usages: 'client' })
    server = createApiServer({ anonymous: 'anonymous', controllers: false })
    listener = await server.listen({ tls: { cert: serving.certPem, key: serving.keyPem, ca: authority.certPem } })
  })
  afterAll(async () => await server.close())

  /** The user that the server reports for these credentials, over HTTP/2 and over HTTP/1.1. */
  const reviewHttp2 = async (pair?: CertificatePair): Promise<Review> => {
    const session = connect(listener.url, { ca: authority.certPem, cert: pair?.certPem, key: pair?.keyPem })
    const stream = session.request({ ':method': 'POST', ':path': path, ...headers })
    stream.end(body)
    let text = ''
    for await (const chunk of stream) text += String(chunk)
    session.close()
    return JSON.parse(text) as Review
  }
  const reviewHttp1 = async (pair?: CertificatePair): Promise<Review> =>
    await new Promise((resolve, reject) => {
      const options = { method: 'POST', headers, ca: authority.certPem, cert: pair?.certPem, key: pair?.keyPem }
      const request = https(`${listener.url}${path}`, options, (response) => {
        let text = ''
        response.on('data', (chunk) => (text += String(chunk)))
        response.on('end', () => resolve(JSON.parse(text) as Review))
      })
      request.on('error', reject)
      request.end(body)
    })

  it('names the user by its common name and the groups by its organizations', async () => {
    for (const review of [reviewHttp2, reviewHttp1]) {
      const { status } = await review(credentials)
      expect(status?.userInfo?.username).toBe('jane')
      expect(status?.userInfo?.groups.toSorted()).toEqual(['dev', 'ops', 'system:authenticated'])
    }
  })

  it('of another CA is rejected like an invalid token', async () => {
    const other = await createAuthority({ commonName: 'others' })
    const forged = await other.issue({ commonName: 'root', organizations: ['system:masters'], usages: 'client' })
    for (const review of [reviewHttp2, reviewHttp1]) expect((await review(forged)).code).toBe(401)
  })

  it('is optional', async () => {
    for (const review of [reviewHttp2, reviewHttp1])
      expect((await review()).status?.userInfo?.username).toBe('system:anonymous')
  })
})
