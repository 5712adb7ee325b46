import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { ProviderError } from '../rrset/error.ts'
import { ProviderConfig } from './config.ts'
import { memoryProvider } from './memory.ts'
import { redactingProvider } from './redaction.ts'

/** Its base64 contains characters that base64url writes in another way. */
const SECRET = '???canary/key+of==this test'
const { signal } = new AbortController()
const everything = (value: unknown) => inspect(value, { depth: Infinity, showHidden: true, maxStringLength: Infinity })

/** The error of a provider whose service repeats this text. */
async function thrownFor(text: string, cause?: unknown): Promise<unknown> {
  return await thrownWith(new ProviderError('CredentialsInvalid', 'later', text, { cause, retryAfterMs: 7 }))
}

async function thrownWith(failure: Error): Promise<unknown> {
  const memory = memoryProvider({ zones: ['a.test.'] })
  const fail = async () => {
    throw failure
  }
  const provider = redactingProvider({ ...memory, zones: fail, read: fail, apply: fail }, [SECRET])
  const results = await Promise.allSettled([
    provider.zones(signal),
    provider.read({ id: 'a.test.', name: 'a.test.' }, 'all', signal),
    provider.apply({ id: 'a.test.', name: 'a.test.' }, [], signal),
  ])
  const errors = results.map((result) => (result.status === 'rejected' ? (result.reason as unknown) : undefined))
  expect(new Set(errors.map((error) => (error as Error).message)).size).toBe(1)
  return errors[0]
}

describe('an error text of a service that contains a credential', () => {
  it.each([
    ['as it is', SECRET],
    ['in base64', Buffer.from(SECRET).toString('base64')],
    ['in hex', Buffer.from(SECRET).toString('hex')],
    ['percent-encoded', encodeURIComponent(SECRET)],
  ])('is redacted %s', async (_title, form) => {
    const error = await thrownFor(`key ${form} is not valid`)
    expect(error).toMatchObject({ code: 'CredentialsInvalid', outcome: 'later', retryAfterMs: 7 })
    expect((error as Error).message).toBe('key [redacted] is not valid')
    expect(everything(error)).not.toContain(form)
  })

  it('is redacted in a cause', async () => {
    const error = await thrownFor('refused', new Error(`header x-api-key: ${SECRET}`))
    expect((error as Error).message).toBe('refused')
    expect(everything(error)).not.toContain(SECRET)
  })

  it('is redacted in an error that is not of a provider, and in its causes', async () => {
    const cause = new Error(`header x-api-key: ${SECRET}`)
    const error = await thrownWith(new TypeError(`cannot parse ${SECRET}`, { cause }))
    expect(error).toMatchObject({ code: 'ProviderUnavailable', message: 'cannot parse [redacted]' })
    expect(everything(error)).not.toContain(SECRET)
  })

  it('is redacted; an error without a credential is unchanged', async () => {
    const cause = new Error('ECONNREFUSED')
    expect(await thrownFor('no answer', cause)).toMatchObject({ message: 'no answer', cause })
  })
})

it.each([
  { name: 'a', type: 'powerdns', url: 'http://user:canary@127.0.0.1:8081', apiKeyFrom: { env: 'KEY' } },
  { name: 'a', type: 'webhook', url: 'http://canary@127.0.0.1:8888' },
  { name: 'a', type: 'aws', endpoint: 'https://id:canary@127.0.0.1' },
])('a URL with a user name or password is refused, and not repeated: $type', (config) => {
  const { error } = ProviderConfig.safeParse(config)
  expect(error?.issues[0]?.message).toContain('has a user name or password')
  expect(JSON.stringify(error?.issues)).not.toContain('canary')
})

it('a provider with secrets is closed', async () => {
  let closes = 0
  const memory = { ...memoryProvider({ zones: ['a.test.'] }), close: async () => void closes++ }
  await redactingProvider(memory, [SECRET]).close?.()
  expect(closes).toBe(1)
})
