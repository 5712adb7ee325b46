import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createGzip } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { MAX_REQUESTED_WAIT_MS } from '@seamark/kube/testing/parts'
import { callHttp, failureOf } from './http-call.ts'

let server: Server | undefined

afterEach(async () => {
  const closing = server
  server = undefined
  closing?.closeAllConnections()
  if (closing !== undefined) await new Promise<void>((resolve) => closing.close(() => resolve()))
})

async function call(answer: (response: ServerResponse) => void, maxBytes = 1 << 20) {
  server = createServer((_, response) => answer(response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/records`)
  return callHttp({ method: 'GET', url, signal: new AbortController().signal, fetch: globalThis.fetch, maxBytes })
}

/** Writes until the client stops reading. */
function writeForEver(out: NodeJS.WritableStream): void {
  const chunk = Buffer.alloc(65_536, ' ')
  const write = () => {
    while (out.write(chunk));
  }
  out.on('drain', write)
  out.on('error', () => undefined)
  write()
}

describe('a response of a provider', () => {
  it('without an end is aborted', async () => {
    await expect(call(writeForEver)).rejects.toMatchObject({
      code: 'ProviderUnavailable',
      message: expect.stringContaining('larger than 1048576 bytes'),
    })
  })

  it('that is small on the wire and huge when decompressed is aborted', async () => {
    const answer = (response: ServerResponse) => {
      response.setHeader('content-encoding', 'gzip')
      const gzip = createGzip()
      gzip.pipe(response)
      response.on('close', () => gzip.destroy())
      writeForEver(gzip)
    }
    await expect(call(answer)).rejects.toMatchObject({ message: expect.stringContaining('larger than 1048576 bytes') })
  })

  it('that reports a failure is read only up to the length that is shown', async () => {
    const { status, text } = await call((response) => {
      response.statusCode = 500
      writeForEver(response)
    })
    expect(status).toBe(500)
    expect(text.length).toBeLessThanOrEqual(65_536)
  })

  it('within the limit is read completely', async () => {
    const { text } = await call((response) => response.end('é'.repeat(500_000)))
    expect(text).toBe('é'.repeat(500_000))
  })

  it.each([
    ['3', 3000],
    ['3000000', MAX_REQUESTED_WAIT_MS],
    ['1e300', undefined],
    ['-5', undefined],
    ['x', undefined],
  ])('may request a delay with Retry-After %s: %s ms', async (value, retryAfterMs) => {
    const answer = await call((response) => {
      response.statusCode = 429
      response.setHeader('retry-after', value)
      response.end()
    })
    expect(answer.retryAfterMs).toBe(retryAfterMs)
  })
})

describe('a failed call of a provider', () => {
  it('follows no redirection: its headers contain credentials', async () => {
    const paths: string[] = []
    server = createServer((request, response) => {
      paths.push(request.url ?? '')
      response.writeHead(302, { location: '/elsewhere' }).end()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/records?token=canary`)
    const { signal } = new AbortController()
    const error: unknown = await callHttp({ method: 'GET', url, signal, fetch: globalThis.fetch }).catch(
      (reason: unknown) => reason,
    )
    expect(error).toMatchObject({ code: 'ProviderUnavailable', outcome: 'later' })
    expect((error as Error).message).not.toContain('canary')
    expect(paths).toEqual(['/records?token=canary'])
  })

  it.each([
    [500, true, 'unknown', undefined],
    [502, true, 'unknown', undefined],
    [500, false, 'later', undefined],
    [503, true, 'later', 2000],
    [429, true, 'later', 2000],
    [400, true, 'rejected', undefined],
  ] as const)('with status %s, a write: %s, has the outcome %s', (status, isWrite, outcome, retryAfterMs) => {
    const answer = { status, contentType: '', text: '', retryAfterMs: 2000 }
    expect(failureOf(answer, 'PATCH /zones', isWrite, '')).toMatchObject({ outcome, retryAfterMs })
  })
})
