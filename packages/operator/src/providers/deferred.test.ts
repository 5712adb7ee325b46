import { expect, it } from 'vitest'
import { ProviderError } from '../rrset/error.ts'
import { deferredProvider } from './deferred.ts'
import { memoryProvider } from './memory.ts'
import type { Provider } from './provider.ts'

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

it('is created once for callers at the same time, and closed also when that happens during its creation', async () => {
  const signal = AbortSignal.timeout(1_000)
  let creations = 0
  let closes = 0
  let finish: (made: Provider) => void = () => undefined
  const provider = deferredProvider('bind', async () => {
    creations++
    return new Promise((resolve) => (finish = resolve))
  })
  const zones = [provider.zones(signal), provider.zones(signal)]
  const closed = provider.close?.()
  const close = async () => void closes++
  finish({ ...memoryProvider({ name: 'bind', zones: [{ id: 'a.test.', name: 'a.test.' }] }), close })
  await Promise.all([...zones, closed])
  expect([creations, closes]).toEqual([1, 1])
})
