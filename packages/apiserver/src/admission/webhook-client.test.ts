/** Webhooks are called over HTTPS; the connections of CA bundles that are no longer used are closed. */
import type { ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createAuthority } from '@seamark/kube/certificates'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { postReview } from './webhook-client.ts'

let https: Server
let url = ''
let certPem = ''
let onHold: (response: ServerResponse) => void
const held = new Promise<ServerResponse>((resolve) => (onHold = resolve))

beforeAll(async () => {
  const authority = await createAuthority({ commonName: 'webhooks' })
  certPem = authority.certPem
  const pair = await authority.issue({ commonName: 'webhook', ipAddresses: ['127.0.0.1'], usages: 'server' })
  https = createServer({ cert: pair.certPem, key: pair.keyPem, keepAliveTimeout: 600_000 }, (request, response) => {
    request.resume()
    if (request.url?.startsWith('/hold') === true) onHold(response)
    else response.end('{}')
  })
  await new Promise<void>((resolve) => https.listen(0, '127.0.0.1', resolve))
  url = `https://127.0.0.1:${(https.address() as AddressInfo).port}`
})

afterAll(() => {
  https.closeAllConnections()
  https.close()
})

/** The same certificate in another text is another bundle. */
const bundle = (i: number): string => Buffer.from(`${certPem}${'\n'.repeat(i)}`).toString('base64')

it('a review in flight is answered, however many CA bundles were used since; idle connections of old ones are closed', async () => {
  const first = postReview({ url: `${url}/hold`, caBundle: bundle(0) }, {}, 60_000)
  const response = await held
  for (let i = 1; i <= 150; i++) await postReview({ url, caBundle: bundle(i) }, {}, 60_000)
  response.end('{"answered":true}')
  expect(await first).toEqual({ answered: true })
  const connections = async () => new Promise<number>((resolve) => https.getConnections((_error, n) => resolve(n)))
  await expect.poll(connections).toBe(64)
})
