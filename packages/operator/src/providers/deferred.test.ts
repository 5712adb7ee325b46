import { expect, it } from 'vitest'
import { ProviderError } from '../rrset/error.ts'
import { deferredProvider } from './deferred.ts'
import { memoryProvider } from './memory.ts'

it('fails while it cannot be created, and delegates to the provider from then on', async () => {
  const signal = AbortSignal.timeout(1_000)
  const zone = { id: 'a.test.', name: 'a.test.' }
  let isThere = false
  const provider = deferredProvider('bind', async () => {
    if (!isThere) throw new ProviderError('ProviderMisconfigured', 'later', 'Secret dns/key has no key tsig')
    return memoryProvider({ name: 'bind', zones: [zone] })
  })
  await expect(provider.zones(signal)).rejects.toThrow('Secret dns/key has no key tsig')
  await expect(provider.read(zone, 'all', signal)).rejects.toMatchObject({ code: 'ProviderMisconfigured' })
  isThere = true
  expect(await provider.zones(signal)).toEqual([zone])
  expect(await provider.read(zone, 'all', signal)).toEqual([])
  expect(provider.capabilities.isAtomic).toBe(true)
})
