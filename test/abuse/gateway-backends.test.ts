/** Clients against the shipped `seamark gateway` with backends: what they send costs no other client anything. */
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { canUnshare, runInNamespace } from '../integration/gateway/network-namespace.ts'

const attacks = [
  '14 000 requests with 30 kB of header fields to a backend that does not answer',
  'packets with as many requests, trailers or chunks as they can have',
  'bodies with odd ends to the host of the victim',
]

describe.skipIf(!canUnshare)('the gateway and its backends', () => {
  let results: Map<string, string | undefined>
  beforeAll(async () => {
    results = await runInNamespace(join(import.meta.dirname, 'gateway-backends.ts'))
  }, 170_000)
  it.each(attacks)('%s', (name) => {
    expect(results.has(name), 'the attack has run').toBe(true)
    expect(results.get(name)).toBeUndefined()
  })
})
