import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ProviderConfig } from './config.ts'
import { createProvider } from './create-provider.ts'

const { signal } = new AbortController()
const env = { ID: 'AKIAEXAMPLE', SECRET: 'canary-of-the-key', TOKEN: 'canary-of-the-session', KEY: 'canary-of-the-api' }
const zone = { id: 'Z1', name: 'a.test.' }
const to = { name: 'www.a.test.', type: 'A', ttl: 60, values: ['192.0.2.1'] }

const ZONES = `<ListHostedZonesResponse><HostedZones>${[false, true]
  .map(
    (isPrivate, index) =>
      `<HostedZone><Id>/hostedzone/Z${index}</Id><Name>a.test.</Name><CallerReference>c</CallerReference><Config><PrivateZone>${isPrivate}</PrivateZone></Config></HostedZone>`,
  )
  .join('')}</HostedZones><IsTruncated>false</IsTruncated><MaxItems>100</MaxItems></ListHostedZonesResponse>`

describe('a provider of the configuration', () => {
  let server: Server
  let url = ''
  let requests: IncomingMessage[] = []
  let answer: (request: IncomingMessage, response: ServerResponse) => void = () => undefined
  beforeAll(async () => {
    server = createServer((request, response) => {
      requests.push(request)
      request.resume()
      request.on('end', () => answer(request, response))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  const aws = async (changes: object = {}) =>
    createProvider(
      ProviderConfig.parse({
        name: 'aws',
        type: 'aws',
        endpoint: url,
        credentials: {
          accessKeyIdFrom: { env: 'ID' },
          secretAccessKeyFrom: { env: 'SECRET' },
          sessionTokenFrom: { env: 'TOKEN' },
        },
        ...changes,
      }),
      { env },
    )

  it('PowerDNS: asks the configured server of the API, with the key', async () => {
    requests = []
    answer = (_request, response) => response.end('[]')
    const config = { name: 'pdns', type: 'powerdns', url, serverId: 'second', apiKeyFrom: { env: 'KEY' } }
    const provider = await createProvider(ProviderConfig.parse(config), { env })
    expect(await provider.zones(signal)).toEqual([])
    expect(requests.map(({ url: path, headers }) => [path, headers['x-api-key']])).toEqual([
      ['/api/v1/servers/second/zones', env.KEY],
    ])
  })

  it('Route 53: serves only zones of the configured visibility', async () => {
    answer = (_request, response) => response.setHeader('content-type', 'text/xml').end(ZONES)
    const provider = await aws({ visibility: 'private' })
    expect((await provider.zones(signal)).map(({ id }) => id)).toEqual(['Z1'])
    await provider.close?.()
  })

  it('Route 53: an error that repeats the session token does not contain it', async () => {
    answer = (request, response) => {
      const token = String(request.headers['x-amz-security-token'])
      response.statusCode = 400
      response
        .setHeader('content-type', 'text/xml')
        .end(
          `<ErrorResponse><Error><Type>Sender</Type><Code>InvalidInput</Code><Message>the token ${token} is odd</Message></Error><RequestId>1</RequestId></ErrorResponse>`,
        )
    }
    const provider = await aws()
    const error: unknown = await provider.zones(signal).catch((reason: unknown) => reason)
    expect((error as Error).message).toContain('the token [redacted] is odd')
    expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain(env.TOKEN)
    await provider.close?.()
  })

  it('Route 53: a change that the service fails to answer is sent once, and may have been made', async () => {
    requests = []
    answer = (_request, response) => response.writeHead(500).end()
    const provider = await aws()
    await expect(provider.apply(zone, [{ from: undefined, to }], signal)).rejects.toMatchObject({ outcome: 'unknown' })
    expect(requests).toHaveLength(1)
    await provider.close?.()
  })

  it('Route 53: a batch is refused for a record although the zone also differs from its base', async () => {
    answer = (_request, response) => {
      response.statusCode = 400
      response
        .setHeader('content-type', 'text/xml')
        .end(
          "<ErrorResponse><Error><Type>Sender</Type><Code>InvalidChangeBatch</Code><Message>[Tried to create resource record set [name='www.a.test.', type='A'] but it already exists, Invalid Resource Record: 'x' is not an address]</Message></Error><RequestId>1</RequestId></ErrorResponse>",
        )
    }
    const provider = await aws()
    await expect(provider.apply(zone, [{ from: undefined, to }], signal)).rejects.toMatchObject({ outcome: 'rejected' })
    await provider.close?.()
  })
})
